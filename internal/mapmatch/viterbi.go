package mapmatch

import (
	"cmp"
	"slices"

	"milepost/internal/roadnet"
)

const (
	suspicious = 12 * nat // a layer that adds more makes the search look farther
	outlying   = 8 * nat  // what leaving out a layer has to gain for it to be an outlier
)

// spot is a candidate place with its emission, before it is linked.
type spot struct {
	edge     roadnet.EdgeIndex
	along    int32
	emission int32
}

// spots finds the candidate places of a sighting, cheapest first.
func (m *Matcher) spots(s sighting) []spot {
	m.hits = m.g.Near(m.hits[:0], s.place.point(), float64(m.lim.radius(s))/100)
	m.found = m.found[:0]
	for i := range m.hits {
		h := &m.hits[i]
		e := m.g.Edge(h.Edge)
		m.found = append(m.found, spot{edge: h.Edge, along: h.AlongCM, emission: m.lim.emission(s, &e, h)})
	}
	slices.SortFunc(m.found, func(a, b spot) int {
		return cmp.Or(cmp.Compare(a.emission, b.emission), cmp.Compare(a.edge, b.edge))
	})
	return m.found[:min(len(m.found), m.lim.candidates)]
}

// begin starts a stretch at a sighting.
func (m *Matcher) begin(s sighting, spots []spot) {
	l := m.w.grow()
	l.s, l.seen, l.stood, l.bound = s, s.at, s.at, true
	for _, sp := range spots {
		l.c[l.n] = cand{edge: sp.edge, along: sp.along, cost: sp.emission, back: -1}
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
}

// link computes the layer that follows layer from; false when no place can be reached. It is a pure function of the two, so that it
// may be tried and thrown away.
func (m *Matcher) link(from *layer, s sighting, spots []spot, to *layer) bool {
	st := m.lim.step(from, s)
	to.s, to.seen, to.stood, to.skips, to.bound = s, s.at, s.at, 0, true
	m.relax(&st, from, spots, to, false)
	if (to.n == 0 || to.inc > suspicious) && st.near < st.reach {
		m.relax(&st, from, spots, to, true)
	}
	return to.n > 0
}

// relax fills to with the cheapest move to every spot. wide looks to the limit of reach where there is no near way.
func (m *Matcher) relax(st *step, from *layer, spots []spot, to *layer, wide bool) {
	var best [maxCands]cand
	for j := range spots {
		best[j] = cand{edge: spots[j].edge, cost: never}
	}
	for i := range from.n {
		p := &from.c[i]
		var open uint32 // spots without any way yet
		m.look(st, p, st.near)
		for j := range spots {
			w, cost, along := m.local(st, p, spots[j].edge, spots[j].along)
			if w != ahead || spots[j].along < p.along {
				if c := m.over(st, p, spots[j].edge, spots[j].along); c < cost {
					cost, along = c, spots[j].along
				} else if w == noWay {
					open |= 1 << j
				}
			}
			offer(&best[j], p, i, cost, along, spots[j].emission)
		}
		if !wide || open == 0 {
			continue
		}
		m.look(st, p, st.reach)
		for j := range spots {
			if open&(1<<j) != 0 {
				offer(&best[j], p, i, m.over(st, p, spots[j].edge, spots[j].along), spots[j].along, spots[j].emission)
			}
		}
	}
	to.n = 0
	for j := range spots {
		if best[j].cost != never {
			to.c[to.n] = best[j]
			to.n++
		}
	}
	if to.n > 0 {
		m.settle(to)
	}
}

// offer takes a move when it is cheaper than what is known; at equal cost the earlier predecessor stays.
func offer(b *cand, p *cand, back int, cost, along, emission int32) {
	if cost == never {
		return
	}
	if total := min(int64(p.cost)+int64(cost)+int64(emission), never-1); int32(total) < b.cost {
		b.cost, b.along, b.back = int32(total), along, int8(back)
	}
}

// extend adds a layer to the stretch, leaving out the one before it where that makes it an outlier (M15). False: the sighting fits
// neither; the window is as it was.
func (m *Matcher) extend(s sighting, spots []spot) bool {
	w := &m.w
	n := len(w.layers)
	prev := &w.layers[n-1]
	ok := m.link(prev, s, spots, &m.next)
	droppable := n >= 2 && prev.skips == 0 && len(w.skips) < maxSkips
	if droppable && (!ok || prev.inc+m.next.inc > outlying) {
		without := m.link(&w.layers[n-2], s, spots, &m.alt)
		if without && (!ok || int64(m.alt.inc)+outlying < int64(prev.inc)+int64(m.next.inc)) {
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
