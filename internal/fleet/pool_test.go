package fleet_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"go.uber.org/goleak"

	"milepost/internal/commit"
	"milepost/internal/fleet"
	"milepost/internal/mapmatch"
	"milepost/internal/partition"
	"milepost/internal/roadnet"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// faulty is a matcher that panics on points of negative latitude, blocks on those of latitude 1, and counts how many were made.
type faulty struct {
	gate chan struct{}
}

func (f faulty) Push(_ []byte, o mapmatch.Observation) ([]byte, mapmatch.Result, error) {
	if o.Point.Lat < 0 {
		panic("broken scratch memory")
	}
	if o.Point.Lat == 1 {
		<-f.gate
	}
	return []byte("s"), mapmatch.Result{Disposition: mapmatch.OffRoad}, nil
}

func (f faulty) Flush([]byte) (mapmatch.Result, error) { return mapmatch.Result{}, nil }

func request(tb testing.TB, lat float64) []byte {
	tb.Helper()
	w := workload(tb, config(), fleet.Map{SouthWest: roadnet.Point{Lat: -1}, NorthEast: roadnet.Point{Lon: 1, Lat: 1}})
	o := partition.Observation{Key: "v", Value: fleet.Fix{Observation: mapmatch.Observation{Time: epoch(), Point: mapPoint(lat)}}}
	opening := w.Open(partition.KeyState{}, o)
	if opening.Request == nil {
		tb.Fatalf("opening %+v", opening)
	}
	return opening.Request
}

// B3, style "errors": a solver's panic is that job's error, of class permanent, and counted; the solver is replaced and the next job runs.
func TestPoolSurvivesPanic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var made atomic.Int64
		pool, err := fleet.NewPool(1, 8, func() (*fleet.Solver, error) {
			made.Add(1)
			return fleet.NewSolver(faulty{}, [32]byte{}), nil
		})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		var errs []error
		for _, lat := range []float64{-1, 0.5} {
			if !pool.Submit(request(t, lat), func(_ partition.Decision, err error) { errs = append(errs, err) }) {
				t.Fatal("not accepted")
			}
		}
		ended := make(chan error, 1)
		go func() { ended <- pool.Run(ctx) }()
		synctest.Wait()
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("run: %v", err)
		}
		var panicked *fleet.PanicError
		if len(errs) != 2 || !errors.As(errs[0], &panicked) || commit.ClassOf(errs[0]) != commit.Permanent || errs[1] != nil {
			t.Errorf("got %v, want a panic of class permanent and success", errs)
		}
		if pool.Panics() != 1 || made.Load() != 2 {
			t.Errorf("%d panics and %d solvers made, want 1 and 2", pool.Panics(), made.Load())
		}
	})
}

// Design 8: the pool is bounded and never blocks its caller; at its end running jobs finish, waiting ones fail, each exactly once, and none
// is accepted any more.
func TestPoolIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := make(chan struct{})
		pool, err := fleet.NewPool(1, 2, func() (*fleet.Solver, error) { return fleet.NewSolver(faulty{gate}, [32]byte{}), nil })
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- pool.Run(ctx) }()
		slow := request(t, 1)
		var solved, closed atomic.Int64
		done := func(_ partition.Decision, err error) {
			switch {
			case err == nil:
				solved.Add(1)
			case errors.Is(err, fleet.ErrPoolClosed) && commit.ClassOf(err) == commit.Transient:
				closed.Add(1)
			default:
				t.Errorf("got %v", err)
			}
		}
		if !pool.Submit(slow, done) {
			t.Fatal("an empty pool refused a job")
		}
		synctest.Wait() // it runs
		for i, want := range []bool{true, true, false} {
			if got := pool.Submit(slow, done); got != want {
				t.Errorf("job %d: accepted %v, want %v", i, got, want)
			}
		}
		if pool.Queued() != 2 {
			t.Errorf("%d wait, want 2", pool.Queued())
		}
		cancel()
		synctest.Wait()
		close(gate)
		if err := <-ended; err != nil {
			t.Errorf("run: %v", err)
		}
		if solved.Load()+closed.Load() != 3 || solved.Load() < 1 {
			t.Errorf("%d solved, %d closed, want 3 in all", solved.Load(), closed.Load())
		}
		if pool.Submit(slow, done) {
			t.Error("a closed pool accepted a job")
		}
	})
}

// A request for another graph is this solver's fault, not the key's: transient, so that the key is not quarantined for it; junk is permanent.
func TestSolverErrors(t *testing.T) {
	_, err := fleet.NewSolver(faulty{}, [32]byte{1}).Solve(request(t, 0.5))
	if err == nil || commit.ClassOf(err) != commit.Transient {
		t.Errorf("another graph: %v", err)
	}
	_, err = fleet.NewSolver(faulty{}, [32]byte{1}).Solve([]byte("\xff"))
	if err == nil || commit.ClassOf(err) != commit.Permanent {
		t.Errorf("junk: %v", err)
	}
	if _, err := fleet.NewPool(0, 1, nil); err == nil {
		t.Error("a pool without solvers was made")
	}
	broken := errors.New("no memory")
	if _, err := fleet.NewPool(1, 1, func() (*fleet.Solver, error) { return nil, broken }); !errors.Is(err, broken) {
		t.Errorf("got %v, want the cause", err)
	}
}

// A1, style "config": every limit is checked, NaN too.
func TestConfigValidate(t *testing.T) {
	if err := config().Validate(); err != nil {
		t.Errorf("the defaults: %v", err)
	}
	c := fleet.Config{}
	if err := c.Validate(); err == nil {
		t.Error("an empty configuration is valid")
	}
	if _, err := fleet.New(c, fleet.OneMap(fleet.Map{})); err == nil {
		t.Error("a workload was made of it")
	}
}

func mapPoint(lat float64) roadnet.Point { return roadnet.Point{Lon: 0.5, Lat: lat} }
