package pgstore_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"milepost/internal/commit"
	"milepost/internal/commit/committest"
	"milepost/internal/pgstore"
	"milepost/internal/stream"
)

const lockOwner = "SELECT FROM partition_owner WHERE partition = $1 FOR "

// takeOver makes the next epoch of a partition the way an acquisition does, in the connection's open transaction.
func takeOver(t *testing.T, conn *pgx.Conn, partition int32) {
	t.Helper()
	execute(t, conn, lockOwner+"UPDATE", partition)
	execute(t, conn, "UPDATE partition_owner SET epoch = epoch + 1, nonce = gen_random_uuid() WHERE partition = $1", partition)
}

func refusedBy(t *testing.T, err error, owner stream.Epoch) {
	t.Helper()
	var fenced *commit.FencedError
	if !errors.As(err, &fenced) || fenced.Owner != owner {
		t.Errorf("verdict %v, want fenced by the owner of epoch %d", err, owner)
	}
}

// P1, I13, F6: a write of the former owner that arrives while the acquisition is under way waits for it and is refused; no
// update and no insert of it lands.
func TestWriteDuringAcquisitionIsRefused(t *testing.T) {
	dsn := migrated(t)
	s := store(t, dsn)
	tn := own(t, s, committest.Part(0), "a", 1)
	mustPrepare(t, s, committest.CommitOf(tn, "k", -1, 100))

	acquirer, watch := connect(t, dsn), connect(t, dsn)
	execute(t, acquirer, "BEGIN")
	takeOver(t, acquirer, 0)
	answer := make(chan []commit.PrepareVerdict, 1)
	go func() {
		v, err := s.Prepare(context.Background(), []commit.Commit{committest.CommitOf(tn, "k", 100, 101), committest.CommitOf(tn, "new", -1, 102)})
		if err != nil {
			t.Error(err)
		}
		answer <- v
	}()
	eventually(t, "the zombie waits at the fence", func() bool { return waiters(t, watch, "%fence%") == 1 })
	execute(t, acquirer, "COMMIT")
	for _, v := range <-answer {
		refusedBy(t, v.Err, 2)
	}
	if n := scalar[int](t, watch, "SELECT count(*) FROM checkpoint WHERE prepared_offset > 100"); n != 0 {
		t.Errorf("%d rows of the zombie landed", n)
	}
}

// I13, S4: the fence judges the newest version of an owner row even where a plain update (Recovered, Release) stands between
// the version that the write saw first and the acquisition. KEY SHARE alone would lock the old version and pass.
func TestFenceFollowsAnOwnerRowThroughItsVersions(t *testing.T) {
	dsn := migrated(t)
	s := store(t, dsn)
	first, second := own(t, s, committest.Part(0), "a", 1), own(t, s, committest.Part(1), "a", 1)

	gate, watch := connect(t, dsn), connect(t, dsn)
	execute(t, gate, "BEGIN")
	execute(t, gate, lockOwner+"UPDATE", 0)
	answer := make(chan []commit.PrepareVerdict, 1)
	go func() { // its snapshot is taken, then it waits for partition 0's row; partition 1's it has not looked at
		v, err := s.Prepare(context.Background(), []commit.Commit{committest.CommitOf(first, "k", -1, 100), committest.CommitOf(second, "k", -1, 100)})
		if err != nil {
			t.Error(err)
		}
		answer <- v
	}()
	eventually(t, "the write waits at the first row", func() bool { return waiters(t, watch, "%fence%") == 1 })
	if err := s.Recovered(t.Context(), second, nil); err != nil {
		t.Fatal(err)
	}
	own(t, s, committest.Part(1), "b", 2)
	execute(t, gate, "COMMIT")
	verdicts := <-answer
	if verdicts[0].Err != nil {
		t.Errorf("partition 0 is still ours: %v", verdicts[0].Err)
	}
	refusedBy(t, verdicts[1].Err, 2)
}

