package consumer

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"milepost/internal/commit"
	"milepost/internal/partition"
	"milepost/internal/stream"
)

// moodySolver cannot solve "bad" until it is mended, and never answers for "hang".
type moodySolver struct{ mended atomic.Bool }

func (s *moodySolver) Submit(job partition.Dispatch, done func(partition.Decision, error)) bool {
	switch word := string(job.Request); {
	case word == "hang":
		return true
	case word == "bad" && !s.mended.Load():
		go done(partition.Decision{}, fmt.Errorf("no such road: %w", commit.ErrPermanent))
		return true
	}
	return echoSolver{}.Submit(job, done)
}

// operated starts a process with an operator and a solver of moods.
func (r *rig) operated(name string) (*process, *moodySolver) {
	s := &moodySolver{}
	return r.start(name, func(_ *Config, d *Deps) { d.Operations, d.Solver = r.store, s }), s
}

// ask writes a request and waits for its answer.
func (r *rig) ask(q commit.Request) commit.Answer {
	r.t.Helper()
	q.Partition = part(0)
	id := r.store.Ask(groupName, q)
	r.eventually("the request is answered", func() bool { return r.store.Answered(id) != nil })
	return *r.store.Answered(id)
}

// tenure names the partition for the store's assertions.
func (r *rig) tenure() *commit.Tenure {
	return commit.NewTenure(commit.Ownership{Group: groupName, Partition: part(0)})
}

// A19, F18, F30, H10: what a poisoned key left in quarantine is released in order through a running owner; the other keys of
// its partition go on meanwhile; later observations follow.
func TestReleaseThroughTheOwner(t *testing.T) {
	bubble(t, 1, func(r *rig) {
		p, solver := r.operated("a")
		r.produce(0, "k=1", "k=bad", "other=1", "k=3", "other=2")
		r.eventually("all is done", func() bool { return r.frontier(0) == 5 })
		if got := r.values("k"); len(got) != 1 || len(r.values("other")) != 2 {
			t.Errorf("published of k: %q, of other: %q", got, r.values("other"))
		}
		if a := r.ask(commit.Request{Kind: commit.RequestRelease, Key: "k"}); !a.Failed || !strings.Contains(a.Outcome, "no such road") {
			t.Errorf("a release that fails again: %+v", a)
		}
		solver.mended.Store(true)
		if a := r.ask(commit.Request{Kind: commit.RequestRelease, Key: "k"}); a.Failed || a.Outcome != "2 observations released" {
			t.Errorf("the release: %+v", a)
		}
		r.produce(0, "k=4")
		r.eventually("the next is done", func() bool { return r.frontier(0) == 6 })
		if diff := cmp.Diff([]string{"k=1", "k=bad", "k=3", "k=4"}, r.values("k")); diff != "" {
			t.Errorf("published of k (-want +got):\n%s", diff)
		}
		if left := r.store.Quarantined(r.tenure()); len(left) != 0 {
			t.Errorf("left in quarantine: %+v", left)
		}
		if err := p.stop(); err != nil {
			t.Error(err)
		}
	})
}

// H10(a), H10(d): a request is executed by whoever owns the partition, and an owner that came after the quarantine knows of it.
func TestDiscardByTheNextOwner(t *testing.T) {
	bubble(t, 1, func(r *rig) {
		p, _ := r.operated("a")
		r.produce(0, "k=1", "k=bad", "k=3")
		r.eventually("all is done", func() bool { return r.frontier(0) == 3 })
		if err := p.stop(); err != nil {
			t.Fatal(err)
		}
		id := r.store.Ask(groupName, commit.Request{Partition: part(0), Kind: commit.RequestDiscard, Key: "k"})
		time.Sleep(time.Minute)
		if r.store.Answered(id) != nil {
			t.Error("the request was answered without an owner")
		}
		p, _ = r.operated("b")
		r.eventually("the request is answered", func() bool { return r.store.Answered(id) != nil })
		if a := r.store.Answered(id); a.Failed || a.Outcome != "2 observations discarded" {
			t.Errorf("the discard: %+v", a)
		}
		r.produce(0, "k=4")
		r.eventually("the next is done", func() bool { return r.frontier(0) == 4 })
		if diff := cmp.Diff([]string{"k=1", "k=4"}, r.values("k")); diff != "" {
			t.Errorf("published of k (-want +got):\n%s", diff)
		}
		// The frontier has passed them: their tombstones go.
		r.eventually("the tombstones are swept", func() bool { return r.store.Tombstones(r.tenure()) == 0 })
		if err := p.stop(); err != nil {
			t.Error(err)
		}
	})
}

