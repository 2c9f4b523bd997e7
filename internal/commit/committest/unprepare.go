package committest

import (
	"context"
	"testing"

	"milepost/internal/commit"
)

// Unprepare implements commit.Store.
func (m *MemoryStore) Unprepare(ctx context.Context, p commit.Promotion) error {
	var refused error
	err := m.do(ctx, "unprepare", func() {
		if refused = m.fence(p.Tenure); refused != nil {
			return
		}
		if r := m.rows[rowKey{keyOf(p.Tenure), p.Key}]; r != nil && r.prepared != nil && r.prepared.ID == p.ID {
			r.prepared = nil
		}
	})
	if err != nil {
		return err
	}
	return refused
}

// testUnprepare proves that a commit taken out of its row is as if it had never been prepared, and that no other is touched.
func testUnprepare(t *testing.T, s Stores) {
	tn := Own(t, s, Part(0), "a", 1)
	first := CommitOf(tn, "k", -1, 100)
	mustPrepare(t, s, first)
	promote(t, s, first)
	run := CommitOf(tn, "k", 100, 103)
	run.Earlier = []int64{101, 102}
	mustPrepare(t, s, run, CommitOf(tn, "new", -1, 104))
	page, err := s.Prepared(t.Context(), tn, "", 10)
	if err != nil || len(page) != 2 || len(page[0].Earlier) != 2 || page[0].Earlier[1] != 102 {
		t.Fatalf("prepared commits: %+v %v, want the run with all of its observations", page, err)
	}
	name := func(c commit.Commit) commit.Promotion {
		return commit.Promotion{Tenure: tn, Key: c.Key, Revision: c.Revision, ID: c.ID}
	}
	if err := s.Unprepare(t.Context(), name(first)); err != nil { // it is current, and not what stands prepared
		t.Fatal(err)
	}
	if r := restore(t, s, tn, "k"); r.Prepared == nil || r.Checkpoint.Revision != Rev(100) {
		t.Fatalf("after the taking out another commit: %+v", r)
	}
	for range 2 { // a lost answer brings the same again
		for _, c := range page {
			if err := s.Unprepare(t.Context(), name(c)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if r := restore(t, s, tn, "k"); r.Prepared != nil || r.Checkpoint.Revision != Rev(100) {
		t.Errorf("after taking it out: %+v, want the checkpoint alone", r)
	}
	if r := restore(t, s, tn, "new"); r.Prepared != nil || !r.Checkpoint.Revision.IsZero() {
		t.Errorf("after taking out a first commit: %+v, want nothing", r)
	}
	mustPrepare(t, s, CommitOf(tn, "k", 100, 101), CommitOf(tn, "new", -1, 104))
	standing := restore(t, s, tn, "k").Prepared
	Own(t, s, Part(0), "b", 2)
	if err := s.Unprepare(t.Context(), name(*standing)); commit.ClassOf(err) != commit.Fenced {
		t.Errorf("taken out under an older epoch: %v, want it fenced", err)
	}
	if r := restore(t, s, tn, "k"); r.Prepared == nil {
		t.Error("an older epoch took a prepared commit out")
	}
}
