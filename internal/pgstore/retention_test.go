package pgstore_test

import (
	"testing"

	"milepost/internal/commit"
	"milepost/internal/commit/committest"
	"milepost/internal/pgstore"
	"milepost/internal/stream"
)

// T1, A5: retention passes the suite that the memory store passes.
func TestRetentionConforms(t *testing.T) {
	dsn := migrated(t)
	s := store(t, dsn)
	admin := connect(t, dsn)
	committest.RunRetention(t, func(t *testing.T) committest.Retainers {
		t.Helper()
		execute(t, admin, "TRUNCATE partition_owner, partition_frontier, checkpoint, quarantine, operator_request")
		return s
	})
}

// F8: an expired state is one after the migration is taken back, too: a program of before finds no state and a revision. Rows of before
// the migration count from then on.
func TestExpiredOverMigrations(t *testing.T) {
	dsn := migrated(t)
	s := store(t, dsn)
	tn := own(t, s, committest.Part(0), "a", 1)
	gone, kept := committest.CommitOf(tn, "gone", -1, 50), committest.CommitOf(tn, "kept", -1, 51)
	mustPrepare(t, s, gone, kept)
	promoted(t, s, gone)
	promoted(t, s, kept)
	n, err := s.Expire(t.Context(), tn, []commit.Tail{{Key: "gone", Revision: committest.Rev(50), State: []byte("tail")}})
	if err != nil || n != 1 {
		t.Fatalf("%d expired, %v", n, err)
	}
	s.Close()
	for scalar[int64](t, connect(t, dsn), "SELECT count(*) FROM information_schema.columns WHERE table_name = 'checkpoint' AND column_name = 'expired'") > 0 {
		if len(migrate(t, dsn, pgstore.MigrateDown)) == 0 {
			t.Fatal("the column outlasts every migration")
		}
	}
	if without := scalar[string](t, connect(t, dsn), "SELECT string_agg(convert_from(key, 'UTF8'), ' ') FROM checkpoint WHERE state IS NULL"); without != "gone" {
		t.Errorf("after down, without a state: %q, want gone", without)
	}
	migrate(t, dsn, pgstore.MigrateUp)
	again := store(t, dsn)
	rows, err := again.Restore(t.Context(), own(t, again, committest.Part(0), "b", 2), []stream.Key{"gone", "kept"})
	if err != nil || !rows[0].Expired || rows[1].Expired || string(rows[1].Checkpoint.State) != string(kept.Next.State) {
		t.Errorf("after down and up: %+v, %v, want gone expired and kept kept", rows, err)
	}
	if young := scalar[bool](t, connect(t, dsn), "SELECT bool_and(touched_at > now() - interval '1 hour') FROM checkpoint"); !young {
		t.Error("rows of before the migration are old at once")
	}
}
