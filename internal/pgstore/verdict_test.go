package pgstore_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"milepost/internal/commit"
	"milepost/internal/commit/committest"
	"milepost/internal/pgstore"
	"milepost/internal/stream"
)

// S7, H15g: what the database refuses for good fails its own commit alone; the rest of the batch is written, also beside
// two culprits, and so it goes with one that is too large or has no row.
func TestPermanentErrorsAreIsolated(t *testing.T) {
	s := store(t, migrated(t), func(c *pgstore.Config) { c.MaxRowBytes = 1 << 10 })
	tn := own(t, s, committest.Part(0), "a", 1)
	var batch []commit.Commit
	for i := range int64(50) {
		batch = append(batch, committest.CommitOf(tn, stream.Key(fmt.Sprintf("k%02d", i)), -1, 100+i))
	}
	culprits := map[int]string{7: "key over the limit", 8: "revision not above its base", 30: "state over the limit", 49: "no row"}
	batch[7] = committest.CommitOf(tn, stream.Key(strings.Repeat("x", 2001)), -1, 107)
	below := committest.CommitOf(tn, "below", -1, 500)
	mustPrepare(t, s, below)
	promoted(t, s, below)
	batch[8] = committest.CommitOf(tn, "below", 500, 400)
	batch[30].Next.State = make([]byte, 2<<10)
	batch[49] = commit.NewDeadLetter(tn, "dead", committest.Rev(149), commit.Output{Topic: "dead-letter"})
	verdicts, err := s.Prepare(t.Context(), batch)
	if err != nil {
		t.Fatal(err)
	}
	for i, v := range verdicts {
		what, culprit := culprits[i]
		switch {
		case culprit && (v.Err == nil || commit.ClassOf(v.Err) != commit.Permanent):
			t.Errorf("commit %d (%s): %v, want a permanent error", i, what, v.Err)
		case !culprit && v.Err != nil:
			t.Errorf("commit %d: %v, want prepared", i, v.Err)
		}
		if v.Err != nil && strings.Contains(v.Err.Error(), "state of") {
			t.Errorf("commit %d: the error quotes the payload: %v", i, v.Err)
		}
	}
}

// A12: an empty batch is no statement and no verdict.
func TestEmptyBatches(t *testing.T) {
	s := store(t, migrated(t))
	verdicts, err := s.Prepare(t.Context(), nil)
	errs, promoteErr := s.Promote(t.Context(), nil)
	frontiers, frontierErr := s.SaveFrontier(t.Context(), nil)
	quarantined, quarantineErr := s.Quarantine(t.Context(), nil)
	rows, restoreErr := s.Restore(t.Context(), tenureOf(committest.Part(0), 1, 1), nil)
	won, acquireErr := s.Acquire(t.Context(), nil)
	if err := errors.Join(err, promoteErr, frontierErr, quarantineErr, restoreErr, acquireErr); err != nil {
		t.Fatal(err)
	}
	if n := len(verdicts) + len(errs) + len(frontiers) + len(quarantined) + len(rows) + len(won); n != 0 {
		t.Errorf("%d answers to nothing", n)
	}
}

// A14: two frontiers of one partition in a batch leave the furthest of both columns, and each gets its verdict.
func TestFrontierTwiceInABatch(t *testing.T) {
	s := store(t, migrated(t))
	tn, gone := own(t, s, committest.Part(0), "a", 1), own(t, s, committest.Part(1), "a", 1)
	own(t, s, committest.Part(1), "b", 2)
	write := func(tn *commit.Tenure, offset, floor int64) commit.FrontierWrite {
		return commit.FrontierWrite{Tenure: tn, Frontier: stream.Frontier{Next: committest.Rev(offset), LeaderEpoch: 5}, LedgerFloor: floor}
	}
	errs, err := s.SaveFrontier(t.Context(), []commit.FrontierWrite{write(tn, 150, 20), write(gone, 300, 40), write(tn, 140, 30)})
	if err != nil || errs[0] != nil || errs[2] != nil {
		t.Fatalf("save frontier: %v, %v", errs, err)
	}
	refusedBy(t, errs[1], 2)
	starts, err := s.Start(t.Context(), []*commit.Tenure{tn})
	want := []commit.Start{{Frontier: stream.Frontier{Next: committest.Rev(150), LeaderEpoch: 5}, LedgerFloor: 30}}
	if diff := cmp.Diff(want, starts); err != nil || diff != "" {
		t.Errorf("start: %v (-want +got):\n%s", err, diff)
	}
}

