package consumer

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"milepost/internal/commit"
	"milepost/internal/commit/committest"
	"milepost/internal/stream"
)

// slowStore is one process's way to the shared store; while slow, every statement takes a minute.
type slowStore struct {
	*committest.MemoryStore
	slow atomic.Bool
}

func (s *slowStore) wait(ctx context.Context) error {
	if s.slow.Load() && !sleep(ctx, time.Minute) {
		return context.Cause(ctx)
	}
	return nil
}

func (s *slowStore) Promote(ctx context.Context, batch []commit.Promotion) ([]error, error) {
	if err := s.wait(ctx); err != nil {
		return nil, err
	}
	return s.MemoryStore.Promote(ctx, batch)
}

func (s *slowStore) SaveFrontier(ctx context.Context, batch []commit.FrontierWrite) ([]error, error) {
	if err := s.wait(ctx); err != nil {
		return nil, err
	}
	return s.MemoryStore.SaveFrontier(ctx, batch)
}

func (s *slowStore) Restore(ctx context.Context, t *commit.Tenure, keys []stream.Key) ([]commit.Restored, error) {
	if err := s.wait(ctx); err != nil {
		return nil, err
	}
	return s.MemoryStore.Restore(ctx, t, keys)
}

func (s *slowStore) Release(ctx context.Context, t *commit.Tenure) error {
	if err := s.wait(ctx); err != nil {
		return err
	}
	return s.MemoryStore.Release(ctx, t)
}

// laneGate holds back what some lanes publish while it is shut for them.
func laneGate(shut func(lane int) bool) func(context.Context, int, []commit.Commit) error {
	return func(ctx context.Context, lane int, _ []commit.Commit) error {
		for shut(lane) {
			if !sleep(ctx, 10*time.Millisecond) {
				return context.Cause(ctx)
			}
		}
		return nil
	}
}

// endings notes when tenures end.
type endings struct {
	mu   sync.Mutex
	at   []time.Time
	rels []bool
}

func (e *endings) note(d *Deps) {
	d.Observer.Ended = func(_ stream.Partition, _ stream.Epoch, released bool, _ error, _ commitReport) {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.at, e.rels = append(e.at, time.Now()), append(e.rels, released)
	}
}

func (e *endings) first() (time.Time, bool, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.at) == 0 {
		return time.Time{}, false, false
	}
	return e.at[0], e.rels[0], true
}

// P16: the database is a minute away during a revocation: the callback returns within its bound, the partition moves
// unreleased, and nothing is lost or repeated.
func TestSlowStoreDuringRevoke(t *testing.T) {
	onProtocols(t, 2, func(r *rig) {
		t := r.t
		slow := &slowStore{MemoryStore: r.store}
		var ends endings
		p1 := r.start("one", func(c *Config, d *Deps) {
			d.Store, d.Owners = slow, slow
			c.DrainGrace, c.ReleaseTimeout = 3*time.Second, time.Second
			ends.note(d)
		})
		r.eventually("running", p1.running(2))
		r.produce(0, numbered("a", 0, 10)...)
		r.produce(1, numbered("b", 0, 10)...)
		r.eventually("outputs", func() bool { return len(r.broker.Values()) == 20 })
		slow.slow.Store(true)
		r.produce(0, numbered("a", 10, 10)...)
		r.produce(1, numbered("b", 10, 10)...)
		began := time.Now()
		p2 := r.start("two")
		r.eventually("two has one", p2.running(1))
		at, released, ok := ends.first()
		if !ok || released {
			t.Errorf("ended = %t, released = %t, want an unreleased end", ok, released)
		}
		// A rebalance is noticed at a heartbeat; then the bounds of the drain and of the release.
		if took, most := at.Sub(began), 8*time.Second; took > most {
			t.Errorf("the callback took %s, want at most %s", took, most)
		}
		slow.slow.Store(false)
		r.eventually("outputs", func() bool { return len(r.broker.Values()) >= 40 })
		r.exact("a", 20)
		r.exact("b", 20)
		for _, p := range []*process{p1, p2} {
			if err := p.stop(); err != nil {
				t.Error(err)
			}
		}
	})
}

