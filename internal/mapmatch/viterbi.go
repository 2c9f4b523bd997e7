package mapmatch

import (
	"cmp"
	"slices"

	"milepost/internal/roadnet"
)

const (
	suspicious = 12 * nat // a layer that adds more makes the search look farther
	heard      = 3 * nat  // moves to a place that are dearer than its cheapest by no more count in its probability
)

// spot is a candidate place with its emission, before it is linked.
type spot struct {
	edge     roadnet.EdgeIndex
	along    int32
	emission int32
	begin    int32 // what it costs to begin a stretch here
}

// spots finds the candidate places of a sighting, cheapest first.
func (m *Matcher) spots(s sighting) []spot { return m.within(s, m.radius(s), m.lim.candidates) }

// within finds the candidate places within a radius in cm, at most so many.
func (m *Matcher) within(s sighting, radius int32, most int) []spot {
	m.hits = m.g.NearFor(m.hits[:0], s.place.point(), float64(radius)/100, m.view)
	m.found = m.found[:0]
	for i := range m.hits {
		h := &m.hits[i]
		e := m.g.Edge(h.Edge)
		m.found = append(m.found, spot{edge: h.Edge, along: h.AlongCM, emission: m.emission(s, &e, h), begin: m.beginning(h.Edge, h.AlongCM, m.lim.sigma(s))})
	}
	slices.SortFunc(m.found, func(a, b spot) int {
		return cmp.Or(cmp.Compare(a.emission+a.begin, b.emission+b.begin), cmp.Compare(a.edge, b.edge))
	})
	return m.found[:min(len(m.found), most)]
}

// begin starts a stretch at a sighting.
func (m *Matcher) begin(s sighting, spots []spot) {
	l := m.w.grow()
	l.s, l.seen, l.stood, l.bound, l.gone = s, s.at, s.at, true, never
	for _, sp := range spots {
		cost := sp.emission + sp.begin
		l.c[l.n] = cand{edge: sp.edge, along: sp.along, cost: cost, back: -1, sum: cost, at: roadnet.State(sp.edge)}
		l.n++
	}
	m.settle(l)
}

// settle orders a layer's candidates, sets the best's cost to zero and gives up those beyond the beam.
func (m *Matcher) settle(l *layer) {
	slices.SortFunc(l.c[:l.n], func(a, b cand) int {
		return cmp.Or(cmp.Compare(a.cost, b.cost), cmp.Compare(a.edge, b.edge))
	})
	l.inc = l.c[0].cost
	keep := 0
	for i := range l.n {
		l.c[i].cost -= l.inc
		if l.c[i].cost <= m.lim.beam {
			keep = i + 1
		}
	}
	l.n = keep
	least := int32(never)
	for i := range l.n {
		least = min(least, l.c[i].sum)
	}
	for i := range l.n {
		l.c[i].sum -= least
	}
}

// link computes the layer that follows layer from; false when no place can be reached. It is a pure function of the two, so that it
// may be tried and thrown away.
func (m *Matcher) link(from *layer, s sighting, spots []spot, to *layer) bool {
	st := m.lim.step(from, s)
	to.s, to.seen, to.stood, to.skips, to.bound, to.gone = s, s.at, s.at, 0, true, never
	m.near(&st, from, spots)
	m.choose(to, spots)
	if (to.n == 0 || to.inc > suspicious) && st.near < st.reach {
		m.far(&st, from, spots)
		m.choose(to, spots)
	}
	return to.n > 0
}

// near fills m.moves with the cheapest near move to every spot. A search goes no farther than a move can be long and still be the
// cheapest to some spot and within the beam of the best: what lies beyond would be given up in any case.
func (m *Matcher) near(st *step, from *layer, spots []spot) {
	m.moves = m.moves[:0]
	least := int64(never)
	for j := range spots {
		b := cand{edge: spots[j].edge, cost: never, sum: never}
		for i := range from.n {
			w, cost, along := m.local(st, &from.c[i], spots[j].edge, spots[j].along)
			if w != noWay {
				at := from.c[i].at
				if w == about {
					at = roadnet.State(b.edge)
				}
				m.offer(&b, &from.c[i], i, cost, along, spots[j].emission, at)
			}
		}
		least = min(least, int64(b.cost))
		m.moves = append(m.moves, b)
	}
	for i := range from.n {
		p := &from.c[i]
		limit, open := int64(-1), uint32(0)
		for j := range spots {
			if spots[j].edge == p.edge && spots[j].along >= p.along {
				continue // no way over the end of the edge is better than straight ahead
			}
			if l := m.useful(st, p, j, least, spots[j].emission); l >= 0 {
				open |= 1 << j
				limit = max(limit, l)
			}
		}
		if open == 0 {
			continue
		}
		m.look(st, p, int32(min(limit, int64(st.near))))
		for j := range spots {
			if open&(1<<j) != 0 {
				m.offer(&m.moves[j], p, i, m.over(st, p, spots[j].edge, spots[j].along), spots[j].along, spots[j].emission, m.search.State(spots[j].edge))
				least = min(least, int64(m.moves[j].cost))
			}
		}
	}
}

