package fleet

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"milepost/internal/mapmatch"
	"milepost/internal/partition"
	"milepost/internal/roadnet"
)

// ErrNoGraph is the result of a request for a graph that this process does not have, or no longer.
var ErrNoGraph = errors.New("the request's graph is not at hand")

// PoolsConfig holds the settings of Pools.
type PoolsConfig struct {
	Solvers int // of each graph's pool
	Queue   int // jobs that may wait in each
	// Linger is how long a graph that is out of force stays, for the vehicles that were last seen on it. An open stretch of one that
	// comes later is retracted instead of closed.
	Linger  time.Duration
	Matcher mapmatch.Config
	Trips   *Trips // kept between the jobs of a vehicle; nil: none
}

// Pools solves on several graphs at once: a pool for each, so that a region that is slow or flooded holds up no other.
type Pools struct {
	cfg PoolsConfig

	mu     sync.Mutex
	graphs map[[32]byte]*onGraph
	more   chan struct{} // capacity 1: something is to be started or retired
}

// onGraph is a graph with its pool.
type onGraph struct {
	graph   *roadnet.Graph
	pool    *Pool
	started bool
	retired time.Time // since when it is out of force; zero: in force
	busy    int       // jobs that wait or run, under Pools.mu
	stop    context.CancelFunc
	idle    []*mapmatch.Matcher // for flushes of stretches that end on it, under Pools.mu
}

// NewPools makes pools without graphs: Use brings them into force.
func NewPools(cfg PoolsConfig) (*Pools, error) {
	if err := cfg.Matcher.Validate(); err != nil {
		return nil, err
	}
	return &Pools{cfg: cfg, graphs: map[[32]byte]*onGraph{}, more: make(chan struct{}, 1)}, nil
}

// Graph gives a graph that is at hand, nil where there is none of that hash.
func (p *Pools) Graph(hash [32]byte) *roadnet.Graph {
	p.mu.Lock()
	defer p.mu.Unlock()
	if g := p.graphs[hash]; g != nil {
		return g.graph
	}
	return nil
}

// Use brings graphs into force, and takes all others out of force: they go on for the time of PoolsConfig.Linger, and until their last job
// has ended. On an error nothing has changed.
func (p *Pools) Use(graphs []*roadnet.Graph, now time.Time) error {
	fresh := map[[32]byte]*onGraph{}
	for _, g := range graphs {
		if hash := g.Hash(); fresh[hash] == nil && p.Graph(hash) == nil {
			pool, err := NewPool(p.cfg.Solvers, p.cfg.Queue, func() (*Solver, error) {
				m, err := mapmatch.New(g, p.cfg.Matcher)
				if err != nil {
					return nil, err
				}
				return NewSolver(m, hash).WithFlusher(p.flush).WithTrips(p.cfg.Trips), nil
			})
			if err != nil {
				return err
			}
			fresh[hash] = &onGraph{graph: g, pool: pool}
		}
	}
	inForce := map[[32]byte]bool{}
	p.mu.Lock()
	for _, g := range graphs {
		hash := g.Hash()
		inForce[hash] = true
		if p.graphs[hash] == nil { // it may have been retired for good since
			p.graphs[hash] = fresh[hash]
		}
	}
	for hash, g := range p.graphs {
		if inForce[hash] {
			g.retired = time.Time{}
		} else if g.retired.IsZero() {
			g.retired = now
		}
	}
	p.mu.Unlock()
	p.look()
	return nil
}

func (p *Pools) look() {
	select {
	case p.more <- struct{}{}:
	default: // a look is due already
	}
}

// Submit hands a request to its graph's pool and returns at once; false: that pool is full, or has ended. An accepted request's done is
// called exactly once and must not block.
func (p *Pools) Submit(request []byte, done func(partition.Decision, error)) bool {
	hash, err := requestGraph(request)
	if err != nil {
		done(partition.Decision{}, err)
		return true
	}
	p.mu.Lock()
	g := p.graphs[hash]
	if g != nil {
		g.busy++
	}
	p.mu.Unlock()
	if g == nil {
		done(partition.Decision{}, fmt.Errorf("fleet: %w: %x", ErrNoGraph, hash[:8]))
		return true
	}
	ok := g.pool.Submit(request, func(d partition.Decision, err error) {
		p.ended(g)
		done(d, err)
	})
	if !ok {
		p.ended(g)
	}
	return ok
}

