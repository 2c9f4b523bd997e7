package mapmatch

import (
	"fmt"

	"milepost/internal/roadnet"
)

// Matcher matches over one graph. It has scratch memory: one a goroutine. Its results depend on its arguments alone.
type Matcher struct {
	g       *roadnet.Graph
	view    roadnet.View
	lim     limits
	graph   [8]byte // of the graph's hash
	config  uint32
	islands []bool // pieces of the network that lead nowhere else
	logsum  logSum
	exp     []int32 // see newExp

	sparse bool // no observation came shortly before the one that is judged

	search *roadnet.Search
	w      window
	hits   []roadnet.Hit
	found  []spot
	moves  []cand // to each of found
	next   layer
	alt    layer
	before []int8 // the best chain before the newest layer came
	now    []int8 // the best chain
	edges  []roadnet.EdgeIndex
	shape  []roadnet.ShapePoint
	legs   []leg
	buf    []byte
	spare  *Position // memory for the next provisional place
}

// New makes a matcher: a few bytes for each of the graph's edges.
func New(g *roadnet.Graph, cfg Config) (*Matcher, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("configuration of the matcher: %w", err)
	}
	if !g.Vehicles().Has(cfg.Vehicle) {
		return nil, fmt.Errorf("the map has no roads for the class %v", cfg.Vehicle)
	}
	hash := g.Hash()
	view := roadnet.View{Vehicle: cfg.Vehicle, Contraflow: g.Contraflow() && cfg.ContraflowNats <= cfg.BeamNats}
	return &Matcher{
		g: g, view: view, islands: islands(g, cfg.Vehicle), lim: newLimits(cfg), graph: [8]byte(hash[:8]), config: cfg.hash(), logsum: newLogSum(), exp: newExp(), search: roadnet.NewSearchFor(g, view),
		w: window{layers: make([]layer, 0, maxLayers+4)},
	}, nil
}

// Push matches one observation over a state; a nil state begins a trip. It returns the state to go on with, which the caller owns, and
// what changed. The error is ErrForeignState and leaves nothing behind. A Regressed observation, not after the one before, has Seq -1
// and gives the state back as it was.
func (m *Matcher) Push(state []byte, o Observation) (next []byte, r Result, err error) {
	changed, err := m.push(&r, state, o)
	if err != nil {
		return nil, Result{}, err
	}
	if !changed {
		return state, r, nil
	}
	return m.encode(nil), r, nil
}

// PushInto is Push for callers that use memory again: the next state is appended to dst, which must not overlap with state, and r is
// overwritten together with all that it points to. In the long run it allocates nothing.
func (m *Matcher) PushInto(dst []byte, r *Result, state []byte, o Observation) (next []byte, err error) {
	if r.Provisional != nil {
		m.spare = r.Provisional
	}
	*r = Result{Path: r.Path[:0], FinalPoints: r.FinalPoints[:0], FinalPath: r.FinalPath[:0]}
	changed, err := m.push(r, state, o)
	if err != nil {
		return nil, err
	}
	if !changed {
		return append(dst, state...), nil
	}
	return m.encode(dst), nil
}

// push leaves the next state in the window; false where it is the one before.
func (m *Matcher) push(r *Result, state []byte, o Observation) (changed bool, err error) {
	if err := m.decode(state); err != nil {
		return false, err
	}
	w := &m.w
	s, ok := sight(o, w.seq)
	if ok && w.seen && s.at <= w.last {
		r.Seq, r.Disposition = -1, Regressed
		return false, nil
	}
	r.Seq = w.seq
	w.seq++
	if !ok {
		r.Disposition = Outlier
		return true, nil
	}
	if w.seen && s.at-w.last > m.lim.gap {
		m.close(r, BreakGap)
	}
	m.sparse = m.rare(s)
	w.last, w.seen = s.at, true
	r.AccuracyClamped = m.lim.clamped(s)
	m.judge(r, s)
	return true, nil
}

// Flush makes everything final: the trip is over, its state is of no further use. The error is ErrForeignState.
func (m *Matcher) Flush(state []byte) (Result, error) {
	if err := m.decode(state); err != nil {
		return Result{}, err
	}
	r := Result{Seq: m.w.seq - 1}
	m.finish(&r)
	return r, nil
}

