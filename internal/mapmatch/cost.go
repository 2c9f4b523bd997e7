package mapmatch

import (
	"math"
	"slices"

	"milepost/internal/roadnet"
)

// nat is the unit of costs: 1/1000 nat in integers, so that every replica computes the same ones.
const nat = 1000

// never is the cost of what cannot be.
const never = math.MaxInt32

func newLimits(c Config) limits {
	cm := func(m float64) int32 { return int32(math.Round(m * 100)) }
	thousandths := func(x float64) int32 { return int32(math.Round(x * nat)) }
	l := limits{
		candidates: c.Candidates, layers: c.Layers,
		minRadius: cm(c.MinRadiusM), maxRadius: cm(c.MaxRadiusM), sparseRadius: cm(c.SparseRadiusM), sparse: c.Sparse.Microseconds(),
		minSig: cm(c.MinSigmaM), maxSig: cm(c.MaxSigmaM), headingMin: cm(c.HeadingMinMPS), tail: int64(math.Round(c.TailSigmas * 1000)),
		detour: int64(cm(c.DetourM)), detourRate: int64(cm(c.DetourMPS)), detourLate: int64(cm(c.DetourLateMPS)), spacing: int64(cm(c.SpacingM)),
		penalty: roadnet.Penalties{
			UTurnCM: cm(c.UTurnM), BanCM: cm(c.BanM), PrivateCM: cm(c.PrivateM), ContraflowCM: cm(c.ContraflowM), SlowPM: thousandths(c.SlowShare), ContraflowPM: thousandths(c.ContraflowShare),
		},
		begin: thousandths(c.BeginNats), end: thousandths(c.EndNats), outlier: thousandths(c.OutlierNats),
		contraflow: thousandths(c.ContraflowNats), island: thousandths(c.IslandNats), ferry: thousandths(c.FerryNats), maxSpeed: int64(cm(c.MaxSpeedMPS)),
		beam: thousandths(c.BeamNats), window: c.Window.Microseconds(), gap: c.Gap.Microseconds(), away: c.Away.Microseconds(),
	}
	l.defaultSigma = min(max(cm(c.DefaultAccuracyM), l.minSig), l.maxSig)
	for deg := range l.headingCost {
		l.headingCost[deg] = thousandths(c.HeadingNats * (1 - math.Cos(float64(deg)*math.Pi/180)))
	}
	return l
}

// emission is the price of having been on the edge, at the hit, when the sighting was made.
func (m *Matcher) emission(s sighting, e *roadnet.Edge, h *roadnet.Hit) int32 {
	l := &m.lim
	// Lanes lie beside the drawn line: on a wide road an accurate position is still off it.
	lanes := int32(e.Lanes)
	if e.Twin != roadnet.NoEdge && !m.against(e.Twin) && !m.against(h.Edge) {
		lanes *= 2
	}
	sigma := int64(max(l.sigma(s), lanes*350/2))
	d := int64(math.Round(h.DistM * 100))
	cost := d * d * (nat / 2) / (sigma * sigma)
	if tail := l.tail * sigma / 1000; d > tail {
		cost = (2*d - tail) * tail * (nat / 2) / (sigma * sigma)
	}
	if s.heading >= 0 && s.speed > l.headingMin {
		off := int32(math.Round(h.Bearing)) - s.heading
		if off < 0 {
			off = -off
		}
		off %= 360
		cost += int64(l.headingCost[min(off, 360-off)])
	}
	if e.Flags&roadnet.FlagFerry != 0 {
		cost += int64(l.ferry)
	}
	return int32(min(cost, 1000*nat))
}

// beginning is the price of beginning a stretch at a place on an edge.
func (m *Matcher) beginning(e roadnet.EdgeIndex, along, sigma int32) int32 {
	length := m.length(e)
	switch {
	case m.against(e):
		return m.lim.contraflow
	case m.islands[m.g.StrongComponent(e, m.view.Vehicle)]:
		return m.lim.island // M35
	case along < length && length-along < 2*sigma && m.forks(m.g.Edge(e).To, m.twin(e)):
		return m.lim.begin // the same as beginning at the fork, as far as anyone can tell: then that is the simpler story (M8)
	default:
		return 0
	}
}

// ending is the price of ending a stretch at a candidate: where that is just past a node, at the node is the simpler story.
func (m *Matcher) ending(l *layer, c *cand) int32 {
	along := c.along
	if l.skips > 0 {
		along += m.w.skips[len(m.w.skips)-1].dist
	}
	if along > 0 && along < 2*m.lim.sigma(l.s) {
		return m.lim.end
	}
	return 0
}

// pick is the newest layer's candidate that the vehicle is taken to be at, were this the end.
func (m *Matcher) pick() int8 {
	l := m.w.newest()
	best, least := int8(0), int32(never)
	for i := range l.n {
		if cost := l.c[i].cost + m.ending(l, &l.c[i]); cost < least {
			best, least = int8(i), cost
		}
		if i+1 < l.n && l.c[i+1].cost >= least {
			break
		}
	}
	return best
}

// forks says whether a node has ways out beside one.
func (m *Matcher) forks(n roadnet.NodeIndex, beside roadnet.EdgeIndex) bool {
	others := 0
	for _, e := range m.g.Out(n) {
		if e != beside && m.g.Passable(e, m.view) {
			others++
		}
	}
	return others > 1
}