func (p *Pools) ended(g *onGraph) {
	p.mu.Lock()
	g.busy--
	due := g.busy == 0 && !g.retired.IsZero()
	p.mu.Unlock()
	if due {
		p.look()
	}
}

// Run solves until ctx ends, starting and ending pools as Use demands, and waits for all of them. It is called once.
func (p *Pools) Run(ctx context.Context) error {
	var wg sync.WaitGroup
	defer wg.Wait()
	again := time.NewTimer(time.Hour)
	defer again.Stop()
	start := func(g *onGraph) {
		stopped, stop := context.WithCancel(ctx)
		g.stop = stop
		wg.Go(func() { _ = g.pool.Run(stopped) }) // it has no error of its own
	}
	for {
		again.Reset(p.turnOver(time.Now(), start))
		select {
		case <-ctx.Done():
			p.turnOver(time.Now(), start) // what came last fails its jobs
			return nil
		case <-p.more:
		case <-again.C:
		}
	}
}

// turnOver starts what is new and ends what is no longer needed; it gives the time after which to look again.
func (p *Pools) turnOver(now time.Time, start func(*onGraph)) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	next := time.Hour
	for hash, g := range p.graphs {
		if !g.started {
			g.started = true
			start(g)
		}
		if g.retired.IsZero() {
			continue
		}
		if left := g.retired.Add(p.cfg.Linger).Sub(now); left > 0 {
			next = min(next, left)
		} else if g.busy == 0 {
			g.stop()
			delete(p.graphs, hash)
		}
	}
	return next
}

// flush makes everything of a stretch on another graph of this process final.
func (p *Pools) flush(hash [32]byte, state []byte) (mapmatch.Result, error) {
	p.mu.Lock()
	g := p.graphs[hash]
	if g == nil {
		p.mu.Unlock()
		return mapmatch.Result{}, mapmatch.ErrForeignState
	}
	var m *mapmatch.Matcher
	if n := len(g.idle); n > 0 {
		m, g.idle = g.idle[n-1], g.idle[:n-1]
	}
	p.mu.Unlock()
	if m == nil {
		var err error
		if m, err = mapmatch.New(g.graph, p.cfg.Matcher); err != nil {
			return mapmatch.Result{}, err
		}
	}
	r, err := m.Flush(state)
	p.mu.Lock()
	g.idle = append(g.idle, m)
	p.mu.Unlock()
	return r, err
}

// Queued is the number of jobs that wait or run on graphs in and out of force.
func (p *Pools) Queued() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := 0
	for _, g := range p.graphs {
		n += g.busy
	}
	return n
}

// Panics is the number of solver panics so far, on the graphs that are at hand.
func (p *Pools) Panics() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	var n int64
	for _, g := range p.graphs {
		n += g.pool.Panics()
	}
	return n
}

// Graphs is the number of graphs at hand; more than are in force while a catalog's change is under way.
func (p *Pools) Graphs() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.graphs)
}

// requestGraph reads the graph of an encoded request, and nothing else of it.
func requestGraph(b []byte) (hash [32]byte, err error) {
	for len(b) > 0 {
		n, kind, size := protowire.ConsumeTag(b)
		if size < 0 {
			return hash, fmt.Errorf("fleet: decode solve request: %w", protowire.ParseError(size))
		}
		b = b[size:]
		if n == solveRequestGraph && kind == protowire.BytesType {
			v, size := protowire.ConsumeBytes(b)
			if size < 0 || len(v) != len(hash) {
				break
			}
			return [32]byte(v), nil
		}
		if size = protowire.ConsumeFieldValue(n, kind, b); size < 0 {
			return hash, fmt.Errorf("fleet: decode solve request: %w", protowire.ParseError(size))
		}
		b = b[size:]
	}
	return hash, errors.New("fleet: decode solve request: it names no graph")
}

// solveRequestGraph is the field's number in the message.
const solveRequestGraph = 10
