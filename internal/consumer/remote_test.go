package consumer

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"milepost/internal/partition"
	"milepost/internal/stream"
)

// P18: a worker that waits for matchers, and asks them again, is not stuck: another process could do no more. One whose commits stand is.
func TestWaitingForMatchersIsNotStuck(t *testing.T) {
	bubble(t, 1, func(r *rig) {
		since := time.Now()
		for _, tc := range []struct {
			remote bool
			view   partition.View
			stuck  bool
		}{
			{true, partition.View{OldestPending: since, Active: 3}, false},
			{true, partition.View{OldestPending: since, Active: 3, Committing: 1}, true},
			{false, partition.View{OldestPending: since, Active: 3}, true},
		} {
			w := handWorker(t, r, 0)
			w.state.Store(int32(StateRunning))
			w.view.Store(&tc.view)
			dog := watchdog{remote: tc.remote, last: map[*worker]sighting{}}
			var err error
			for at := since; at.Before(since.Add(2 * time.Minute)); at = at.Add(10 * time.Second) {
				err = errors.Join(err, dog.look([]*worker{w}, at, time.Minute))
				w.turn.Add(1)
			}
			if got := errors.Is(err, ErrStuck); got != tc.stuck {
				t.Errorf("%+v: stuck = %t", tc, got)
			}
		}
	})
}

// fickleSolver is a network: it loses each job's first send, answers others twice, and floods its desk with replies to nobody.
type fickleSolver struct {
	mu     sync.Mutex
	open   int
	sends  map[partition.JobID]int
	closed bool
}

func (s *fickleSolver) Attach(_ stream.Partition, deliver func(partition.Result)) Desk {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open++
	return &fickleDesk{s, deliver}
}

type fickleDesk struct {
	s       *fickleSolver
	deliver func(partition.Result)
}

func (d *fickleDesk) Submit(job partition.Dispatch) bool {
	d.s.mu.Lock()
	defer d.s.mu.Unlock()
	if len(d.s.sends) == 0 {
		for i := range 3 * unreadReplies { // within one step of the worker: nothing is taken meanwhile
			d.deliver(partition.Result{Key: stream.Key(fmt.Sprint("nobody", i))})
		}
	}
	d.s.sends[job.Job]++
	if d.s.sends[job.Job] == 1 {
		return true
	}
	for range 2 {
		go d.deliver(partition.Result{
			Job: job.Job, Key: job.Key, Revision: job.Revision, Decision: partition.Decision{Kind: partition.Solved, Answer: job.Request},
		})
	}
	return true
}

func (d *fickleDesk) Close() {
	d.s.mu.Lock()
	defer d.s.mu.Unlock()
	d.s.open--
	d.s.closed = true
}

// A9, A10, F15: over a solver that loses, doubles and floods, each observation comes out once; what waits for the worker is bounded;
// the desk closes with its partition.
func TestRemoteSolver(t *testing.T) {
	bubble(t, 1, func(r *rig) {
		t := r.t
		s := &fickleSolver{sends: map[partition.JobID]int{}}
		p := r.start("one", func(_ *Config, d *Deps) { d.Solver, d.Remote = nil, s })
		r.produce(0, numbered("k", 0, 5)...)
		r.eventually("outputs", func() bool { return len(r.values("k")) == 5 })
		r.eventually("the statistics are seen", func() bool {
			all := p.Status()
			if len(all) == 0 {
				return false
			}
			n := all[0].View.Stats
			if n.Rejected > 2*unreadReplies {
				t.Errorf("%d replies were rejected, %d may wait at once", n.Rejected, unreadReplies)
			}
			return n.Committed == 5 && n.Rejected >= unreadReplies
		})
		if err := p.stop(); err != nil {
			t.Error(err)
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.open != 0 || !s.closed {
			t.Errorf("%d desks are left open", s.open)
		}
	})
}