// H5: an acquisition waits for a write under way, and what that write left is seen by Start, in its later statement.
func TestStartSeesWhatTheAcquisitionWaitedFor(t *testing.T) {
	dsn := migrated(t)
	s := store(t, dsn)
	own(t, s, committest.Part(0), "a", 1)
	rows, err := s.Epochs(t.Context(), "g", []stream.Partition{committest.Part(0)})
	if err != nil {
		t.Fatal(err)
	}

	former, watch := connect(t, dsn), connect(t, dsn)
	execute(t, former, "BEGIN")
	execute(t, former, lockOwner+"KEY SHARE", 0)
	won := make(chan bool, 1)
	go func() {
		w, err := s.Acquire(context.Background(), []commit.Claim{claimOf(rows[0], "b", 2)})
		if err != nil {
			t.Error(err)
		}
		won <- err == nil && w[0]
	}()
	eventually(t, "the acquirer waits for the write", func() bool { return waiters(t, watch, "%locked%") == 1 })
	execute(t, former, "UPDATE partition_frontier SET next_offset = 200, ledger_floor = 90")
	execute(t, former, `INSERT INTO checkpoint (group_id, topic, partition, key, has_prepared, prepared_generation, prepared_offset, prepared_segment,
		prepared_epoch, prepared_id, prepared_state, prepared_outputs) VALUES ('g', 'raw', 0, 'k', true, 1, 150, 1, 1, gen_random_uuid(), '', '')`)
	execute(t, former, "COMMIT")
	if !<-won {
		t.Fatal("the acquisition was lost to nobody")
	}
	starts, err := s.Start(t.Context(), []*commit.Tenure{tenureOf(committest.Part(0), 2, 2)})
	if err != nil || starts[0].Frontier.Next != committest.Rev(200) || starts[0].LedgerFloor != 90 || starts[0].Prepared != 1 {
		t.Errorf("start: %+v, %v, want frontier 1.200, floor 90 and a prepared row", starts, err)
	}
	refused := tenureOf(committest.Part(0), 1, 1)
	_, err = s.Start(t.Context(), []*commit.Tenure{refused})
	refusedBy(t, err, 2)
}

// H15h: a plain UPDATE of the epoch passes under a write's KEY SHARE at once; FOR UPDATE, which the acquisition takes, waits.
func TestPlainUpdatePassesUnderKeyShare(t *testing.T) {
	dsn := migrated(t)
	s := store(t, dsn, func(c *pgstore.Config) { c.LockTimeout = 100 * time.Millisecond })
	own(t, s, committest.Part(0), "a", 1)
	rows, err := s.Epochs(t.Context(), "g", []stream.Partition{committest.Part(0)})
	if err != nil {
		t.Fatal(err)
	}
	writer, other := connect(t, dsn), connect(t, dsn)
	execute(t, writer, "BEGIN")
	execute(t, writer, lockOwner+"KEY SHARE", 0)
	execute(t, other, "BEGIN")
	execute(t, other, "SET LOCAL lock_timeout = '100ms'")
	execute(t, other, "UPDATE partition_owner SET epoch = epoch + 1")
	execute(t, other, "ROLLBACK")
	_, err = s.Acquire(t.Context(), []commit.Claim{claimOf(rows[0], "b", 2)})
	var pg *pgconn.PgError
	if !errors.As(err, &pg) || pg.Code != "55P03" || commit.ClassOf(err) != commit.Transient {
		t.Errorf("acquire under a held KEY SHARE: %v, want a transient lock time-out", err)
	}
	execute(t, writer, "COMMIT")
	if won, err := s.Acquire(t.Context(), []commit.Claim{claimOf(rows[0], "b", 2)}); err != nil || !won[0] {
		t.Errorf("acquire after the write: %v, %v", won, err)
	}
}

// P36: a session of ours that stands still in a transaction with the share lock (a process stopped there) is ended by the server; the successor's
// claim, retried, passes within 6 s, and the zombie's next statement fails.
func TestZombieIdleInTransaction(t *testing.T) {
	dsn := migrated(t)
	cfg := pgstore.DefaultConfig()
	if cfg.IdleInTransaction > 5*time.Second || cfg.LockTimeout > 5*time.Second {
		t.Errorf("defaults let a zombie block for %s", max(cfg.IdleInTransaction, cfg.LockTimeout))
	}
	s := store(t, dsn, func(c *pgstore.Config) {
		c.IdleInTransaction, c.LockTimeout = time.Second, 300*time.Millisecond
	})
	own(t, s, committest.Part(0), "a", 1)
	rows, err := s.Epochs(t.Context(), "g", []stream.Partition{committest.Part(0)})
	if err != nil {
		t.Fatal(err)
	}
	zombie, err := s.Pool().Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer zombie.Release()
	execute(t, zombie.Conn(), "BEGIN")
	execute(t, zombie.Conn(), lockOwner+"KEY SHARE", 0)
	began, refusals := time.Now(), 0
	for {
		won, err := s.Acquire(t.Context(), []commit.Claim{claimOf(rows[0], "b", 2)})
		if err == nil && won[0] {
			break
		}
		if refusals++; time.Since(began) > 6*time.Second {
			t.Fatalf("the zombie still blocks its successor: %v", err)
		}
	}
	if refusals == 0 {
		t.Error("the successor did not have to wait: the zombie held nothing")
	}
	if _, err := zombie.Exec(t.Context(), "UPDATE partition_frontier SET next_offset = 999"); err == nil {
		t.Error("the zombie's write went through")
	}
}

