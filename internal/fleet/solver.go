package fleet

import (
	"errors"
	"fmt"

	"milepost/internal/commit"
	"milepost/internal/mapmatch"
	"milepost/internal/partition"
)

// Matcher matches one observation over a state that travels with the request: mapmatch's Matcher. It is one
// goroutine's.
type Matcher interface {
	// Push extends the state, nil for a new stretch, by one observation. ErrForeignState: another graph, configuration or version.
	Push(state []byte, o mapmatch.Observation) (next []byte, r mapmatch.Result, err error)
	// Flush makes everything of a stretch final.
	Flush(state []byte) (mapmatch.Result, error)
}

// Solver answers requests with one matcher over one graph. It is one goroutine's.
type Solver struct {
	matcher Matcher
	graph   [32]byte
	flush   Flusher
	trips   *Trips
}

// Flusher makes everything of a stretch on another graph final; mapmatch.ErrForeignState where that graph is not at hand.
type Flusher func(graph [32]byte, state []byte) (mapmatch.Result, error)

// NewSolver makes a solver; graph is the hash of the matcher's graph.
func NewSolver(m Matcher, graph [32]byte) *Solver { return &Solver{matcher: m, graph: graph} }

// WithFlusher lets the solver close stretches of vehicles that came from another graph; without one their open ends are retracted.
func (s *Solver) WithFlusher(f Flusher) *Solver {
	s.flush = f
	return s
}

// WithTrips lets the solver answer requests without a trip, from the trips that it and others keep there.
func (s *Solver) WithTrips(t *Trips) *Solver {
	s.trips = t
	return s
}

// Solve answers one request. It depends on the request, or what it is short for, and the graph alone. An error is of class Permanent, but for a request that is
// for another graph: that is this replica's, not the key's.
func (s *Solver) Solve(request []byte) (partition.Decision, error) {
	r, err := DecodeRequest(request)
	if err != nil {
		return partition.Decision{}, fmt.Errorf("fleet: %w: %w", commit.ErrPermanent, err)
	}
	if r.Graph != s.graph {
		return partition.Decision{}, fmt.Errorf("fleet: the request is for graph %x, this solver has %x", r.Graph[:8], s.graph[:8])
	}
	if r.StateDigest != nil {
		if r.State = s.trips.take(r); r.State == nil {
			return partition.Decision{}, fmt.Errorf("fleet: %s over %s: %w", r.Identity.Revision, r.Base, partition.ErrTripMiss)
		}
	}
	a, err := s.answer(r)
	if err != nil {
		return partition.Decision{}, fmt.Errorf("fleet: %w: solve %s: %w", commit.ErrPermanent, r.Identity.Revision, err)
	}
	b, err := encodeAnswer(a)
	if err != nil {
		return partition.Decision{}, fmt.Errorf("fleet: %w: %w", commit.ErrPermanent, err)
	}
	d := partition.Decision{Kind: partition.Solved, Answer: b}
	state := s.run(r, a, &d)
	s.trips.put(r, 1+len(d.More), state)
	return d, nil
}

// maxAnswers bounds the answers of one job in bytes.
const maxAnswers = 512 << 10

// run solves the observations that follow in the request, each over the state that the one before left, and gives the last state. It stops
// before what cannot be solved, and behind an observation that comes too late for the matcher: what follows is for a job of its own to say.
func (s *Solver) run(r *Request, a *answer, d *partition.Decision) []byte {
	size := len(d.Answer)
	for i := range r.More {
		if a.change.Disposition == mapmatch.Regressed || size >= maxAnswers {
			break
		}
		next := &answer{}
		var err error
		if next.state, next.change, err = s.matcher.Push(a.state, r.More[i].Observation); err != nil {
			break
		}
		b, err := encodeAnswer(next)
		if err != nil {
			break
		}
		d.More = append(d.More, b)
		a, size = next, size+len(b)
	}
	return a.state
}

func (s *Solver) answer(r *Request) (*answer, error) {
	a := &answer{}
	if r.Closing != nil {
		closed, err := s.close(r)
		switch {
		case errors.Is(err, mapmatch.ErrForeignState):
			a.closingLost = true
		case err != nil:
			return nil, fmt.Errorf("flush: %w", err)
		default:
			a.closed = &closed
		}
	}
	if r.Seed != nil && s.seeded(a, r) {
		return a, nil
	}
	var err error
	a.state, a.change, err = s.matcher.Push(r.State, r.Observation)
	if r.State != nil && errors.Is(err, mapmatch.ErrForeignState) {
		a.stateLost = true
		a.state, a.change, err = s.matcher.Push(nil, r.Observation)
	}
	if err != nil {
		return nil, fmt.Errorf("push: %w", err)
	}
	return a, nil
}

func (s *Solver) close(r *Request) (mapmatch.Result, error) {
	switch {
	case r.ClosingGraph == r.Graph:
		return s.matcher.Flush(r.Closing)
	case s.flush == nil:
		return mapmatch.Result{}, mapmatch.ErrForeignState
	}
	return s.flush(r.ClosingGraph, r.Closing)
}

// seeded begins the new stretch at the last place of the one on the other graph, so that the way between the two is not lost. It reports
// false where this graph has no such way: then the new stretch begins with the observation.
func (s *Solver) seeded(a *answer, r *Request) bool {
	first, seed, err := s.matcher.Push(nil, *r.Seed)
	if err != nil || seed.Disposition != mapmatch.Matched || seed.Provisional == nil {
		return false
	}
	state, change, err := s.matcher.Push(first, r.Observation)
	if err != nil || change.Break != mapmatch.NoBreak {
		return false
	}
	switch change.Disposition {
	case mapmatch.OffRoad, mapmatch.Outlier, mapmatch.Regressed:
		return false
	case mapmatch.Matched, mapmatch.Standing, mapmatch.Interpolated:
	}
	a.state, a.change = state, change
	return true
}
