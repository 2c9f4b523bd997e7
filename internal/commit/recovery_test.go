package commit_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"milepost/internal/commit"
	"milepost/internal/commit/committest"
	"milepost/internal/stream"
)

func (r *rig) recovery() commit.Recovery {
	return commit.Recovery{
		Store: r.store, Owners: r.store, Ledger: r.broker, Pipeline: r.pipeline,
		Backoff: func(ctx context.Context, _ int) error { return ctx.Err() },
	}
}

func (r *rig) recover(t *testing.T, tn *commit.Tenure) (commit.RecoveryReport, error) {
	t.Helper()
	starts, err := r.store.Start(t.Context(), []*commit.Tenure{tn})
	if err != nil {
		t.Fatal(err)
	}
	return r.recovery().Run(t.Context(), tn, starts[0])
}

// leave prepares a commit and, if published is set, publishes it, as an owner that died there would have.
func (r *rig) leave(t *testing.T, c commit.Commit, published bool) {
	t.Helper()
	verdicts, err := r.store.Prepare(t.Context(), []commit.Commit{c})
	if err != nil || verdicts[0].Err != nil {
		t.Fatalf("prepare: %v %v", verdicts, err)
	}
	if published {
		if _, err := r.broker.Publish(t.Context(), 0, []commit.Commit{c}); err != nil {
			t.Fatal(err)
		}
	}
}

// A2, P20, C7: what the ledger has is promoted, what it lacks is published once, then promoted; below the frontier it is done.
func TestRecoveryFinishesPreparedCommits(t *testing.T) {
	r := newRig(t, 2, commit.DefaultPipelineConfig())
	a := ownFrom0(t, r, "a", 1)
	r.leave(t, committest.CommitOf(a, "below the frontier", -1, 100), true)
	r.broker.Truncate(committest.Part(0), 1)
	save(t, r.store, a, 101, 1)
	r.leave(t, committest.CommitOf(a, "published", -1, 101), true)
	r.leave(t, committest.CommitOf(a, "prepared", -1, 102), false)
	dead := commit.NewDeadLetter(a, "poison", committest.Rev(103), commit.Output{Topic: "dead", Key: []byte("poison"), Value: []byte("x")})
	if _, err := r.broker.Publish(t.Context(), 0, []commit.Commit{dead}); err != nil {
		t.Fatal(err)
	}

	b := ownFrom0(t, r, "b", 2)
	got, err := r.recover(t, b)
	if err != nil {
		t.Fatal(err)
	}
	want := commit.RecoveryReport{
		Partition: committest.Part(0), Frontier: stream.Frontier{Next: committest.Rev(101), LeaderEpoch: 5}, Epoch: 2,
		LedgerFloor: 1, LedgerHighest: 3, Prepared: 3, Promoted: 2, Published: 1, Done: []int64{103},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("report (-want +got):\n%s", diff)
	}
	values := []string{"below the frontier=output 100", "published=output 101", "poison=x", "prepared=output 102"}
	if diff := cmp.Diff(values, r.broker.Values()); diff != "" {
		t.Errorf("published (-want +got):\n%s", diff)
	}
	for key, row := range r.store.Checkpoints("g", committest.Part(0)) {
		if row.Prepared != nil || row.Checkpoint.Revision.IsZero() {
			t.Errorf("row of %q after the recovery: %+v", key, row)
		}
	}
	starts, err := r.store.Start(t.Context(), []*commit.Tenure{b})
	if err != nil || len(starts[0].Formers) != 0 {
		t.Errorf("formers after the recovery: %v %v", starts, err)
	}
	again, err := r.recover(t, b)
	if err != nil || again.Prepared != 0 || len(r.broker.Values()) != len(values) {
		t.Errorf("a second recovery: %+v, %v, %v", again, err, r.broker.Values())
	}
}

func save(t *testing.T, s commit.Store, tn *commit.Tenure, offset, floor int64) {
	t.Helper()
	errs, err := s.SaveFrontier(t.Context(), []commit.FrontierWrite{{
		Tenure: tn, Frontier: stream.Frontier{Next: committest.Rev(offset), LeaderEpoch: 5}, LedgerFloor: floor,
	}})
	if err != nil || errs[0] != nil {
		t.Fatalf("save frontier: %v %v", errs, err)
	}
}