// H7: a frontier of a later topic generation is ahead of any offset of an earlier one.
func TestFrontierOfTheNextTopicGeneration(t *testing.T) {
	s := store(t, migrated(t))
	tn := own(t, s, committest.Part(0), "a", 1)
	for _, next := range []stream.Revision{{Generation: 1, Offset: 900}, {Generation: 2, Offset: 0}, {Generation: 1, Offset: 901}} {
		errs, err := s.SaveFrontier(t.Context(), []commit.FrontierWrite{{Tenure: tn, Frontier: stream.Frontier{Next: next, LeaderEpoch: -1}}})
		if err != nil || errs[0] != nil {
			t.Fatal(errs, err)
		}
	}
	starts, err := s.Start(t.Context(), []*commit.Tenure{tn})
	if err != nil || starts[0].Frontier != (stream.Frontier{Next: stream.Revision{Generation: 2}, LeaderEpoch: -1}) || starts[0].LedgerFloor != 10 {
		t.Errorf("start: %+v, %v, want frontier 2.0, leader epoch unknown, floor 10", starts, err)
	}
}

// F8: a tail, a row whose state has expired, restores as such and not as a key never seen.
func TestTailRestoresAsExpired(t *testing.T) {
	dsn := migrated(t)
	s := store(t, dsn)
	tn := own(t, s, committest.Part(0), "a", 1)
	c := committest.CommitOf(tn, "k", -1, 100)
	mustPrepare(t, s, c)
	promoted(t, s, c)
	execute(t, connect(t, dsn), "UPDATE checkpoint SET state = NULL")
	rows, err := s.Restore(t.Context(), tn, []stream.Key{"k"})
	want := []commit.Restored{{Key: "k", Checkpoint: commit.Checkpoint{Revision: committest.Rev(100), Segment: 10}, Expired: true}}
	if diff := cmp.Diff(want, rows); err != nil || diff != "" {
		t.Errorf("restore: %v (-want +got):\n%s", err, diff)
	}
}

func observation(tn *commit.Tenure, key stream.Key, offset int64) commit.Quarantined {
	return commit.Quarantined{
		Tenure: tn, Key: key, Revision: committest.Rev(offset), Class: "permanent", Reason: "too \x00large \xff" + strings.Repeat("é", 2000),
		Record: stream.Record{Partition: tn.Partition, Offset: offset, Key: []byte(key), Value: []byte("v")},
	}
}

// H10(e): a poison prepared commit moves into the quarantine row in the statement that enters it, and is found there with all its bytes;
// one whose outputs are published stays, to be promoted.
func TestPoisonPreparedCommitMovesIntoQuarantine(t *testing.T) {
	dsn := migrated(t)
	s := store(t, dsn)
	tn := own(t, s, committest.Part(0), "a", 1)
	poison, published := committest.CommitOf(tn, "poison", -1, 100), committest.CommitOf(tn, "published", -1, 101)
	mustPrepare(t, s, poison, published)
	second := observation(tn, "published", 101)
	second.Published = true
	errs, err := s.Quarantine(t.Context(), []commit.Quarantined{observation(tn, "poison", 100), second, observation(tn, "poison", 103), observation(tn, "poison", 100)})
	if err := errors.Join(append(errs, err)...); err != nil {
		t.Fatal(err)
	}
	left, err := s.Prepared(t.Context(), tn, "", 10)
	if err != nil || len(left) != 1 || left[0].ID != published.ID {
		t.Errorf("prepared commits: %+v, %v, want only the published one", left, err)
	}
	conn := connect(t, dsn)
	outputs, err := commit.EncodeOutputs(&poison)
	if err != nil {
		t.Fatal(err)
	}
	if n := scalar[int](t, conn, `SELECT count(*) FROM quarantine WHERE key = 'poison' AND revision_offset = 100 AND prepared_id = $1
		AND prepared_state = $2 AND prepared_outputs = $3`, poison.ID, poison.Next.State, outputs); n != 1 {
		t.Error("the quarantine row does not hold the prepared commit")
	}
	if n := scalar[int](t, conn, "SELECT count(*) FROM quarantine"); n != 3 {
		t.Errorf("%d rows in quarantine, want 3", n)
	}
	rows, err := s.Restore(t.Context(), tn, []stream.Key{"poison"})
	if diff := cmp.Diff([]commit.Restored{{Key: "poison", Quarantined: true}}, rows); err != nil || diff != "" {
		t.Errorf("restore: %v (-want +got):\n%s", err, diff)
	}
}