// islands are the pieces of a network, by number, that are small beside the biggest: less than a tenth of its length.
func islands(g *roadnet.Graph, v roadnet.Vehicle) []bool {
	var length []int64
	for e := range roadnet.EdgeIndex(g.Edges()) {
		c := int(g.StrongComponent(e, v))
		for c >= len(length) {
			length = append(length, 0)
		}
		if c >= 0 {
			length[c] += int64(g.Edge(e).LengthCM)
		}
	}
	out := make([]bool, len(length))
	if len(length) > 0 {
		most := slices.Max(length)
		for c, l := range length {
			out[c] = l < most/10
		}
	}
	return out
}

// against says whether an edge leads against a one-way street.
func (m *Matcher) against(e roadnet.EdgeIndex) bool { return !m.g.Edge(e).Access.Has(m.view.Vehicle) }

// step is what the model knows of a move between two layers before it looks at places.
type step struct {
	crow  int64 // cm
	scale int64 // cm of difference between route and crow that cost one nat
	sigma int64 // cm
	near  int32 // cm: routes that can still be within the beam
	to    roadnet.Point
	reach int32 // cm: routes that a vehicle can have driven
}

// step describes the move from one layer to a sighting. It depends on nothing but these two, since finality has to find the same way
// again that the search found.
func (l *limits) step(from *layer, to sighting) step {
	dt := min(max(to.at-from.seen, 0), l.gap) / 1000 // ms
	st := step{
		crow:  crow(from.s.place, to.place),
		to:    to.place.point(),
		scale: l.detour + l.detourRate*min(dt, 15_000)/1000 + l.detourLate*min(max(dt-15_000, 0), 45_000)/1000,
		sigma: int64(max(l.sigma(from.s), l.sigma(to))),
	}
	st.reach = int32(min(l.maxSpeed*dt/1000+100_00+6*st.sigma, maxCrow))
	st.near = int32(min(st.crow+20*st.scale+100_00, int64(st.reach)))
	return st
}

// price is what a route of that length and with those penalties costs.
func (st *step) price(length, penalty int64) int32 {
	if length > int64(st.reach) {
		return never
	}
	diff := length - st.crow
	if diff < 0 {
		diff = -diff
	}
	return int32(min((diff+penalty)*nat/st.scale, never-1))
}

// way is how a move goes on the network.
type way uint8

const (
	noWay  way = iota
	ahead      // along the same edge, or standing on it
	about      // a U-turn in the middle of the edge
	routed     // over the end of the edge
)

// local prices the moves that need no search: ahead, standing and about. along is the place where the vehicle then is.
func (m *Matcher) local(st *step, p *cand, e roadnet.EdgeIndex, at int32) (w way, cost, along int32) {
	switch {
	case e == p.edge && at >= p.along:
		return ahead, st.price(int64(at-p.along), m.contraflow(e, at-p.along)), at
	case e == p.edge:
		// Noise moves a standing vehicle back (M4): free within two sigma, ever dearer beyond, until a U-turn or a lap is the better story.
		over := max(int64(p.along-at)-2*st.sigma, 0)
		return ahead, st.price(0, over), p.along
	case e == m.twin(p.edge):
		// The vehicle turns at the place ahead: where it was, or beyond if it was seen beyond on its way back.
		length := int64(m.length(p.edge)) - int64(p.along) - int64(at)
		if length < 0 {
			length = -length
		}
		price := int64(m.lim.penalty.UTurnCM)
		if m.against(e) && !m.against(p.edge) {
			price += int64(m.lim.penalty.ContraflowCM)
		}
		return about, st.price(length, price), at
	}
	return noWay, never, at
}

// over prices the way over the end of p's edge, with the search that begins there.
func (m *Matcher) over(st *step, p *cand, e roadnet.EdgeIndex, at int32) int32 {
	length, cost, ok := m.search.To(e)
	if !ok {
		return never
	}
	rest := m.length(p.edge) - p.along
	return st.price(int64(rest)+int64(length)+int64(at), int64(cost)-int64(length)+m.contraflow(p.edge, rest)+m.contraflow(e, at))
}

// contraflow is what a part of an edge costs for its direction.
func (m *Matcher) contraflow(e roadnet.EdgeIndex, length int32) int64 {
	if m.lim.penalty.ContraflowPM == 0 || !m.against(e) {
		return 0
	}
	return int64(length) * int64(m.lim.penalty.ContraflowPM) / 1000
}

func (m *Matcher) twin(e roadnet.EdgeIndex) roadnet.EdgeIndex { return m.g.Edge(e).Twin }
func (m *Matcher) length(e roadnet.EdgeIndex) int32           { return m.g.Edge(e).LengthCM }

// look begins the search over the end of p's edge for routes of at most limit in all.
func (m *Matcher) look(st *step, p *cand, limit int32) {
	m.search.FromState(p.at, limit-(m.length(p.edge)-p.along), m.lim.penalty)
	m.search.Toward(st.to, m.lim.maxRadius+100)
}

// best finds the move from p to a place again that link priced: ways within reach but not near count only where no near one exists.
func (m *Matcher) best(st *step, p *cand, e roadnet.EdgeIndex, at int32) way {
	w, cost, _ := m.local(st, p, e, at)
	if w == ahead {
		if at >= p.along {
			return ahead
		}
		w, cost = noWay, never // standing would have kept the place: it was a lap
	}
	for _, limit := range [2]int32{st.near, st.reach} {
		m.look(st, p, limit)
		if m.over(st, p, e, at) < cost {
			return routed
		}
		if w != noWay {
			return w
		}
	}
	// link looked less far, and found a dearer way that is shorter than this one, which is just out of reach.
	if _, _, ok := m.search.To(e); ok {
		return routed
	}
	return noWay
}