// useful is the length in cm up to which a move from p can still be the cheapest to spot j and within the beam of the least; -1 for none.
func (m *Matcher) useful(st *step, p *cand, j int, least int64, emission int32) int64 {
	budget := min(int64(m.moves[j].cost)+heard, least+int64(m.lim.beam)+1) - int64(p.cost) - int64(emission)
	if budget <= 0 {
		return -1
	}
	return st.crow + (budget+1)*st.scale/nat + 1
}

// far adds to m.moves those to spots that are within reach but not near.
func (m *Matcher) far(st *step, from *layer, spots []spot) {
	least := int64(never)
	for _, b := range m.moves {
		least = min(least, int64(b.cost))
	}
	for i := range from.n {
		p := &from.c[i]
		limit, open := int64(-1), uint32(0)
		m.look(st, p, st.near)
		for j := range spots {
			if w, _, _ := m.local(st, p, spots[j].edge, spots[j].along); w != noWay || m.g.Edge(p.edge).Component != m.g.Edge(spots[j].edge).Component {
				continue
			}
			l := m.useful(st, p, j, least, spots[j].emission)
			if l > int64(st.near) && m.over(st, p, spots[j].edge, spots[j].along) == never {
				open |= 1 << j
				limit = max(limit, l)
			}
		}
		if open == 0 {
			continue
		}
		m.look(st, p, int32(min(limit, int64(st.reach))))
		for j := range spots {
			if open&(1<<j) != 0 {
				m.offer(&m.moves[j], p, i, m.over(st, p, spots[j].edge, spots[j].along), spots[j].along, spots[j].emission, m.search.State(spots[j].edge))
				least = min(least, int64(m.moves[j].cost))
			}
		}
	}
}

// choose makes the layer of m.moves.
func (m *Matcher) choose(to *layer, spots []spot) {
	to.n = 0
	for j := range spots {
		if b := m.moves[j]; b.cost != never {
			b.won = max(b.won-b.sum, 0)
			to.c[to.n] = b
			to.n++
		}
	}
	if to.n > 0 {
		m.settle(to)
	}
}

// offer takes a move when it is cheaper than what is known; at equal cost the earlier predecessor stays.
func (m *Matcher) offer(b *cand, p *cand, back int, cost, along, emission int32, at roadnet.State) {
	if cost == never {
		return
	}
	via := int32(min(int64(p.sum)+int64(cost)+int64(emission), never-1))
	if total := int32(min(int64(p.cost)+int64(cost)+int64(emission), never-1)); total < b.cost {
		b.cost, b.along, b.back, b.won, b.at = total, along, int8(back), via, at
	}
	b.sum = m.logsum.add(b.sum, via)
}

// extend adds a layer to the stretch, leaving out the one before it where that makes it an outlier (M15). False: the sighting fits
// neither; the window is as it was.
func (m *Matcher) extend(s sighting, spots []spot) bool {
	w := &m.w
	n := len(w.layers)
	prev := &w.layers[n-1]
	ok := m.link(prev, s, spots, &m.next)
	droppable := n >= 2 && prev.skips == 0 && len(w.skips) < maxSkips
	if droppable && (!ok || prev.inc+m.next.inc > m.lim.outlier) {
		without := m.link(&w.layers[n-2], s, spots, &m.alt)
		if without && (!ok || int64(m.alt.inc)+int64(m.lim.outlier) < int64(prev.inc)+int64(m.next.inc)) {
			w.takeBack()
			*w.grow() = m.alt
			return true
		}
	}
	if ok {
		*w.grow() = m.next
	}
	return ok
}

// takeBack makes the newest layer an outlier: it gets a place by its time on the way between its neighbours.
func (w *window) takeBack() {
	out := w.newest().s
	w.layers = w.layers[:len(w.layers)-1]
	l := w.newest()
	sk := skip{seq: out.seq, at: out.at, what: Outlier}
	if l.skips > 0 {
		sk.dist = w.skips[len(w.skips)-1].dist
	}
	w.skips = append(w.skips, sk)
	l.skips++
}
