package consumer

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"milepost/internal/partition"
	"milepost/internal/stream"
)

// gatedSolver takes nothing while it is shut, and notes who was offered then and who was given when.
type gatedSolver struct {
	mu      sync.Mutex
	shut    bool
	offered []stream.Key // while it was shut
	given   []stream.Key
}

func (s *gatedSolver) Submit(job partition.Dispatch, done func(partition.Decision, error)) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.shut {
		s.offered = append(s.offered, job.Key)
		return false
	}
	s.given = append(s.given, job.Key)
	go done(partition.Decision{Kind: partition.Solved, Answer: job.Request}, nil)
	return true
}

func (s *gatedSolver) set(shut bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.shut = shut
}

// A8: a request that cannot be handed over stops the round: nobody who comes later overtakes it, only the first in line is offered again until the
// fault is over, and then all go out in the order in which they came, each once.
func TestSolverFaultStopsTheRound(t *testing.T) {
	bubble(t, 1, func(r *rig) {
		t := r.t
		solver := &gatedSolver{}
		p := r.start("one", func(_ *Config, d *Deps) { d.Solver = solver })
		var want []stream.Key
		for i := range 20 {
			want = append(want, stream.Key(fmt.Sprintf("k%02d", i)))
			r.produce(0, string(want[i])+"=0") // their rows are read: what follows is ready in the order in which it comes
		}
		r.eventually("outputs before the fault", func() bool { return len(r.broker.Values()) == 20 })
		solver.set(true)
		for _, key := range want {
			r.produce(0, string(key)+"=1")
		}
		began := time.Now()
		r.eventually("the first in line to be offered again", func() bool {
			solver.mu.Lock()
			defer solver.mu.Unlock()
			return len(solver.offered) >= 5
		})
		if took := time.Since(began); took > 3*time.Second {
			t.Fatalf("it took %s: resends have come and the test shows nothing", took)
		}
		solver.set(false)
		r.eventually("all outputs", func() bool { return len(r.broker.Values()) == 40 })
		if err := p.stop(); err != nil {
			t.Fatal(err)
		}
		for _, key := range solver.offered {
			if key != want[0] {
				t.Errorf("during the fault %s was offered, which is not the first in line", key)
			}
		}
		if got := solver.given[20:]; !slices.Equal(got, want) {
			t.Errorf("after the fault jobs went out as %v", got)
		}
	})
}
