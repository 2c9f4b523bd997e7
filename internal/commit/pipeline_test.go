package commit_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"milepost/internal/commit"
	"milepost/internal/commit/committest"
	"milepost/internal/stream"
)

// rig is a running pipeline over memory parts.
type rig struct {
	store    *committest.MemoryStore
	broker   *committest.MemoryBroker
	pipeline *commit.Pipeline
	stop     context.CancelFunc
}

func newRig(t *testing.T, lanes int, cfg commit.PipelineConfig) *rig {
	t.Helper()
	r := &rig{store: committest.NewMemoryStore(), broker: committest.NewMemoryBroker(lanes)}
	r.pipeline = commit.NewPipeline(cfg, r.store, r.broker)
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- r.pipeline.Run(ctx) }()
	r.stop = stop
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("pipeline: %v", err)
		}
	})
	return r
}

func (r *rig) submit(c commit.Commit) <-chan commit.Outcome {
	done := make(chan commit.Outcome, 1)
	r.pipeline.Submit(c, func(o commit.Outcome) { done <- o })
	return done
}

// A11, A18: a commit is prepared, published, and answered with its ledger position.
func TestPipelinePublishes(t *testing.T) {
	r := newRig(t, 3, commit.DefaultPipelineConfig())
	tn := committest.Own(t, r.store, committest.Part(0), "a", 1)
	for i := range int64(3) {
		base := int64(-1)
		if i > 0 {
			base = 99 + i
		}
		o := <-r.submit(committest.CommitOf(tn, "k", base, 100+i))
		if o.Err != nil || o.Position != i {
			t.Fatalf("commit %d: %+v, want position %d", i, o, i)
		}
	}
	if diff := cmp.Diff([]string{"k=output 100", "k=output 101", "k=output 102"}, r.broker.Values()); diff != "" {
		t.Errorf("published (-want +got):\n%s", diff)
	}
}

// C2, A3: a dead letter has no row and is published all the same.
func TestPipelineDeadLetter(t *testing.T) {
	r := newRig(t, 1, commit.DefaultPipelineConfig())
	tn := committest.Own(t, r.store, committest.Part(0), "a", 1)
	o := <-r.submit(commit.NewDeadLetter(tn, "k", committest.Rev(100), commit.Output{Topic: "dead", Key: []byte("k"), Value: []byte("raw")}))
	if o.Err != nil || len(r.store.Checkpoints("g", committest.Part(0))) != 0 {
		t.Errorf("dead letter: %+v, rows %v", o, r.store.Checkpoints("g", committest.Part(0)))
	}
	if diff := cmp.Diff([]string{"k=raw"}, r.broker.Values()); diff != "" {
		t.Errorf("published (-want +got):\n%s", diff)
	}
}

// A13, F5, C2: a deferred commit is published without a prepare, and only its tenure's fence at the lane stands before it.
func TestPipelineDeferred(t *testing.T) {
	r := newRig(t, 1, commit.DefaultPipelineConfig())
	tn := committest.Own(t, r.store, committest.Part(0), "a", 1)
	c := committest.CommitOf(tn, "k", -1, 100)
	c.Deferred = true
	if o := <-r.submit(c); o.Err != nil || o.Position != 0 || len(r.store.Checkpoints("g", committest.Part(0))) != 0 {
		t.Errorf("deferred commit: %+v, rows %v, want it published and no row", o, r.store.Checkpoints("g", committest.Part(0)))
	}
	tn.Lose(errors.New("the group took the partition"))
	c = committest.CommitOf(tn, "k", 100, 101)
	c.Deferred = true
	if o := <-r.submit(c); o.Err == nil || commit.ClassOf(o.Err) != commit.Fenced {
		t.Errorf("deferred commit of a lost tenure: %+v, want fenced", o)
	}
	if diff := cmp.Diff([]string{"k=output 100"}, r.broker.Values()); diff != "" {
		t.Errorf("published (-want +got):\n%s", diff)
	}
}

// C6: a commit of a tenure that was lost before is not even prepared, though no other owner has acquired yet.
func TestPipelineLostTenureWritesNothing(t *testing.T) {
	r := newRig(t, 1, commit.DefaultPipelineConfig())
	tn := committest.Own(t, r.store, committest.Part(0), "a", 1)
	tn.Lose(errors.New("the group took the partition"))
	if o := <-r.submit(committest.CommitOf(tn, "k", -1, 100)); o.Err == nil || commit.ClassOf(o.Err) != commit.Fenced {
		t.Errorf("commit of a lost tenure: %+v, want fenced", o)
	}
	if rows := r.store.Checkpoints("g", committest.Part(0)); len(rows) != 0 {
		t.Errorf("it was prepared: %v", rows)
	}
}

