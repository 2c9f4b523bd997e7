package main

import (
	"sync"

	"milepost/internal/fleet"
	"milepost/internal/mapmatch"
	"milepost/internal/mapmatch/matchtest"
	"milepost/internal/roadnet"
	"milepost/internal/traffic"
)

// routes puts each vehicle's route together from the matched events, as any consumer of them could.
type routes struct {
	mu       sync.Mutex
	vehicles map[string]*route
}

// route is one vehicle's.
type route struct {
	legs  [][]mapmatch.Span // of segments that are complete
	track mapmatch.Track    // of the open one
}

func newRoutes() *routes { return &routes{vehicles: map[string]*route{}} }

// apply takes one event; a vehicle's come in order.
func (r *routes) apply(value []byte) error {
	e, err := fleet.DecodeEvent(value)
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	v := r.vehicles[e.Vehicle]
	if v == nil {
		v = &route{}
		r.vehicles[e.Vehicle] = v
	}
	if e.Reset != nil {
		v.track.Apply(result(e.Closed, nil))
		v.legs = append(v.legs, v.track.Legs...)
		v.track = mapmatch.Track{}
	}
	v.track.Apply(result(e.Final, &e))
	return nil
}

// result reads back what the matcher said: as much of it as a route needs.
func result(final *fleet.Final, e *fleet.Event) mapmatch.Result {
	var r mapmatch.Result
	if final != nil {
		r.FinalPath = spans(final.Path)
		for _, p := range final.Points {
			r.FinalPoints = append(r.FinalPoints, mapmatch.Position{Seq: p.Seq})
		}
	}
	if e != nil && e.Provisional != nil && e.Seq != nil {
		r.Seq, r.Supersedes, r.Path, r.Provisional = *e.Seq, *e.Seq, spans(e.Path), &mapmatch.Position{Seq: *e.Seq}
		if e.Supersedes != nil {
			r.Supersedes = *e.Supersedes
		}
	}
	return r
}

func spans(in []fleet.Span) []mapmatch.Span {
	out := make([]mapmatch.Span, 0, len(in))
	for _, s := range in {
		out = append(out, mapmatch.Span{
			Key: roadnet.EdgeKey{Way: s.Way, From: s.From, To: s.To}, FromM: s.FromM, ToM: s.ToM, Nodes: s.Nodes,
		})
	}
	return out
}

// mismatch is the route mismatch fraction of all vehicles together, weighted by length.
func (r *routes) mismatch(g *roadnet.Graph, f *traffic.Fleet) float64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	lengths := matchtest.Lengths(g)
	var score matchtest.Score
	for i := range f.Vehicles() {
		var truth, got []mapmatch.Pair
		for _, p := range f.Truth(i) {
			truth = append(truth, mapmatch.Pair(p))
		}
		if v := r.vehicles[f.ID(i)]; v != nil {
			for _, leg := range append(v.legs[:len(v.legs):len(v.legs)], v.track.Paths()...) {
				got = append(got, mapmatch.AppendPairs(nil, leg)...)
			}
		}
		score.Add(matchtest.RouteMismatch(truth, got, lengths))
	}
	return score.Mismatch()
}
