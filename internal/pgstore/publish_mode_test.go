package pgstore_test

import (
	"errors"
	"testing"

	"milepost/internal/commit"
	"milepost/internal/commit/committest"
	"milepost/internal/stream"
)

// H9: the publish mode is a group's for a raw topic: read, refused to claims of another, and changed for all partitions at once.
func TestPublishModeChanges(t *testing.T) {
	s := store(t, migrated(t))
	other := func(mode commit.PublishMode, want commit.PublishMode) {
		t.Helper()
		if got, err := s.OtherPublishMode(t.Context(), "g", committest.Part(0).Topic, mode); err != nil || got != want {
			t.Errorf("beside %s: got %q, %v, want %q", mode, got, err, want)
		}
	}
	other(commit.Idempotent, "") // never owned
	first := own(t, s, committest.Part(0), "a", 1)
	own(t, s, committest.Part(1), "a", 1)
	other(commit.Transactional, "")
	other(commit.Idempotent, commit.Transactional)
	if err := s.ChangePublishMode(t.Context(), "g", committest.Part(0).Topic, commit.Idempotent); err != nil {
		t.Fatal(err)
	}
	other(commit.Idempotent, "")
	other(commit.Transactional, commit.Idempotent)
	rows, err := s.Epochs(t.Context(), "g", []stream.Partition{committest.Part(0), committest.Part(1)})
	if err != nil || rows[0].PublishMode != commit.Idempotent || rows[1].PublishMode != commit.Idempotent || rows[0].Epoch != first.Epoch {
		t.Errorf("rows after the change: %+v, %v", rows, err)
	}
	claim := claimOf(rows[0], "b", 2)
	claim.PublishMode = commit.Idempotent
	if won, err := s.Acquire(t.Context(), []commit.Claim{claim}); err != nil || !won[0] {
		t.Errorf("a claim of the new mode: %v, %v", won, err)
	}
	var refused *commit.RefusedError
	_, err = s.Acquire(t.Context(), []commit.Claim{claimOf(rows[1], "c", 3)})
	if !errors.As(err, &refused) || refused.Stored != "idempotent" || refused.Found != "transactional" || refused.Remedy == "" {
		t.Errorf("a claim of the old mode: %v, want it refused with what is stored, what was found and the remedy", err)
	}
}
