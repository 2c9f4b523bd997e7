package mapmatch

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"milepost/internal/roadnet"
)

// naive is link's twin without bounds on its searches: every move to every spot, and what is left after the beam.
func (m *Matcher) naive(from *layer, s sighting, spots []spot) (out []cand) {
	st := m.lim.step(from, s)
	var to layer
	for j := range spots {
		b := cand{edge: spots[j].edge, cost: never, sum: never}
		for i := range from.n {
			w, cost, along := m.local(&st, &from.c[i], spots[j].edge, spots[j].along)
			if w != noWay {
				at := from.c[i].at
				if w == about {
					at = roadnet.State(b.edge)
				}
				m.offer(&b, &from.c[i], i, cost, along, spots[j].emission, at)
			}
		}
		for i := range from.n {
			p := &from.c[i]
			if spots[j].edge == p.edge && spots[j].along >= p.along {
				continue
			}
			m.search.FromState(p.at, st.near-(m.length(p.edge)-p.along), m.lim.penalty)
			m.offer(&b, p, i, m.over(&st, p, spots[j].edge, spots[j].along), spots[j].along, spots[j].emission, m.search.State(spots[j].edge))
		}
		if b.cost != never {
			to.c[to.n] = b
			to.n++
		}
	}
	if to.n > 0 {
		m.settle(&to)
	}
	return to.c[:to.n]
}

// places leaves out what the bounds round: the share of the ways that are much dearer than the cheapest.
func places(l []cand) []cand {
	out := slices.Clone(l)
	for i := range out {
		out[i].sum, out[i].won = 0, 0
	}
	return out
}

// The bounds that make link fast change nothing: over random drives it finds what its naive twin finds.
func TestLinkEqualsNaive(t *testing.T) {
	m := town(t)
	mt, err := New(m.Graph, DefaultConfig())
	if err != nil {
		t.Fatal(err)
	}
	compared := 0
	for seed := range uint64(40) {
		all := wander(m, seed, 150)
		for i := 1; i < len(all); i++ {
			a, _ := sight(all[i-1], 0)
			b, _ := sight(all[i], 1)
			if b.at <= a.at {
				continue
			}
			mt.w.reset()
			spots := mt.spots(a)
			if len(spots) == 0 {
				continue
			}
			mt.begin(a, spots)
			from := *mt.w.newest()
			if spots = mt.spots(b); len(spots) == 0 {
				continue
			}
			var to layer
			if !mt.link(&from, b, spots, &to) || to.inc > suspicious {
				continue // looked far
			}
			compared++
			if diff := cmp.Diff(places(mt.naive(&from, b, spots)), places(to.c[:to.n]), cmp.AllowUnexported(cand{})); diff != "" {
				t.Fatalf("seed %d, move %d: %s", seed, i, diff)
			}
		}
	}
	if compared < 1000 {
		t.Errorf("only %d moves were compared", compared)
	}
}
