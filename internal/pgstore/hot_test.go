package pgstore_test

import (
	"fmt"
	"testing"

	"milepost/internal/commit"
	"milepost/internal/commit/committest"
	"milepost/internal/pgstore"
	"milepost/internal/stream"
)

// P37, S10: a busy key's prepares fold each other in heap-only updates, and so do a partition's frontier writes; a
// statement that needs a scan of the table shows in the same statistics.
func TestBusyKeysUpdateHeapOnly(t *testing.T) {
	dsn := migrated(t)
	s := store(t, dsn)
	tn := own(t, s, committest.Part(0), "a", 1)
	const keys, rounds = 200, 60
	base := make([]stream.Revision, keys)
	for round := range rounds {
		batch := make([]commit.Commit, keys)
		for k := range batch {
			to := committest.Rev(int64(1000 + round*keys + k))
			batch[k] = commit.NewCommit(tn, stream.Key(fmt.Sprintf("k%04d", k)), base[k], commit.Plan{
				Next:    commit.Checkpoint{Revision: to, Segment: 1, State: noise(600, to.Offset)},
				Outputs: []commit.Output{{Topic: "out", Value: noise(400, to.Offset)}},
			})
			base[k] = to
		}
		mustPrepare(t, s, batch...)
		saveFrontier(t, s, tn, int64(1000+round), int64(round))
	}
	if _, err := s.Prepared(t.Context(), tn, "", keys); err != nil {
		t.Fatal(err)
	}
	s.Close() // a session hands its statistics in when it ends

	conn := connect(t, dsn)
	for _, table := range []struct {
		name  string
		least int64
	}{{"checkpoint", keys * (rounds - 1)}, {"partition_frontier", rounds}} {
		updates := func() int64 {
			return scalar[int64](t, conn, "SELECT n_tup_upd FROM pg_stat_user_tables WHERE relname = $1", table.name)
		}
		eventually(t, "the statistics of "+table.name+" are in", func() bool { return updates() >= table.least })
		hot := scalar[int64](t, conn, "SELECT n_tup_hot_upd FROM pg_stat_user_tables WHERE relname = $1", table.name)
		scans := scalar[int64](t, conn, "SELECT seq_scan FROM pg_stat_user_tables WHERE relname = $1", table.name)
		t.Logf("%s: %d of %d updates heap-only", table.name, hot, updates())
		if hot*100 < updates()*85 {
			t.Errorf("%s: %d of %d updates were heap-only, want 85 %% at least", table.name, hot, updates())
		}
		if allowed := int64(2); scans > allowed { // the index builds of the migrations
			t.Errorf("%s was scanned %d times", table.name, scans)
		}
	}
	if scalar[int64](t, conn, "SELECT idx_scan FROM pg_stat_user_indexes WHERE indexrelname = 'checkpoint_prepared'") == 0 {
		t.Error("the list of prepared commits did not use its index")
	}
}

func mustPrepare(tb testing.TB, s *pgstore.Store, batch ...commit.Commit) {
	tb.Helper()
	verdicts, err := s.Prepare(tb.Context(), batch)
	if err != nil {
		tb.Fatal(err)
	}
	for i, v := range verdicts {
		if v.Err != nil || v.Current {
			tb.Fatalf("prepare of %q: %+v", batch[i].Key, v)
		}
	}
}

func saveFrontier(tb testing.TB, s *pgstore.Store, tn *commit.Tenure, offset, floor int64) {
	tb.Helper()
	errs, err := s.SaveFrontier(tb.Context(), []commit.FrontierWrite{{
		Tenure: tn, Frontier: stream.Frontier{Next: committest.Rev(offset), LeaderEpoch: 1}, LedgerFloor: floor,
	}})
	if err != nil || errs[0] != nil {
		tb.Fatalf("save frontier: %v %v", errs, err)
	}
}
