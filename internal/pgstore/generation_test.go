package pgstore_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"milepost/internal/commit"
	"milepost/internal/commit/committest"
	"milepost/internal/pgstore"
	"milepost/internal/stream"
)

func next(partitions int32, starts map[int32]int64) pgstore.Generation {
	return pgstore.Generation{
		Group: "g", Topic: "raw", TopicID: [16]byte{7}, LedgerTopicID: [16]byte{2}, Partitions: partitions, Starts: starts,
		Ends: map[int32]int64{0: 150, 1: 150}, LedgerStarts: map[int32]int64{2: 5},
	}
}

// H7(a), P31, F13: opening a topic generation is one transaction: every epoch grows, a write of the former owner is refused, topic
// generation and frontier move together, and what stood prepared still stands.
func TestOpenGeneration(t *testing.T) {
	dsn := migrated(t)
	s := store(t, dsn)
	p0, p1 := committest.Part(0), committest.Part(1)
	a := own(t, s, p0, "a", 1)
	b := own(t, s, p1, "b", 2)
	if err := s.Release(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	mustPrepare(t, s, committest.CommitOf(a, "k", -1, 100))
	saveFrontier(t, s, a, 120, 11)

	g := next(8, map[int32]int64{0: 3, 1: 0, 2: 0, 3: 0, 4: 0, 5: 0, 6: 0, 7: 0})
	g.Anew = "operator"
	got, err := s.OpenGeneration(t.Context(), g)
	if diff := cmp.Diff(pgstore.Opened{TopicGeneration: 2, Fenced: []string{"a"}, Formers: []commit.Former{{Instance: "a", Lanes: 3, Epoch: 1}}}, got); err != nil || diff != "" {
		t.Fatalf("opened: %v (-want +got):\n%s", err, diff)
	}
	errs, err := s.SaveFrontier(t.Context(), []commit.FrontierWrite{{Tenure: a, Frontier: stream.Frontier{Next: committest.Rev(130)}}})
	if err != nil || errs[0] == nil || commit.ClassOf(errs[0]) != commit.Fenced {
		t.Errorf("a write of the former owner: %v, %v, want it fenced", errs, err)
	}
	rows, err := s.Epochs(t.Context(), "g", []stream.Partition{p0})
	if err != nil || rows[0].TopicGeneration != 2 || rows[0].TopicID != [16]byte{7} || rows[0].Epoch != 2 {
		t.Fatalf("row: %+v, %v", rows, err)
	}
	c := claimOf(rows[0], "c", 3)
	c.TopicID, c.TopicGeneration = [16]byte{7}, 2
	won, err := s.Acquire(t.Context(), []commit.Claim{c})
	if err != nil || !won[0] {
		t.Fatalf("acquire: %v, %v", won, err)
	}
	tn := commit.NewTenure(commit.Ownership{Group: "g", Partition: p0, TopicGeneration: 2, Epoch: 3, Nonce: stream.Nonce{3}, MemberID: "m"})
	starts, err := s.Start(t.Context(), []*commit.Tenure{tn})
	want := []commit.Start{{
		Frontier: stream.Frontier{Next: stream.Revision{Generation: 2, Offset: 3}, LeaderEpoch: -1}, LedgerFloor: 11, Prepared: 1,
		Formers: []commit.Former{{Instance: "a", Lanes: 3, Epoch: 1}},
		Anew:    commit.Anew{Before: stream.Revision{Generation: 2}, Reason: "operator"},
	}}
	if diff := cmp.Diff(want, starts); err != nil || diff != "" {
		t.Errorf("start: %v (-want +got):\n%s", err, diff)
	}
}

// H3, P32: where keys move, everything of the old layout must be done first, and rows that would lose their owner refuse
// the generation; all reasons are given at once and nothing changes.
func TestOpenGenerationRefuses(t *testing.T) {
	dsn := migrated(t)
	s := store(t, dsn)
	a := own(t, s, committest.Part(0), "a", 1)
	b := own(t, s, committest.Part(1), "b", 2)
	grown := next(10, map[int32]int64{8: 0, 9: 0})
	for n := int32(2); n < 8; n++ {
		grown.Starts[n] = 0
	}
	saveFrontier(t, s, a, 150, 10)
	mustPrepare(t, s, committest.CommitOf(a, "k", -1, 100))
	if _, err := s.Quarantine(t.Context(), []commit.Quarantined{observation(b, "q", 7)}); err != nil {
		t.Fatal(err)
	}
	refused := func(g pgstore.Generation, reasons ...string) {
		t.Helper()
		_, err := s.OpenGeneration(t.Context(), g)
		var e *pgstore.NotOpenedError
		if !errors.As(err, &e) || len(e.Reasons) != len(reasons) {
			t.Fatalf("opened: %v, want it refused for %q", err, reasons)
		}
		for i, r := range reasons {
			if !strings.Contains(e.Reasons[i], r) {
				t.Errorf("reason %q, want %q", e.Reasons[i], r)
			}
		}
		if n := scalar[int](t, connect(t, dsn), "SELECT sum(epoch) FROM partition_owner"); n != 2 {
			t.Errorf("epochs add up to %d, want 2", n)
		}
	}
	refused(grown, "partition 0 has 1 commits that stand prepared", "partition 1 has 1 observations in quarantine")
	refused(next(1, map[int32]int64{0: 0}), "partition 0 has 1 commits", "partition 1 has 1 observations")
	c := committest.CommitOf(a, "k", -1, 100)
	if _, err := s.Promote(t.Context(), []commit.Promotion{{Tenure: a, Key: c.Key, Revision: c.Revision, ID: c.ID}}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Discard(t.Context(), b, "q", 0); err != nil {
		t.Fatal(err)
	}
	refused(grown, "partition 1 is done up to 100 of 150")
	refused(pgstore.Generation{Group: "other", Topic: "raw", Partitions: 1}, "never owned", "no frontier")
	grown.Unordered = true
	if _, err := s.OpenGeneration(t.Context(), grown); err != nil {
		t.Errorf("with the order given up: %v", err)
	}
	// The added partitions are in the new generation too: their revisions are above all that was published.
	if n := scalar[int](t, connect(t, dsn), "SELECT count(*) FROM partition_owner WHERE topic_generation = 2 AND partitions = 10"); n != 10 {
		t.Errorf("%d rows are in the new generation, want 10", n)
	}
	if at := scalar[int64](t, connect(t, dsn), "SELECT next_offset FROM partition_frontier WHERE partition = 0 AND topic_generation = 2"); at != 150 {
		t.Errorf("partition 0 goes on at %d, want 150", at)
	}
}

// H12: a ledger that was made again is accepted by an operator alone; floors move to where it starts, and owners are fenced.
func TestAcceptLedger(t *testing.T) {
	s := store(t, migrated(t))
	a := own(t, s, committest.Part(0), "a", 1)
	mustPrepare(t, s, committest.CommitOf(a, "k", -1, 100))
	saveFrontier(t, s, a, 120, 1000)
	prepared, err := s.AcceptLedger(t.Context(), "g", "raw", [16]byte{9}, map[int32]int64{0: 4, 1: 0})
	if err != nil || prepared != 1 {
		t.Fatalf("accept: %d, %v", prepared, err)
	}
	rows, err := s.Epochs(t.Context(), "g", []stream.Partition{committest.Part(0)})
	if err != nil || rows[0].Epoch != 2 || rows[0].LedgerTopicID != [16]byte{9} || rows[0].TopicGeneration != 1 {
		t.Errorf("row: %+v, %v", rows, err)
	}
	status, err := s.Status(t.Context(), "g", "raw")
	if err != nil || status[0].LedgerFloor != 4 || status[0].Frontier.Next != committest.Rev(120) {
		t.Errorf("status: %+v, %v", status, err)
	}
}