// P2: two processes hold the same base for the same observation; the new owner commits, the former is fenced, one row.
func TestSameObservationByTwoOwners(t *testing.T) {
	dsn := migrated(t)
	a, b := store(t, dsn), store(t, dsn)
	old := own(t, a, committest.Part(0), "a", 1)
	c := committest.CommitOf(old, "k", -1, 116)
	mustPrepare(t, a, c)
	promoted(t, a, c)
	now := own(t, b, committest.Part(0), "b", 2)
	theirs, ours := committest.CommitOf(old, "k", 116, 117), committest.CommitOf(now, "k", 116, 117)
	mustPrepare(t, b, ours)
	v, err := a.Prepare(t.Context(), []commit.Commit{theirs})
	if err != nil {
		t.Fatal(err)
	}
	refusedBy(t, v[0].Err, 2)
	promoted(t, b, ours)
	got, err := b.Restore(t.Context(), now, []stream.Key{"k"})
	if err != nil || got[0].Checkpoint.Revision != committest.Rev(117) || got[0].Prepared != nil {
		t.Errorf("the key restores as %+v, %v", got, err)
	}
	if n := scalar[int](t, connect(t, dsn), "SELECT count(*) FROM checkpoint"); n != 1 {
		t.Errorf("%d rows for one key", n)
	}
}

func promoted(t *testing.T, s *pgstore.Store, c commit.Commit) {
	t.Helper()
	errs, err := s.Promote(t.Context(), []commit.Promotion{{Tenure: c.Tenure, Key: c.Key, Revision: c.Revision, ID: c.ID}})
	if err != nil || errs[0] != nil {
		t.Fatalf("promote: %v %v", errs, err)
	}
}

// H15f: acquisitions and group commits that name the same two partitions in opposite orders, 200 times at once, never
// deadlock: every one of them answers, and a commit's two verdicts are each for itself.
func TestLockOrderHasNoDeadlock(t *testing.T) {
	dsn := migrated(t)
	s := store(t, dsn)
	parts := []stream.Partition{committest.Part(0), committest.Part(1)}
	backwards := []stream.Partition{parts[1], parts[0]}
	tenures := []*commit.Tenure{own(t, s, parts[0], "a", 1), own(t, s, parts[1], "a", 1)}
	for round := range 200 {
		rows, err := s.Epochs(t.Context(), "g", backwards)
		if err != nil {
			t.Fatal(err)
		}
		nonce := byte(round%250 + 2)
		var wg sync.WaitGroup
		wg.Go(func() {
			if won, err := s.Acquire(context.Background(), []commit.Claim{claimOf(rows[0], "b", nonce), claimOf(rows[1], "b", nonce)}); err != nil || !won[0] || !won[1] {
				t.Errorf("round %d: acquire %v, %v", round, won, err)
			}
		})
		for i := range 2 {
			wg.Go(func() {
				key := stream.Key(fmt.Sprintf("k%d-%d", round, i))
				batch := []commit.Commit{committest.CommitOf(tenures[i], key, -1, 100), committest.CommitOf(tenures[1-i], key, -1, 100)}
				v, err := s.Prepare(context.Background(), batch)
				if err != nil {
					t.Errorf("round %d: prepare: %v", round, err)
					return
				}
				for _, v := range v {
					if v.Err != nil && commit.ClassOf(v.Err) != commit.Fenced {
						t.Errorf("round %d: %v", round, v.Err)
					}
				}
			})
		}
		wg.Wait()
		tenures = []*commit.Tenure{tenureOf(parts[0], rows[1].Epoch+1, nonce), tenureOf(parts[1], rows[0].Epoch+1, nonce)}
	}
}