// ownFrom0 acquires with the ledger floor at the memory ledger's start.
func ownFrom0(t *testing.T, r *rig, instance string, nonce byte) *commit.Tenure {
	t.Helper()
	rows, err := r.store.Epochs(t.Context(), "g", []stream.Partition{committest.Part(0)})
	if err != nil {
		t.Fatal(err)
	}
	won, err := r.store.Acquire(t.Context(), []commit.Claim{{
		Group: "g", Partition: committest.Part(0), Expected: rows[0].Epoch, Nonce: stream.Nonce{nonce}, Generation: 1, MemberID: "m",
		Instance: instance, Lanes: 2, TopicGeneration: 1, Partitions: 4, First: stream.Frontier{Next: committest.Rev(100)},
	}})
	if err != nil || !won[0] {
		t.Fatalf("acquire: %v %v", won, err)
	}
	return commit.NewTenure(commit.Ownership{
		Group: "g", Partition: committest.Part(0), TopicGeneration: 1, Epoch: rows[0].Epoch + 1, Nonce: stream.Nonce{nonce}, MemberID: "m",
	})
}

// P34, C7: a recovery that is broken off anywhere is begun again by the next owner; every row ends published exactly once.
func TestRecoveryBrokenOff(t *testing.T) {
	for cut := range 12 {
		t.Run(fmt.Sprint("after ", cut, " store calls"), func(t *testing.T) {
			r := newRig(t, 2, commit.DefaultPipelineConfig())
			a := ownFrom0(t, r, "a", 1)
			for i := range int64(20) {
				r.leave(t, committest.CommitOf(a, stream.Key(fmt.Sprint("k", i)), -1, 100+i), i%2 == 0)
			}
			calls := atomic.Int64{}
			b := ownFrom0(t, r, "b", 2)
			r.store.Fault = func(_ string, _ bool) error {
				if calls.Add(1) > int64(cut) {
					return errors.New("connection lost")
				}
				return nil
			}
			starts := commit.Start{Frontier: stream.Frontier{Next: committest.Rev(100)}}
			if _, err := r.recovery().Run(t.Context(), b, starts); err == nil && cut < 4 {
				t.Errorf("a recovery without a database succeeded")
			}
			b.Lose(errors.New("killed"))
			r.store.Fault = nil
			if _, err := r.recover(t, ownFrom0(t, r, "c", 3)); err != nil {
				t.Fatal(err)
			}
			seen := map[string]int{}
			for _, v := range r.broker.Values() {
				seen[v]++
			}
			if len(seen) != 20 || len(r.broker.Values()) != 20 {
				t.Errorf("published %d outputs, %d different, want 20 and 20", len(r.broker.Values()), len(seen))
			}
		})
	}
}

