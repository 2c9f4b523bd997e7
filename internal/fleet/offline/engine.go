package offline

import (
	"fmt"

	"milepost/internal/fleet"
	"milepost/internal/mapmatch"
	"milepost/internal/roadnet"
)

// World is where traces are matched: an atlas, and the graphs that its regions lie on.
type World struct {
	Atlas  *fleet.Atlas
	Graphs []*roadnet.Graph
}

// OneMap is the world of one road network.
func OneMap(g *roadnet.Graph) World {
	return World{Atlas: fleet.OneMap(fleet.MapOf(g)), Graphs: []*roadnet.Graph{g}}
}

// Engine matches over a world with one configuration of the matcher. Its scratch memory for a graph is made at the first observation there
// and serves any number of runs, one after the other: it belongs to one goroutine.
type Engine struct {
	world World
	cfg   mapmatch.Config
	on    map[[32]byte]*station
}

// station is what an engine has on one graph.
type station struct {
	matcher *mapmatch.Matcher
	solver  *fleet.Solver
}

// NewEngine checks the configuration and that every graph has roads for its class of vehicles.
func NewEngine(w World, cfg mapmatch.Config) (*Engine, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("configuration of the matcher: %w", err)
	}
	for _, g := range w.Graphs {
		if !g.Vehicles().Has(cfg.Vehicle) {
			return nil, fmt.Errorf("the road map has no roads for a %v, only for %v (graph build --vehicles makes one that has)", cfg.Vehicle, g.Vehicles())
		}
	}
	return &Engine{world: w, cfg: cfg, on: map[[32]byte]*station{}}, nil
}

// at gives the engine's station on a graph.
func (e *Engine) at(hash [32]byte) (*station, error) {
	if s := e.on[hash]; s != nil {
		return s, nil
	}
	for _, g := range e.world.Graphs {
		if g.Hash() != hash {
			continue
		}
		m, err := mapmatch.New(g, e.cfg)
		if err != nil {
			return nil, err
		}
		s := &station{matcher: m, solver: fleet.NewSolver(m, hash).WithFlusher(e.flush)}
		e.on[hash] = s
		return s, nil
	}
	return nil, fmt.Errorf("%w: %x", fleet.ErrNoGraph, hash[:8])
}

// flush ends a stretch on another graph.
func (e *Engine) flush(hash [32]byte, state []byte) (mapmatch.Result, error) {
	s, err := e.at(hash)
	if err != nil {
		return mapmatch.Result{}, mapmatch.ErrForeignState
	}
	return s.matcher.Flush(state)
}

// explain says how a request's observation is judged. It asks the same matcher over the same state as the request's answer.
func (s *station) explain(r *fleet.Request) (*mapmatch.Explanation, error) {
	state := r.State
	if r.Seed != nil {
		var err error
		if state, _, err = s.matcher.Push(nil, *r.Seed); err != nil {
			return nil, fmt.Errorf("explain: %w", err)
		}
	}
	_, x, err := s.matcher.Explain(state, r.Observation)
	if err != nil {
		return nil, fmt.Errorf("explain: %w", err)
	}
	return &x, nil
}
