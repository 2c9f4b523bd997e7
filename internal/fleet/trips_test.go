package fleet

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"testing"

	"milepost/internal/mapmatch"
	"milepost/internal/partition"
	"milepost/internal/stream"
)

// adder is a matcher whose state counts what it was pushed.
type adder struct{}

func (adder) Push(state []byte, _ mapmatch.Observation) ([]byte, mapmatch.Result, error) {
	return append(append([]byte{}, state...), byte(len(state)+1)), mapmatch.Result{Seq: int64(len(state) + 1)}, nil
}

func (adder) Flush([]byte) (mapmatch.Result, error) { return mapmatch.Result{}, nil }

// asked gives the nth request of a vehicle over a state, whole or without it.
func asked(t *testing.T, n int64, state []byte, without bool) []byte {
	t.Helper()
	r := sampleRequest()
	r.Closing, r.Seed, r.ClosingGraph = nil, nil, r.Graph
	r.Base, r.Identity.Revision = stream.Revision{Generation: 1, Offset: n - 1}, stream.Revision{Generation: 1, Offset: n}
	r.State = state
	if without {
		d := sha256.Sum256(state)
		r.State, r.StateDigest = nil, d[:]
	}
	b, err := encodeRequest(r)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// A9: a request without the trip has the answer of the whole one, byte for byte; a trip is taken on use and vouched for by
// revision and digest; what is not there is a miss, which is no decision.
func TestRequestsWithoutTheTrip(t *testing.T) {
	trips := NewTrips(1 << 20)
	s, plain := NewSolver(adder{}, [32]byte{9}).WithTrips(trips), NewSolver(adder{}, [32]byte{9})
	if _, err := s.Solve(asked(t, 1, nil, false)); err != nil {
		t.Fatal(err)
	}
	got, err := s.Solve(asked(t, 2, []byte{1}, true))
	if err != nil {
		t.Fatal(err)
	}
	want, err := plain.Solve(asked(t, 2, []byte{1}, false))
	if err != nil {
		t.Fatal(err)
	}
	if string(got.Answer) != string(want.Answer) {
		t.Errorf("without the trip %x, with it %x", got.Answer, want.Answer)
	}
	for _, c := range []struct {
		what    string
		request []byte
	}{
		{"of an earlier revision", asked(t, 2, []byte{1}, true)},
		{"taken on use", asked(t, 3, []byte{1, 2}, true)},
	} {
		if d, err := s.Solve(c.request); !errors.Is(err, partition.ErrTripMiss) || d.Kind != 0 {
			t.Errorf("%s: %v, %v, want a trip miss", c.what, d, err)
		}
	}
	if _, err := s.Solve(asked(t, 3, []byte{1, 2}, false)); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Solve(asked(t, 4, []byte{9, 9, 9}, true)); !errors.Is(err, partition.ErrTripMiss) {
		t.Errorf("other digest: %v, want a trip miss", err)
	}
	if _, err := plain.Solve(asked(t, 2, []byte{1}, true)); !errors.Is(err, partition.ErrTripMiss) {
		t.Errorf("a solver that keeps none: %v", err)
	}
	if got := trips.Stats(); got.Hits != 1 || got.Misses+got.Mismatches != 3 || got.Trips != 0 || got.Bytes != 0 {
		t.Errorf("%+v", got)
	}
}

// A9: the trips stay within their bound in bytes; the least recently used goes first.
func TestTripsAreBounded(t *testing.T) {
	const each = tripOverhead + 2 + 3 + 100
	trips := NewTrips(10 * each)
	at := func(i int) *Request {
		r := &Request{Key: stream.Key(fmt.Sprintf("v%02d", i)), Base: stream.Revision{Generation: 1, Offset: 4}}
		r.Identity.Partition.Topic, r.Identity.Revision = "ra", r.Base
		d := sha256.Sum256(make([]byte, 100))
		r.StateDigest = d[:]
		return r
	}
	for i := range 100 {
		trips.put(at(i), 1, make([]byte, 100))
		if i >= 50 && trips.take(at(40)) == nil { // used all the time
			t.Fatalf("after %d a trip in use is gone", i)
		} else if i >= 40 {
			trips.put(at(40), 1, make([]byte, 100))
		}
	}
	if got := trips.Stats(); got.Trips != 10 || got.Bytes != 10*each || got.Evicted < 80 {
		t.Errorf("%+v, want 10 trips of %d bytes", got, each)
	}
	trips.put(at(1), 1, make([]byte, 20*each))
	if trips.take(at(1)) != nil {
		t.Error("a trip larger than the bound is kept")
	}
}

// A9: only a state that goes on can be left out, and only where somebody may hold it.
func TestShortRequest(t *testing.T) {
	sticky := partition.KeyState{Sticky: true}
	for name, c := range map[string]struct {
		k    partition.KeyState
		tune func(*Request)
		want bool
	}{
		"goes on":      {sticky, func(r *Request) { r.Closing, r.Seed = nil, nil }, true},
		"nobody":       {partition.KeyState{}, func(r *Request) { r.Closing, r.Seed = nil, nil }, false},
		"ends another": {sticky, func(*Request) {}, false},
		"begins":       {sticky, func(r *Request) { r.Closing, r.Seed, r.State = nil, nil, nil }, false},
	} {
		r := sampleRequest()
		c.tune(r)
		b := short(c.k, r)
		if (b != nil) != c.want {
			t.Errorf("%s: %d bytes, want some: %t", name, len(b), c.want)
		}
		if b == nil {
			continue
		}
		got, err := DecodeRequest(b)
		if err != nil || got.State != nil || string(got.StateDigest) != string(digestOf(r.State)) || got.Base != r.Base {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}

func digestOf(b []byte) []byte {
	d := sha256.Sum256(b)
	return d[:]
}

// stopping is an adder that cannot solve, or refuses as too late, what comes over a state of its length.
type stopping struct {
	adder
	fails, late int
	large       bool
}

func (s stopping) Push(state []byte, o mapmatch.Observation) ([]byte, mapmatch.Result, error) {
	if len(state) == s.fails {
		return nil, mapmatch.Result{}, errors.New("cannot be solved")
	}
	next, r, err := s.adder.Push(state, o)
	if len(state) == s.late {
		next, r.Disposition = state, mapmatch.Regressed
	}
	if s.large {
		r.Path = append(r.Path, mapmatch.Span{Nodes: make([]int64, maxAnswers/4)})
	}
	return next, r, err
}

// F21: a run is solved as far as it goes: before an observation that cannot be solved, which fails in a job of its own; up to one that comes too
// late for the matcher, behind which everything is to be judged anew; within a bound in bytes. The trip kept is that of the last one
// solved, and goes on in the next job.
func TestRunsStopEarly(t *testing.T) {
	run := func(s stopping) (*Solver, *Trips, partition.Decision, error) {
		trips := NewTrips(1 << 20)
		solver := NewSolver(s, [32]byte{9}).WithTrips(trips)
		r := sampleRequest()
		r.Closing, r.Seed, r.ClosingGraph, r.State = nil, nil, r.Graph, nil
		r.Base, r.Identity.Revision = stream.Revision{Generation: 1}, stream.Revision{Generation: 1, Offset: 1}
		for i := range 4 {
			r.More = append(r.More, Next{Offset: int64(2 + i), Observation: r.Observation})
		}
		b, err := encodeRequest(r)
		if err != nil {
			t.Fatal(err)
		}
		d, err := solver.Solve(b)
		return solver, trips, d, err
	}
	solver, _, d, err := run(stopping{fails: 3, late: 99})
	if err != nil || len(d.More) != 2 {
		t.Fatalf("one that cannot be solved: %d more answers, %v; want the two before it", len(d.More), err)
	}
	r := sampleRequest()
	state := []byte{1, 2, 3}
	digest := sha256.Sum256(state)
	r.Closing, r.Seed, r.ClosingGraph, r.State, r.StateDigest = nil, nil, r.Graph, nil, digest[:]
	r.Base, r.Identity.Revision = stream.Revision{Generation: 1, Offset: 3}, stream.Revision{Generation: 1, Offset: 4}
	b, err := encodeRequest(r)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := solver.Solve(b); err == nil || errors.Is(err, partition.ErrTripMiss) {
		t.Errorf("the next job: %v, want its own failure over the trip of the last one solved", err)
	}
	if _, _, _, err := run(stopping{fails: 0, late: 99}); err == nil {
		t.Error("the first cannot be solved: no error")
	}
	if _, _, d, err := run(stopping{fails: 99, late: 2}); err != nil || len(d.More) != 2 {
		t.Errorf("too late: %d more answers, %v; want it to be the last", len(d.More), err)
	}
	if _, _, d, err := run(stopping{fails: 99, late: 99, large: true}); err != nil || len(d.More) == 0 || len(d.More) == 4 {
		t.Errorf("large: %d more answers, %v; want it to stop", len(d.More), err)
	}
}