// A2: a row that cannot be published is reported as failed and stays prepared; FinishKey finishes it later, once.
func TestRecoveryFailedKey(t *testing.T) {
	r := newRig(t, 1, commit.DefaultPipelineConfig())
	a := ownFrom0(t, r, "a", 1)
	r.leave(t, committest.CommitOf(a, "bad", -1, 100), false)
	r.leave(t, committest.CommitOf(a, "good", -1, 101), false)
	var refuse atomic.Bool
	refuse.Store(true)
	r.broker.Fault = func(c *commit.Commit) error {
		if c.Key == "bad" && refuse.Load() {
			return errors.New("topic has no leader")
		}
		return nil
	}
	b := ownFrom0(t, r, "b", 2)
	got, err := r.recover(t, b)
	if err != nil || got.Published != 1 || !cmp.Equal(got.Failed, []stream.Key{"bad"}) || !cmp.Equal(got.Standing, map[int64]stream.Key{100: "bad"}) {
		t.Fatalf("report: %+v, %v", got, err)
	}
	if err := r.recovery().FinishKey(t.Context(), b, "bad"); commit.ClassOf(err) != commit.Transient {
		t.Errorf("still failing: %v", err)
	}
	refuse.Store(false)
	failed := atomic.Int64{}
	r.store.Fault = func(op string, _ bool) error { // C8: the promotion fails a few times after the publication
		if op == "promote" && failed.Add(1) < 5 {
			return errors.New("connection lost")
		}
		return nil
	}
	for range 2 {
		if err := r.recovery().FinishKey(t.Context(), b, "bad"); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff([]string{"good=output 101", "bad=output 100"}, r.broker.Values()); diff != "" {
		t.Errorf("published (-want +got):\n%s", diff)
	}
}

// H9: contradictions between ledger and rows stop the partition and say what to do.
func TestRecoveryDiverged(t *testing.T) {
	t.Run("prepared revision absent, a later one there", func(t *testing.T) {
		r := newRig(t, 1, commit.DefaultPipelineConfig())
		a := ownFrom0(t, r, "a", 1)
		if _, err := r.broker.Publish(t.Context(), 0, []commit.Commit{committest.CommitOf(a, "k", 100, 105)}); err != nil {
			t.Fatal(err)
		}
		r.leave(t, committest.CommitOf(a, "k", -1, 100), false)
		wantDiverged(t, r, "1.105")
	})
	t.Run("published over a state that no row has", func(t *testing.T) {
		r := newRig(t, 1, commit.DefaultPipelineConfig())
		a := ownFrom0(t, r, "a", 1)
		if _, err := r.broker.Publish(t.Context(), 0, []commit.Commit{committest.CommitOf(a, "k", 90, 100)}); err != nil {
			t.Fatal(err)
		}
		wantDiverged(t, r, "1.100")
	})
}

// H6, H9, A13: what was published and is in no row is reported to be rebuilt, in order, whatever mode goes on; what a row covers and
// what is below the frontier is not.
func TestRecoveryListsWhatIsToBeRebuilt(t *testing.T) {
	r := newRig(t, 1, commit.DefaultPipelineConfig())
	a := ownFrom0(t, r, "a", 1)
	chain := []commit.Commit{
		committest.CommitOf(a, "k", -1, 100), committest.CommitOf(a, "other", -1, 101), committest.CommitOf(a, "k", 100, 102),
		committest.CommitOf(a, "persisted", -1, 103), committest.CommitOf(a, "k", 102, 104),
	}
	for i := range chain {
		chain[i].Deferred = true
		if _, err := r.broker.Publish(t.Context(), 0, chain[i:i+1]); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []commit.Commit{chain[0], chain[3]} {
		errs, err := r.store.Persist(t.Context(), []commit.Persist{{Tenure: a, Key: c.Key, Base: c.Base, Next: c.Next, ID: c.ID}})
		if err != nil || errs[0] != nil {
			t.Fatal(errs, err)
		}
	}
	save(t, r.store, a, 101, 0)

	before := len(r.broker.Values())
	report, err := r.recover(t, ownFrom0(t, r, "b", 2))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	position := int64(-1)
	for _, e := range report.Rebuild {
		if e.Entry.Key == "k" && e.Position <= position {
			t.Errorf("entry at %d after one at %d", e.Position, position)
		}
		position = e.Position
		got = append(got, fmt.Sprintf("%s %v over %s", e.Entry.Key, e.Entry.Offsets, e.Entry.Base))
	}
	want := []string{"k [102] over 1.100", "k [104] over 1.102", "other [101] over none"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("to be rebuilt (-want +got):\n%s", diff)
	}
	if len(r.broker.Values()) != before {
		t.Error("a recovery published again what was published")
	}
}

func wantDiverged(t *testing.T, r *rig, ledger string) {
	t.Helper()
	before := len(r.broker.Values())
	_, err := r.recover(t, ownFrom0(t, r, "b", 2))
	var diverged *commit.DivergedError
	if !errors.As(err, &diverged) || diverged.Ledger.String() != ledger || !strings.Contains(err.Error(), "restored to an earlier time") {
		t.Errorf("got %v, want a diverged error that names %s", err, ledger)
	}
	if len(r.broker.Values()) != before {
		t.Errorf("something was published over a contradiction: %v", r.broker.Values())
	}
}

// H12: a ledger that ends below the floor is never an empty ledger.
func TestRecoveryLedgerMadeAgain(t *testing.T) {
	r := newRig(t, 1, commit.DefaultPipelineConfig())
	a := ownFrom0(t, r, "a", 1)
	r.leave(t, committest.CommitOf(a, "k", -1, 100), false)
	save(t, r.store, a, 100, 1000)
	if _, err := r.recover(t, ownFrom0(t, r, "b", 2)); err == nil || !strings.Contains(err.Error(), "floor is 1000") {
		t.Errorf("got %v, want an error that names the floor", err)
	}
	if got := r.broker.Values(); len(got) != 0 {
		t.Errorf("published %v", got)
	}
}

// I13: an owner that lost the partition during its recovery publishes nothing more.
func TestRecoveryFenced(t *testing.T) {
	r := newRig(t, 1, commit.DefaultPipelineConfig())
	a := ownFrom0(t, r, "a", 1)
	r.leave(t, committest.CommitOf(a, "k", -1, 100), false)
	b := ownFrom0(t, r, "b", 2)
	ownFrom0(t, r, "c", 3)
	if _, err := r.recover(t, b); err == nil || commit.ClassOf(err) != commit.Fenced {
		t.Errorf("got %v, want fenced", err)
	}
	if got := r.broker.Values(); len(got) != 0 {
		t.Errorf("published %v", got)
	}
}

// H10(c), C7: a commit that was released from quarantine stands below the frontier, which does not say that it was published: the ledger
// does.
func TestRecoveryOfReleasedCommits(t *testing.T) {
	for _, published := range []bool{false, true} {
		r := newRig(t, 2, commit.DefaultPipelineConfig())
		a := ownFrom0(t, r, "a", 1)
		errs, err := r.store.Quarantine(t.Context(), []commit.Quarantined{{Tenure: a, Key: "k", Revision: committest.Rev(100)}})
		if err != nil || errs[0] != nil {
			t.Fatal(errs, err)
		}
		save(t, r.store, a, 150, 0)
		r.leave(t, committest.CommitOf(a, "k", -1, 100), published)

		b := ownFrom0(t, r, "b", 2)
		report, err := r.recover(t, b)
		if err != nil || report.Prepared != 1 || report.Published == 1 == published {
			t.Errorf("published before: %t: report %+v, %v", published, report, err)
		}
		if diff := cmp.Diff([]string{"k=output 100"}, r.broker.Values()); diff != "" {
			t.Errorf("published before: %t: published (-want +got):\n%s", published, diff)
		}
		if left := r.store.Quarantined(b); len(left) != 0 {
			t.Errorf("published before: %t: left in quarantine: %+v", published, left)
		}
	}
}

// H7, C7: so does a prepared commit of an earlier topic generation.
func TestRecoveryAcrossTopicGenerations(t *testing.T) {
	r := newRig(t, 2, commit.DefaultPipelineConfig())
	a := ownFrom0(t, r, "a", 1)
	r.leave(t, committest.CommitOf(a, "published", -1, 100), true)
	r.leave(t, committest.CommitOf(a, "prepared", -1, 101), false)
	errs, err := r.store.SaveFrontier(t.Context(), []commit.FrontierWrite{{
		Tenure: a, Frontier: stream.Frontier{Next: stream.Revision{Generation: 2, Offset: 0}, LeaderEpoch: -1},
	}})
	if err != nil || errs[0] != nil {
		t.Fatal(errs, err)
	}
	b := ownFrom0(t, r, "b", 2)
	report, err := r.recover(t, b)
	if err != nil || report.Promoted != 1 || report.Published != 1 {
		t.Errorf("report %+v, %v: want one promoted, one published", report, err)
	}
	if diff := cmp.Diff([]string{"published=output 100", "prepared=output 101"}, r.broker.Values()); diff != "" {
		t.Errorf("published (-want +got):\n%s", diff)
	}
}

// F21, A12, H10: a run of several observations that no retry can publish is taken out of its row, by a recovery and by FinishKey, so that its
// observations can be decided in smaller runs; a single one stays, as evidence for the quarantine.
func TestRecoveryUnpreparesRuns(t *testing.T) {
	r := newRig(t, 1, commit.DefaultPipelineConfig())
	a := ownFrom0(t, r, "a", 1)
	run := committest.CommitOf(a, "run", -1, 104)
	run.Earlier = []int64{100, 102}
	later := committest.CommitOf(a, "later", -1, 107)
	later.Earlier = []int64{105}
	r.leave(t, run, false)
	r.leave(t, later, false)
	r.leave(t, committest.CommitOf(a, "single", -1, 103), false)
	var refuse atomic.Bool
	r.broker.Fault = func(c *commit.Commit) error {
		if c.Key == "later" && !refuse.Load() {
			return errors.New("topic has no leader")
		}
		return fmt.Errorf("too large: %w", commit.ErrPermanent)
	}
	b := ownFrom0(t, r, "b", 2)
	got, err := r.recover(t, b)
	if err != nil || !cmp.Equal(got.Failed, []stream.Key{"later", "single"}) || !cmp.Equal(got.Standing, map[int64]stream.Key{103: "single", 107: "later"}) {
		t.Fatalf("report: %+v, %v", got, err)
	}
	refuse.Store(true)
	if err := r.recovery().FinishKey(t.Context(), b, "later"); err != nil {
		t.Errorf("finish a run that no retry can publish: %v, want it taken out of its row", err)
	}
	if err := r.recovery().FinishKey(t.Context(), b, "single"); commit.ClassOf(err) != commit.Permanent {
		t.Errorf("finish a single one: %v, want permanent", err)
	}
	for key, row := range r.store.Checkpoints("g", committest.Part(0)) {
		if (row.Prepared != nil) != (key == "single") || !row.Checkpoint.Revision.IsZero() {
			t.Errorf("row of %q: %+v", key, row)
		}
	}
	if len(r.broker.Values()) != 0 {
		t.Errorf("published: %v", r.broker.Values())
	}
}