// Design 4: a generation that the group refuses during a drain ends it at once, long before its bound.
func TestRefusedDuringDrain(t *testing.T) {
	onProtocols(t, 2, func(r *rig) {
		t := r.t
		var shut atomic.Bool
		r.broker.Gate = laneGate(func(lane int) bool { return shut.Load() && lane < 2 })
		var ends endings
		p1 := r.start("one", func(_ *Config, d *Deps) { ends.note(d) })
		r.eventually("running", p1.running(2))
		shut.Store(true)
		r.produce(0, numbered("a", 0, 3)...)
		r.produce(1, numbered("b", 0, 3)...)
		r.eventually("prepared", func() bool {
			return r.store.Checkpoints(groupName, part(0))["a"].Prepared != nil && r.store.Checkpoints(groupName, part(1))["b"].Prepared != nil
		})
		member, _ := p1.deps.Membership.Generation()
		// Another member that acquires nothing: only the group itself can tell that the drain is in vain.
		other := r.idler()
		r.eventually("one drains", func() bool { return len(p1.Status()) == 1 })
		began := time.Now()
		r.evict(member)
		r.eventually("the drain has ended", func() bool { _, _, ok := ends.first(); return ok })
		at, released, _ := ends.first()
		if took, most := at.Sub(began), 3*time.Second; took > most || released {
			t.Errorf("the drain ended after %s, released %t, want within %s and unreleased", took, released, most)
		}
		other.Close()
		shut.Store(false)
		r.eventually("outputs", func() bool { return len(r.broker.Values()) >= 6 })
		r.exact("a", 3)
		r.exact("b", 3)
		if err := p1.stop(); err != nil {
			t.Error(err)
		}
	})
}

// P18: a committer that hangs for ever: the process leaves the group with ErrStuck, and its partition is served elsewhere.
func TestStuckLeaves(t *testing.T) {
	onProtocols(t, 1, func(r *rig) {
		t := r.t
		r.broker.Gate = laneGate(func(lane int) bool { return lane < 2 })
		p1 := r.start("one", func(c *Config, _ *Deps) { c.StuckAfter = 30 * time.Second })
		r.eventually("running", p1.running(1))
		p2 := r.start("two")
		began := time.Now()
		r.produce(0, numbered("a", 0, 3)...)
		r.eventually("outputs", func() bool { return len(r.values("a")) >= 3 })
		if took, most := time.Since(began), 30*time.Second+DefaultConfig().SessionTimeout+10*time.Second; took > most {
			t.Errorf("served elsewhere after %s, want at most %s", took, most)
		}
		if err := <-p1.done; !errors.Is(err, ErrStuck) {
			t.Errorf("Run = %v, want ErrStuck", err)
		}
		r.exact("a", 3)
		if err := p2.stop(); err != nil {
			t.Error(err)
		}
	})
}

// A15: a stop while the database is away ends within its bounds, says that it is not released, and costs only a replay.
func TestStopDuringOutage(t *testing.T) {
	onProtocols(t, 1, func(r *rig) {
		t := r.t
		var down atomic.Bool
		r.store.Fault = func(string, bool) error {
			if down.Load() {
				return errors.New("the database is away")
			}
			return nil
		}
		p := r.start("one")
		r.eventually("running", p.running(1))
		r.produce(0, numbered("a", 0, 10)...)
		r.eventually("outputs", func() bool { return len(r.values("a")) == 10 })
		down.Store(true)
		r.produce(0, numbered("a", 10, 10)...)
		began := time.Now()
		if err := p.stop(); !errors.Is(err, ErrUnreleased) {
			t.Errorf("Run = %v, want ErrUnreleased", err)
		}
		cfg := DefaultConfig()
		if took, most := time.Since(began), cfg.DrainGrace+cfg.ReleaseTimeout+cfg.CloseTimeout; took > most {
			t.Errorf("the stop took %s, want at most %s", took, most)
		}
		down.Store(false)
		p = r.start("two")
		r.eventually("outputs", func() bool { return len(r.values("a")) >= 20 })
		r.exact("a", 20)
		if err := p.stop(); err != nil {
			t.Error(err)
		}
	})
}

// P7, P39: three processes are rolled one after the other under load: every observation once, in order.
func TestRollingRestart(t *testing.T) {
	onProtocols(t, 6, func(r *rig) {
		t := r.t
		procs := []*process{r.start("p0"), r.start("p1"), r.start("p2")}
		spread := func() bool {
			n := 0
			for _, p := range procs {
				for _, st := range p.Status() {
					if st.State == StateRunning {
						n++
					}
				}
			}
			return n == 6
		}
		r.eventually("all partitions are served", spread)
		n := 0
		for range 2 {
			for i := range procs {
				for q := range int32(6) {
					r.produce(q, numbered("k"+string('0'+q), n, 10)...)
				}
				n += 10
				if err := procs[i].stop(); err != nil {
					t.Error(err)
				}
				procs[i] = r.start(procs[i].cfg.Instance + "+")
				r.eventually("all partitions are served", spread)
			}
		}
		r.eventually("outputs", func() bool { return len(r.broker.Values()) >= 6*n })
		for q := range int32(6) {
			r.exact("k"+string('0'+q), n)
		}
		for _, p := range procs {
			if err := p.stop(); err != nil {
				t.Error(err)
			}
			if got := p.formers.names(); len(got) != 0 {
				t.Errorf("lanes initialised = %v, want none: every owner had released", got)
			}
		}
	})
}