// judge decides what becomes of a sighting that is later than the last.
func (m *Matcher) judge(r *Result, s sighting) {
	w := &m.w
	if w.hasGood && !m.lim.plausible(w.good, s) {
		m.doubt(r, s)
		return
	}
	if len(w.layers) > 0 && m.skip(r, s) {
		w.good, w.doubts, w.off = s, 0, 0
		return
	}
	spots := m.spots(s)
	switch {
	case len(spots) == 0:
		m.offRoad(r, s)
	case len(w.layers) == 0:
		m.start(r, s, spots)
	default:
		m.before = w.chain(m.before, len(w.layers)-1, m.pick())
		if !m.extend(s, spots) && !m.extend(s, m.within(s, m.radius(s), maxCands)) {
			m.doubt(r, s)
			return
		}
		w.good, w.doubts, w.off = s, 0, 0
		r.Disposition = Matched
		m.advance(r)
	}
}

// start begins a stretch and puts out its first place.
func (m *Matcher) start(r *Result, s sighting, spots []spot) {
	m.begin(s, spots)
	m.w.good, m.w.hasGood, m.w.doubts, m.w.off = s, true, 0, 0
	r.Disposition = Matched
	r.Supersedes = s.seq
	m.provide(r, 0, 0)
}

// maxDoubts in a row that fit neither the stretch nor each other end the stretch.
const maxDoubts = 3

// doubt takes a sighting that does not fit the stretch. One alone is an outlier; when the next one fits it, the stretch was left.
func (m *Matcher) doubt(r *Result, s sighting) {
	w := &m.w
	d, n := w.doubt, w.doubts
	if n == 0 || n < maxDoubts && !m.lim.plausible(d, s) {
		w.doubt, w.doubts = s, n+1
		r.Disposition = Outlier
		return
	}
	m.close(r, BreakJump)
	if spots := m.spots(d); m.lim.plausible(d, s) && len(spots) > 0 {
		m.begin(d, spots)
		w.good, w.hasGood = d, true
		if spots = m.spots(s); len(spots) > 0 {
			m.before = w.chain(m.before, 0, m.pick())
			if m.extend(s, spots) {
				w.good = s
				r.Disposition = Matched
				r.Supersedes = d.seq
				m.provide(r, -1, 1)
				return
			}
		}
		w.cut()
	}
	spots := m.spots(s)
	if len(spots) == 0 {
		m.offRoad(r, s)
		return
	}
	m.start(r, s, spots)
}

// maxOff sightings off the road in a row end a stretch: the vehicle has left the network.
const maxOff = 5

func (m *Matcher) offRoad(r *Result, s sighting) {
	w := &m.w
	r.Disposition = OffRoad
	w.doubts = 0
	w.off = min(w.off+1, maxOff)
	if w.off == maxOff && len(w.layers) > 0 && s.at-w.good.at >= m.lim.away {
		m.close(r, BreakOffRoad)
		w.off = maxOff
	}
}

// close ends the stretch: everything of it becomes final.
func (m *Matcher) close(r *Result, why Break) {
	if len(m.w.layers) > 0 {
		r.Break = why
	}
	m.finish(r)
	m.w.cut()
}

// standingSpeed in cm/s: receivers that stand still report less.
const standingSpeed = 150

// still says how far a sighting is from the newest layer, whether the vehicle stands there, and whether that is too near to tell anything.
func (m *Matcher) still(s sighting) (dist int64, standing, near bool) {
	w := &m.w
	l := w.newest()
	dist = crow(l.s.place, s.place)
	sigma := int64(max(m.lim.sigma(l.s), m.lim.sigma(s)))
	least := max(m.lim.spacing, sigma/2)
	standing = s.speed >= 0 && s.speed < standingSpeed
	if s.speed < 0 {
		// Without a speed: slower than a walk since it was first seen here, or not yet seen to move at all (M9).
		standing = dist*1_000_000 < 70*(s.at-l.s.at) || len(w.layers) == 1 && !w.final
	}
	if standing {
		least = max(least, 2*sigma)
	}
	return dist, standing, dist < least
}

// skip takes a sighting too near the newest layer to tell anything new: false when it is not.
func (m *Matcher) skip(r *Result, s sighting) bool {
	w := &m.w
	dist, standing, near := m.still(s)
	if !near {
		return false
	}
	l, was := w.newest(), m.pick()
	sk := skip{seq: s.seq, at: s.at, dist: int32(dist), what: Interpolated}
	if standing {
		sk.dist, sk.what = 0, Standing
		l.stood = s.at
	}
	if l.skips > 0 {
		sk.dist = max(sk.dist, w.skips[len(w.skips)-1].dist)
	}
	w.skips = append(w.skips, sk)
	l.skips++
	l.seen = s.at
	r.Disposition = sk.what
	m.rest(r, was)
	return true
}
