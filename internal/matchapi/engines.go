package matchapi

import (
	"slices"
	"sync"

	"milepost/internal/fleet"
	"milepost/internal/fleet/offline"
	"milepost/internal/mapmatch"
)

// engines keeps idle engines, the most recently used ones, since each holds a few bytes for each edge of its maps.
type engines struct {
	keep int

	mu   sync.Mutex
	idle []idleEngine
}

// idleEngine is an engine that nobody uses, with what it was made for: a world is another when its atlas is.
type idleEngine struct {
	atlas  *fleet.Atlas
	cfg    mapmatch.Config
	engine *offline.Engine
}

// take gives an engine for the caller alone.
func (e *engines) take(w offline.World, cfg mapmatch.Config) (*offline.Engine, error) {
	e.mu.Lock()
	i := slices.IndexFunc(e.idle, func(i idleEngine) bool { return i.atlas == w.Atlas && i.cfg == cfg })
	if i >= 0 {
		engine := e.idle[i].engine
		e.idle = slices.Delete(e.idle, i, i+1)
		e.mu.Unlock()
		return engine, nil
	}
	e.mu.Unlock()
	return offline.NewEngine(w, cfg)
}

// give takes an engine back. Those of worlds that are out of force go, and beyond the bound the longest unused one.
func (e *engines) give(inForce *fleet.Atlas, back idleEngine) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.idle = append(e.idle, back)
	e.idle = slices.DeleteFunc(e.idle, func(i idleEngine) bool { return i.atlas != inForce })
	if len(e.idle) > e.keep {
		e.idle = slices.Delete(e.idle, 0, 1)
	}
}