// evict removes a member from the group without its knowing.
func (r *rig) evict(member string) {
	r.t.Helper()
	if r.protocol == ConsumerGroup {
		leave := kmsg.NewPtrConsumerGroupHeartbeatRequest()
		leave.Group, leave.MemberID, leave.MemberEpoch = groupName, member, -1
		if _, err := leave.RequestWith(r.t.Context(), r.client); err != nil {
			r.t.Fatal(err)
		}
		return
	}
	leave := kmsg.NewPtrLeaveGroupRequest()
	leave.Group, leave.MemberID = groupName, member
	gone := kmsg.NewLeaveGroupRequestMember()
	gone.MemberID = member
	leave.Members = append(leave.Members, gone)
	if _, err := leave.RequestWith(r.t.Context(), r.client); err != nil {
		r.t.Fatal(err)
	}
}

// Design 3: a lost partition is dropped at once, not drained, and stays unreleased.
func TestLostDropsAtOnce(t *testing.T) {
	onProtocols(t, 1, func(r *rig) {
		t := r.t
		var shut atomic.Bool
		r.broker.Gate = laneGate(func(lane int) bool { return shut.Load() && lane < 2 })
		var ends endings
		p := r.start("one", func(_ *Config, d *Deps) { ends.note(d) })
		r.eventually("running", p.running(1))
		shut.Store(true)
		r.produce(0, "a=0")
		r.eventually("prepared", func() bool { return r.store.Checkpoints(groupName, part(0))["a"].Prepared != nil })
		member, _ := p.deps.Membership.Generation()
		began := time.Now()
		r.evict(member)
		r.eventually("the tenure has ended", func() bool { _, _, ok := ends.first(); return ok })
		at, released, _ := ends.first()
		// One heartbeat until the client knows.
		if took, most := at.Sub(began), p.cfg.HeartbeatInterval+time.Second; took > most || released {
			t.Errorf("ended after %s, released %t, want within %s and unreleased", took, released, most)
		}
		shut.Store(false)
		r.eventually("outputs", func() bool { return len(r.values("a")) >= 1 })
		r.exact("a", 1)
		if err := p.stop(); err != nil {
			t.Error(err)
		}
	})
}

// hangingRecovery never ends by itself.
type hangingRecovery struct{ begun atomic.Int32 }

func (h *hangingRecovery) Run(ctx context.Context, _ *commit.Tenure, _ commit.Start) (commit.RecoveryReport, error) {
	h.begun.Add(1)
	<-ctx.Done()
	return commit.RecoveryReport{}, context.Cause(ctx)
}

func (h *hangingRecovery) FinishKey(context.Context, *commit.Tenure, stream.Key) error { return nil }

// P34: a recovery that takes long is broken off by a stop at once; the partition stays unreleased for who recovers it.
func TestStopBreaksOffRecovery(t *testing.T) {
	onProtocols(t, 1, func(r *rig) {
		t := r.t
		hang := &hangingRecovery{}
		p := r.start("one", func(_ *Config, d *Deps) { d.Recovery = hang })
		r.eventually("recovering", func() bool { return hang.begun.Load() == 1 })
		began := time.Now()
		if err := p.stop(); err != nil {
			t.Errorf("Run = %v, want nil: nothing was in flight", err)
		}
		if took, most := time.Since(began), time.Second; took > most {
			t.Errorf("the stop took %s, want at most %s", took, most)
		}
		if r.released(0) {
			t.Error("released although its recovery had not finished")
		}
	})
}

// P8, F16: a partition that is fenced again and again is acquired three times quickly, then stops alone, and is tried again calmly.
func TestFencedAgainAndAgain(t *testing.T) {
	onProtocols(t, 2, func(r *rig) {
		t := r.t
		p := r.start("one")
		r.eventually("running", p.running(2))
		quick := 0
		for !p.log.has("again and again") {
			r.eventually("acquired, or stopped", func() bool {
				return p.log.has("again and again") || p.running(2)()
			})
			if p.log.has("again and again") {
				break
			}
			r.steal(0)
			quick++
			r.eventually("fenced", func() bool { return !p.running(2)() })
		}
		if want := quickFences + 1; quick != want {
			t.Errorf("fenced %d times before it stopped, want %d", quick, want)
		}
		r.produce(1, "b=0")
		r.eventually("the other goes on", func() bool { return len(r.values("b")) == 1 })
		if p.Ready() == nil {
			t.Error("Ready() = nil with a stopped partition")
		}
		r.produce(0, "a=0")
		r.eventually("acquired again", func() bool { return len(r.values("a")) == 1 })
		if err := p.stop(); err != nil {
			t.Error(err)
		}
	})
}