// H10: the quarantine is bounded a partition; over the bound an observation is refused and a repeated one is still
// success, in the same batch too.
func TestQuarantineIsBounded(t *testing.T) {
	committest.RunFull(t, func(t *testing.T) committest.Stores {
		t.Helper()
		return store(t, migrated(t), func(c *pgstore.Config) { c.MaxQuarantine = 1 })
	})
	s := store(t, migrated(t), func(c *pgstore.Config) { c.MaxQuarantine = 3 })
	tn, other := own(t, s, committest.Part(0), "a", 1), own(t, s, committest.Part(1), "a", 1)
	errs, err := s.Quarantine(t.Context(), []commit.Quarantined{observation(tn, "a", 1), observation(tn, "b", 2)})
	if err := errors.Join(append(errs, err)...); err != nil {
		t.Fatal(err)
	}
	errs, err = s.Quarantine(t.Context(), []commit.Quarantined{
		observation(tn, "b", 9), observation(tn, "a", 1), observation(tn, "c", 4), observation(other, "a", 5),
	})
	if err != nil {
		t.Fatal(err)
	}
	var full []bool
	for _, err := range errs {
		full = append(full, errors.Is(err, commit.ErrQuarantineFull))
	}
	if diff := cmp.Diff([]bool{false, false, true, false}, full); diff != "" {
		t.Errorf("refused for want of room (-want +got):\n%s\n%v", diff, errs)
	}
}

// P31, P32, H8, H12: a raw topic made again, a grown one, a ledger made again and a ledger of another group are refused with an error that
// names the difference and the remedy; no row is touched.
func TestAcquireRefusesAnotherTopic(t *testing.T) {
	dsn := migrated(t)
	s := store(t, dsn)
	own(t, s, committest.Part(0), "a", 1)
	rows, err := s.Epochs(t.Context(), "g", []stream.Partition{committest.Part(0), committest.Part(1)})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name   string
		change func(*commit.Claim)
		says   string
	}{
		{"raw topic made again", func(c *commit.Claim) { c.TopicID = [16]byte{9} }, "raw topic's id"},
		{"ledger made again", func(c *commit.Claim) { c.LedgerTopicID = [16]byte{9} }, "ledger topic's id"},
		{"partitions added", func(c *commit.Claim) { c.Partitions = 12 }, "partition count is 12"},
		{"ledger of another group", func(c *commit.Claim) { c.Group = "other" }, "also claimed by group \"other\""},
	} {
		t.Run(c.name, func(t *testing.T) {
			claims := []commit.Claim{claimOf(rows[0], "b", 2), claimOf(rows[1], "b", 2)}
			for i := range claims {
				c.change(&claims[i])
			}
			_, err := s.Acquire(t.Context(), claims)
			var refused *commit.RefusedError
			if !errors.As(err, &refused) || commit.ClassOf(err) != commit.Permanent || !strings.Contains(err.Error(), c.says) || refused.Remedy == "" {
				t.Errorf("acquire: %v, want it refused because of the %s", err, c.says)
			}
			if n := scalar[int](t, connect(t, dsn), "SELECT sum(epoch) FROM partition_owner"); n != 1 {
				t.Errorf("epochs add up to %d, want 1: a refused claim took a partition", n)
			}
		})
	}
}

// A17: status shows a partition as its rows stand.
func TestStatus(t *testing.T) {
	s := store(t, migrated(t))
	tn := own(t, s, committest.Part(0), "a", 1)
	own(t, s, committest.Part(1), "a", 1)
	own(t, s, committest.Part(1), "b", 2)
	mustPrepare(t, s, committest.CommitOf(tn, "k", -1, 100))
	saveFrontier(t, s, tn, 120, 11)
	if _, err := s.Quarantine(t.Context(), []commit.Quarantined{observation(tn, "q", 7)}); err != nil {
		t.Fatal(err)
	}
	if err := s.Release(t.Context(), tn); err != nil {
		t.Fatal(err)
	}
	got, err := s.Status(t.Context(), "g", "raw")
	if err != nil || len(got) != 2 {
		t.Fatalf("status: %+v, %v", got, err)
	}
	for i := range got {
		if got[i].AcquiredAt.IsZero() || got[i].SeenAt.IsZero() {
			t.Errorf("partition %d has no times: %+v", i, got[i])
		}
		got[i].AcquiredAt, got[i].SeenAt = got[0].AcquiredAt, got[0].AcquiredAt
	}
	at := got[0].AcquiredAt
	want := []pgstore.PartitionStatus{{
		Partition: committest.Part(0), Instance: "a", MemberID: "member-a", Epoch: 1, Generation: 7, Released: true, AcquiredAt: at, SeenAt: at,
		Frontier: stream.Frontier{Next: committest.Rev(120), LeaderEpoch: 1}, LedgerFloor: 11, Prepared: 1, Quarantined: 1, Aside: 1,
	}, {
		Partition: committest.Part(1), Instance: "b", MemberID: "member-b", Epoch: 2, Generation: 7, Formers: 1, AcquiredAt: at, SeenAt: at,
		Frontier: stream.Frontier{Next: committest.Rev(100), LeaderEpoch: 5}, LedgerFloor: 10,
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("status (-want +got):\n%s", diff)
	}
}
