package mapmatch

import (
	"fmt"
	"slices"

	"milepost/internal/roadnet"
)

// Explanation says how one observation was judged.
type Explanation struct {
	Result     Result
	Why        string  // in words
	SigmaM     float64 // the standard deviation that was believed
	RadiusM    float64 // within which candidates were sought
	CrowM      float64 // from the observation that the candidates are linked to; 0 at the begin of a stretch
	ScaleM     float64 // of difference between route and crow that costs one nat; 0 at the begin of a stretch
	Candidates []Candidate
}

// Candidate is a place on the network that the observation may have been at. Costs are in nats.
type Candidate struct {
	Key         roadnet.EdgeKey
	OffsetM     float64 // from the edge's first node
	DistM       float64 // from the observation to the edge
	Emission    float64 // for the distance, the heading and, at the begin of a stretch, for the kind of road
	From        roadnet.EdgeKey
	FromM       float64 // the place that it was reached from at least cost; From is zero at the begin of a stretch
	RouteM      float64 // the way from there
	Transition  float64
	Total       float64 // above the best candidate of this observation, all that came before included
	Probability float64 // by all observations so far
	Rejected    string  // why the place is none; empty where it is kept
}

// Explain is Push with its reasons. It is slower, and says nothing about which places later observations will prefer.
func (m *Matcher) Explain(state []byte, o Observation) (next []byte, x Explanation, err error) {
	if err := m.decode(state); err != nil {
		return nil, Explanation{}, err
	}
	if s, ok := sight(o, m.w.seq); ok && (!m.w.seen || s.at > m.w.last) {
		if m.w.seen && s.at-m.w.last > m.lim.gap {
			m.w.cut()
		}
		m.sparse = m.rare(s)
		m.explain(&x, s)
	} else {
		x.Why = "not a position on Earth at a time that can be"
		if ok {
			x.Why = "not after the last observation"
		}
	}
	next, x.Result, err = m.Push(state, o)
	return next, x, err
}

func (m *Matcher) explain(x *Explanation, s sighting) {
	w := &m.w
	x.SigmaM, x.RadiusM = float64(m.lim.sigma(s))/100, float64(m.radius(s))/100
	spots := slices.Clone(m.spots(s))
	dist := make(map[roadnet.EdgeIndex]float64, len(m.hits))
	for _, h := range m.hits {
		dist[h.Edge] = h.DistM
	}
	switch {
	case w.hasGood && !m.lim.plausible(w.good, s):
		x.Why = fmt.Sprintf("%.0f m in %.1f s from the last believed observation are more than a vehicle drives", float64(crow(w.good.place, s.place))/100, float64(s.at-w.good.at)/1e6)
		return
	case len(spots) == 0:
		x.Why = fmt.Sprintf("no road within %.0f m", x.RadiusM)
		return
	case len(w.layers) > 0 && m.tooNear(s):
		x.Why = fmt.Sprintf("%.0f m from the last used observation: too near to tell anything", float64(crow(w.newest().s.place, s.place))/100)
		return
	case len(w.layers) == 0:
		m.begin(s, spots)
		x.Why = "the begin of a stretch"
		m.list(x, nil, w.newest(), spots, dist)
		return
	}
	from := w.newest()
	st := m.lim.step(from, s)
	x.CrowM, x.ScaleM = float64(st.crow)/100, float64(st.scale)/100
	if !m.link(from, s, spots, &m.next) {
		x.Why = "no route leads here that a vehicle can have driven since"
	} else {
		x.Why = "linked to the observation before"
	}
	m.list(x, from, &m.next, spots, dist)
}

// tooNear says whether skip would take the sighting.
func (m *Matcher) tooNear(s sighting) bool {
	_, _, near := m.still(s)
	return near
}

// list writes down the candidates of a layer, then the places that did not become any.
func (m *Matcher) list(x *Explanation, from, l *layer, spots []spot, dist map[roadnet.EdgeIndex]float64) {
	var sum int64
	for i := range l.n {
		sum += m.millionths(l.c[i].sum)
	}
	for i := range l.n {
		c := l.c[i]
		j := slices.IndexFunc(spots, func(s spot) bool { return s.edge == c.edge })
		y := Candidate{
			Key: m.g.Key(c.edge), OffsetM: float64(c.along) / 100, DistM: dist[c.edge], Emission: nats(spots[j].emission),
			Total: nats(c.cost), Probability: float64(m.millionths(c.sum)*1000/sum) / 1000,
		}
		if from == nil {
			y.Emission = nats(spots[j].emission + spots[j].begin)
		} else {
			p := from.c[c.back]
			y.From, y.FromM = m.g.Key(p.edge), float64(p.along)/100
			y.Transition = nats(l.inc + c.cost - p.cost - spots[j].emission)
			for _, g := range m.hop(m.legs[:0], from, p, l, c) {
				y.RouteM += float64(g.to-g.from) / 100
			}
		}
		x.Candidates = append(x.Candidates, y)
	}
	for _, s := range spots {
		if slices.ContainsFunc(l.c[:l.n], func(c cand) bool { return c.edge == s.edge }) {
			continue
		}
		y := Candidate{Key: m.g.Key(s.edge), OffsetM: float64(s.along) / 100, DistM: dist[s.edge], Emission: nats(s.emission), Rejected: "too dear beside the best, or out of reach"}
		x.Candidates = append(x.Candidates, y)
	}
}

func nats(cost int32) float64 { return float64(cost) / nat }