// A18: while one batch is written, the next gathers; what gathered goes in one statement and one transaction.
func TestPipelineGroupsCommits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 1, commit.DefaultPipelineConfig())
		tn := committest.Own(t, r.store, committest.Part(0), "a", 1)
		open := make(chan struct{})
		r.broker.Gate = func(context.Context, int, []commit.Commit) error { <-open; return nil }
		first := r.submit(committest.CommitOf(tn, "first", -1, 100))
		synctest.Wait() // the first is in the lane's hands
		var rest []<-chan commit.Outcome
		for i := range int64(40) {
			rest = append(rest, r.submit(committest.CommitOf(tn, stream.Key(fmt.Sprint("k", i)), -1, 101+i)))
		}
		synctest.Wait()
		close(open)
		for _, done := range append(rest, first) {
			if o := <-done; o.Err != nil {
				t.Error(o.Err)
			}
		}
		if diff := cmp.Diff([]int{1, 40}, r.broker.Batches()); diff != "" {
			t.Errorf("transactions (-want +got):\n%s", diff)
		}
	})
}

// A18: commits of independent keys overlap: a second lane starts when enough has gathered, and no lane has two transactions.
func TestPipelineLanesOverlap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := commit.DefaultPipelineConfig()
		cfg.LaneFill, cfg.BatchRecords = 4, 4
		r := newRig(t, 3, cfg)
		tn := committest.Own(t, r.store, committest.Part(0), "a", 1)
		open, active := make(chan struct{}), atomic.Int32{}
		r.broker.Gate = func(context.Context, int, []commit.Commit) error { active.Add(1); <-open; return nil }
		var all []<-chan commit.Outcome
		for i := range int64(3) {
			all = append(all, r.submit(committest.CommitOf(tn, stream.Key(fmt.Sprint("k", i)), -1, 100+i)))
		}
		synctest.Wait()
		if got := active.Load(); got != 1 {
			t.Errorf("%d lanes at work with less than LaneFill waiting, want 1", got)
		}
		for i := range int64(17) {
			all = append(all, r.submit(committest.CommitOf(tn, stream.Key(fmt.Sprint("l", i)), -1, 200+i)))
		}
		synctest.Wait()
		if got := active.Load(); got != 3 {
			t.Errorf("%d lanes at work with plenty waiting, want 3", got)
		}
		close(open)
		for _, done := range all {
			if o := <-done; o.Err != nil {
				t.Error(o.Err)
			}
		}
	})
}

// A12: each verdict of a prepare comes back as its class, and nothing of such a commit is published.
func TestPipelineVerdicts(t *testing.T) {
	r := newRig(t, 2, commit.DefaultPipelineConfig())
	tn := committest.Own(t, r.store, committest.Part(0), "a", 1)
	gone := committest.Own(t, r.store, committest.Part(1), "a", 1)
	committest.Own(t, r.store, committest.Part(1), "b", 2)
	if o := <-r.submit(committest.CommitOf(tn, "k", 50, 100)); commit.ClassOf(o.Err) != commit.Conflict {
		t.Errorf("wrong base: %v", o.Err)
	}
	if o := <-r.submit(committest.CommitOf(gone, "k", -1, 100)); commit.ClassOf(o.Err) != commit.Fenced {
		t.Errorf("older epoch: %v", o.Err)
	}
	r.broker.Fault = func(c *commit.Commit) error {
		if c.Key == "large" {
			return fmt.Errorf("message too large: %w", commit.ErrPermanent)
		}
		return nil
	}
	large, fine := r.submit(committest.CommitOf(tn, "large", -1, 101)), r.submit(committest.CommitOf(tn, "fine", -1, 102))
	if o := <-large; commit.ClassOf(o.Err) != commit.Permanent {
		t.Errorf("permanent: %v", o.Err)
	}
	if o := <-fine; o.Err != nil {
		t.Errorf("its neighbour: %v", o.Err)
	}
	if diff := cmp.Diff([]string{"fine=output 102"}, r.broker.Values()); diff != "" {
		t.Errorf("published (-want +got):\n%s", diff)
	}
}