// H16, F30: a seek goes forward through the owner, past what would not end, and is refused backwards with the reason.
func TestSeek(t *testing.T) {
	bubble(t, 1, func(r *rig) {
		p, _ := r.operated("a")
		r.produce(0, "k=1", "k=hang", "k=3", "other=1", "k=5", "other=2")
		r.eventually("the other key is done", func() bool { return len(r.values("other")) == 2 && r.frontier(0) == 1 })
		for _, c := range []struct {
			offset int64
			says   string
		}{{1, "forward only"}, {0, "orchestrator partition reset"}, {7, "the log reaches from 0 to 6"}} {
			if a := r.ask(commit.Request{Kind: commit.RequestSeek, Offset: c.offset}); !a.Failed || !strings.Contains(a.Outcome, c.says) {
				t.Errorf("a seek to %d: %+v, want it refused: %s", c.offset, a, c.says)
			}
		}
		if a := r.ask(commit.Request{Kind: commit.RequestSeek, Offset: 4}); a.Failed || !strings.Contains(a.Outcome, "from 1 to 4") {
			t.Errorf("the seek: %+v", a)
		}
		r.eventually("the rest is done", func() bool { return r.frontier(0) == 6 })
		if diff := cmp.Diff([]string{"k=1", "k=5"}, r.values("k")); diff != "" {
			t.Errorf("published of k (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]string{"other=1", "other=2"}, r.values("other")); diff != "" {
			t.Errorf("published of other (-want +got):\n%s", diff)
		}
		if err := p.stop(); err != nil {
			t.Error(err)
		}
	})
}

// P29: a partition that retention has overtaken rests until a seek mends it, without a restart.
func TestSeekMendsWhatRetentionHasOvertaken(t *testing.T) {
	bubble(t, 1, func(r *rig) {
		p, _ := r.operated("a")
		r.produce(0, "k=1", "k=2")
		r.eventually("all is done", func() bool { return r.frontier(0) == 2 })
		if err := p.stop(); err != nil {
			t.Fatal(err)
		}
		r.produce(0, "k=3", "k=4", "k=5")
		if _, err := r.admin.DeleteRecords(r.t.Context(), r.offsets(0, 4)); err != nil {
			t.Fatal(err)
		}
		p, _ = r.operated("b")
		r.eventually("the partition stops", func() bool { return p.log.has("the frontier is 2: 2 offsets were deleted") })
		if a := r.ask(commit.Request{Kind: commit.RequestSeek, Offset: 4}); a.Failed {
			t.Errorf("the seek: %+v", a)
		}
		r.eventually("the rest is done", func() bool { return r.frontier(0) == 5 })
		if diff := cmp.Diff([]string{"k=1", "k=2", "k=5"}, r.values("k")); diff != "" {
			t.Errorf("published (-want +got):\n%s", diff)
		}
		if err := p.stop(); err != nil {
			t.Error(err)
		}
	})
}

// P29, F7: by configuration a partition that retention has overtaken goes on at the start of its log, and says so: an error line, an
// observer, and a mark that makes keys with history begin anew; by default it stops.
func TestDataLossReset(t *testing.T) {
	bubble(t, 1, func(r *rig) {
		p, _ := r.operated("a")
		r.produce(0, "k=1", "k=2")
		r.eventually("all is done", func() bool { return r.frontier(0) == 2 })
		if err := p.stop(); err != nil {
			t.Fatal(err)
		}
		r.produce(0, "k=3", "k=4", "k=5")
		if _, err := r.admin.DeleteRecords(r.t.Context(), r.offsets(0, 4)); err != nil {
			t.Fatal(err)
		}
		var lost atomic.Int64
		anew := &anewBook{}
		p = r.start("b", func(c *Config, d *Deps) {
			c.OnDataLoss, d.Operations, d.Workload = DataLossReset, r.store, anew
			d.Observer.DataLoss = func(_ stream.Partition, frontier, start int64) { lost.Store(start - frontier) }
		})
		r.eventually("the rest is done", func() bool { return r.frontier(0) == 5 })
		if diff := cmp.Diff([]string{"k=1", "k=2", "k=5"}, r.values("k")); diff != "" {
			t.Errorf("published (-want +got):\n%s", diff)
		}
		if lost.Load() != 2 || !p.log.has("ERROR observations were lost") {
			t.Errorf("%d observations are said to be lost, logged: %t", lost.Load(), p.log.has("ERROR observations were lost"))
		}
		r.produce(0, "k=6")
		r.eventually("the next is done", func() bool { return r.frontier(0) == 6 })
		if diff := cmp.Diff([]string{"5 data_loss", "6 "}, anew.told()); diff != "" {
			t.Errorf("resets (-want +got):\n%s", diff)
		}
		if err := p.stop(); err != nil {
			t.Error(err)
		}
	})
}

// anewBook is tally that notes which observations were to begin anew.
type anewBook struct {
	tally
	mu   sync.Mutex
	seen []string
}

func (b *anewBook) Plan(k partition.KeyState, o partition.Observation, d partition.Decision) (commit.Plan, error) {
	b.mu.Lock()
	b.seen = append(b.seen, o.Value.(string)+" "+k.Anew)
	b.mu.Unlock()
	return b.tally.Plan(k, o, d)
}

func (b *anewBook) told() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.seen)
}
