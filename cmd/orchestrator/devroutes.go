package main

import (
	"sync"

	"milepost/internal/fleet"
	"milepost/internal/mapmatch"
	"milepost/internal/mapmatch/matchtest"
	"milepost/internal/roadnet"
	"milepost/internal/traffic"
)

// routes puts each vehicle's route together from the matched events, as any consumer of them could. The screen asks while
// the auditor's reader adds.
type routes struct {
	mu       sync.Mutex
	vehicles map[string]*fleet.Track
}

func newRoutes() *routes { return &routes{vehicles: map[string]*fleet.Track{}} }

// apply takes one event; a vehicle's come in order.
func (r *routes) apply(value []byte) error {
	e, err := fleet.DecodeEvent(value)
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	track := r.vehicles[e.Vehicle]
	if track == nil {
		track = &fleet.Track{}
		r.vehicles[e.Vehicle] = track
	}
	track.Apply(&e)
	return nil
}

// mismatch is the route mismatch fraction of all vehicles together, weighted by length.
func (r *routes) mismatch(g *roadnet.Graph, f *traffic.Fleet) float64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	lengths := matchtest.Lengths(g)
	var score matchtest.Score
	for i := range f.Vehicles() {
		truth := make([]mapmatch.Pair, 0, len(f.Truth(i)))
		for _, p := range f.Truth(i) {
			truth = append(truth, mapmatch.Pair(p))
		}
		var got []mapmatch.Pair
		if track := r.vehicles[f.ID(i)]; track != nil {
			got = track.Pairs()
		}
		score.Add(matchtest.RouteMismatch(truth, got, lengths))
	}
	return score.Mismatch()
}