// A12, H11, P35: after a lost answer of prepare the same bytes again end in one publication.
func TestPipelineLostPrepareAnswer(t *testing.T) {
	r := newRig(t, 1, commit.DefaultPipelineConfig())
	tn := committest.Own(t, r.store, committest.Part(0), "a", 1)
	var lost atomic.Bool
	r.store.Fault = func(op string, done bool) error {
		if op == "prepare" && done && lost.CompareAndSwap(false, true) {
			return errors.New("connection reset")
		}
		return nil
	}
	c := committest.CommitOf(tn, "k", -1, 100)
	if o := <-r.submit(c); commit.ClassOf(o.Err) != commit.Transient {
		t.Fatalf("lost answer: %v, want transient", o.Err)
	}
	if o := <-r.submit(c); o.Err != nil {
		t.Fatalf("same bytes again: %v", o.Err)
	}
	if got := r.broker.Values(); len(got) != 1 {
		t.Errorf("published %v, want once", got)
	}
}

// C6, I13: commits of a lost tenure leave as fenced; Settle waits for what is under way (C9).
func TestPipelineLostTenure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 1, commit.DefaultPipelineConfig())
		tn := committest.Own(t, r.store, committest.Part(0), "a", 1)
		other := committest.Own(t, r.store, committest.Part(1), "a", 1)
		open := make(chan struct{})
		r.broker.Gate = func(context.Context, int, []commit.Commit) error { <-open; return nil }
		underway := r.submit(committest.CommitOf(tn, "underway", -1, 100))
		synctest.Wait()
		late := r.submit(committest.CommitOf(tn, "late", -1, 101))
		synctest.Wait()
		tn.Lose(errors.New("revoked"))

		settled := make(chan error, 1)
		go func() { settled <- r.pipeline.Settle(t.Context(), []*commit.Tenure{tn}) }()
		if err := r.pipeline.Settle(t.Context(), []*commit.Tenure{other}); err != nil {
			t.Errorf("settle of an idle tenure: %v", err)
		}
		synctest.Wait()
		select {
		case err := <-settled:
			t.Errorf("settled with a transaction under way: %v", err)
		default:
		}
		close(open)
		if err := <-settled; err != nil {
			t.Errorf("settle: %v", err)
		}
		if o := <-underway; o.Err != nil {
			t.Errorf("under way: %v", o.Err)
		}
		if o := <-late; commit.ClassOf(o.Err) != commit.Fenced {
			t.Errorf("late: %v, want fenced", o.Err)
		}
	})
}

// C9: at the end of Run everything inside is answered, and what comes later too; Settle ends with its context.
func TestPipelineEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 1, commit.DefaultPipelineConfig())
		tn := committest.Own(t, r.store, committest.Part(0), "a", 1)
		r.broker.Gate = func(ctx context.Context, _ int, _ []commit.Commit) error { <-ctx.Done(); return ctx.Err() }
		var all []<-chan commit.Outcome
		for i := range int64(5) {
			all = append(all, r.submit(committest.CommitOf(tn, stream.Key(fmt.Sprint("k", i)), -1, 100+i)))
			synctest.Wait()
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := r.pipeline.Settle(ctx, []*commit.Tenure{tn}); !errors.Is(err, context.Canceled) {
			t.Errorf("settle with an ended context: %v", err)
		}
		r.stop()
		for _, done := range all {
			if o := <-done; o.Err == nil || commit.ClassOf(o.Err) != commit.Canceled {
				t.Errorf("at the end: %+v, want canceled", o)
			}
		}
		synctest.Wait()
		if o := <-r.submit(committest.CommitOf(tn, "after", -1, 200)); commit.ClassOf(o.Err) != commit.Canceled {
			t.Errorf("after the end: %+v", o)
		}
	})
}

// A18: batches keep to their bounds, and one commit above the bound goes alone.
func TestPipelineBounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := commit.DefaultPipelineConfig()
		cfg.BatchRecords, cfg.BatchBytes = 3, 2000
		r := newRig(t, 1, cfg)
		tn := committest.Own(t, r.store, committest.Part(0), "a", 1)
		open := make(chan struct{})
		r.broker.Gate = func(context.Context, int, []commit.Commit) error { <-open; return nil }
		all := []<-chan commit.Outcome{r.submit(committest.CommitOf(tn, "first", -1, 100))}
		synctest.Wait()
		huge := commit.NewCommit(tn, "huge", stream.Revision{}, commit.Plan{
			Next: commit.Checkpoint{Revision: committest.Rev(101), State: make([]byte, 5000)},
		})
		all = append(all, r.submit(huge))
		for i := range int64(7) {
			all = append(all, r.submit(committest.CommitOf(tn, stream.Key(fmt.Sprint("k", i)), -1, 102+i)))
		}
		synctest.Wait()
		close(open)
		for _, done := range all {
			if o := <-done; o.Err != nil {
				t.Error(o.Err)
			}
		}
		got := r.broker.Batches()
		if got[1] != 1 || slices.Max(got) > 3 {
			t.Errorf("batches %v, want the huge one alone and none above 3", got)
		}
	})
}
