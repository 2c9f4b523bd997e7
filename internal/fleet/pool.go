package fleet

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"sync/atomic"

	"milepost/internal/commit"
	"milepost/internal/partition"
)

// ErrPoolClosed is the result of jobs that the end of the pool met unsolved.
var ErrPoolClosed = errors.New("the solver pool is closed")

// PanicError is a solver's panic, recovered: of class Permanent for its key, and nobody else's concern (B3).
type PanicError struct {
	Value any
	Stack []byte // for the log
}

func (e *PanicError) Error() string { return fmt.Sprintf("a solver panicked: %v", e.Value) }

// Unwrap gives the class.
func (e *PanicError) Unwrap() error { return commit.ErrPermanent }

// Pool is the bounded in-process solver pool.
type Pool struct {
	fresh   func() (*Solver, error)
	solvers []*Solver
	queue   chan job // capacity: the bound on jobs that wait
	panics  atomic.Int64

	mu     sync.Mutex // guards closed against Submit, so that no job enters a queue that nobody drains
	closed bool
}

type job struct {
	request []byte
	done    func(partition.Decision, error)
}

// NewPool makes a pool of n solvers, each driven by one goroutine of Run, with room for queue waiting jobs. A solver that panicked is
// replaced by a fresh one: its scratch memory cannot be trusted any more.
func NewPool(n, queue int, fresh func() (*Solver, error)) (*Pool, error) {
	if n < 1 || queue < 1 {
		return nil, fmt.Errorf("fleet: a pool needs a solver and room for a job, has %d and %d", n, queue)
	}
	p := &Pool{fresh: fresh, queue: make(chan job, queue)}
	for range n {
		s, err := fresh()
		if err != nil {
			return nil, fmt.Errorf("make a solver: %w", err)
		}
		p.solvers = append(p.solvers, s)
	}
	return p, nil
}

// Submit hands a request over and returns at once; false: full, or the pool has ended. An accepted job's done is called exactly
// once, from a goroutine of the pool: it must not block.
func (p *Pool) Submit(request []byte, done func(partition.Decision, error)) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return false
	}
	select {
	case p.queue <- job{request, done}:
		return true
	default:
		return false
	}
}

// Run solves jobs until ctx ends, waits for the running ones, fails the waiting ones with ErrPoolClosed and returns nil. It is
// called once.
func (p *Pool) Run(ctx context.Context) error {
	var wg sync.WaitGroup
	for _, s := range p.solvers {
		wg.Go(func() { p.work(ctx, s) })
	}
	wg.Wait()
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	for {
		select {
		case j := <-p.queue:
			j.done(partition.Decision{}, ErrPoolClosed)
		default:
			return nil
		}
	}
}

// Queued is the number of jobs that wait.
func (p *Pool) Queued() int { return len(p.queue) }

// Panics is the number of solver panics so far.
func (p *Pool) Panics() int64 { return p.panics.Load() }

func (p *Pool) work(ctx context.Context, s *Solver) {
	for {
		select {
		case <-ctx.Done():
			return
		case j := <-p.queue:
			d, err := p.solve(s, j.request)
			if panicked := (*PanicError)(nil); errors.As(err, &panicked) {
				// Where no fresh one can be made the old one goes on: making it worked before, with the same arguments.
				if f, err := p.fresh(); err == nil {
					s = f
				}
			}
			j.done(d, err)
		}
	}
}

func (p *Pool) solve(s *Solver, request []byte) (d partition.Decision, err error) {
	defer func() {
		if v := recover(); v != nil {
			p.panics.Add(1)
			d, err = partition.Decision{}, &PanicError{Value: v, Stack: debug.Stack()}
		}
	}()
	return s.Solve(request)
}
