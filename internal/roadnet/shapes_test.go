package roadnet_test

import (
	"math"
	"testing"

	"milepost/internal/roadnet"
	"milepost/internal/roadnet/roadnettest"
)

// A bridge over a road, and a tunnel under it, without a shared node: no path joins them, and each knows its layer (M34).
func TestStackedRoads(t *testing.T) {
	m := roadnettest.Parse(t, `
		A(-200,0)-B(200,0); C(0,-200)-D(0,200) bridge=yes layer=2; E(-10,-200)-F(-10,200) tunnel=yes`)
	for pair, want := range map[[2]string]int8{{"A", "B"}: 0, {"C", "D"}: 2, {"E", "F"}: -1} {
		if got := m.Graph.Edge(m.Edge(pair[0], pair[1])).Layer; got != want {
			t.Errorf("%v is on layer %d, want %d", pair, got, want)
		}
	}
	s := roadnet.NewSearch(m.Graph)
	s.From(m.Edge("A", "B"), 1<<28, roadnet.Penalties{})
	for _, pair := range [][2]string{{"C", "D"}, {"D", "C"}, {"E", "F"}} {
		if _, _, ok := s.To(m.Edge(pair[0], pair[1])); ok {
			t.Errorf("a path leads from the road to %v", pair)
		}
	}
}

// An edge of 3 km over many cells is found in its middle, and whole (M36).
func TestLongEdge(t *testing.T) {
	m := roadnettest.Parse(t, `A(0,0)-B(3000,700)`)
	for x := 0.0; x <= 2950; x += 50 {
		hits := m.Graph.Near(nil, m.Point(x, x*700/3000+5), 35)
		if len(hits) != 2 || math.Abs(hits[0].DistM-5*math.Cos(math.Atan2(700, 3000))) > 0.1 {
			t.Fatalf("at x=%v: %+v", x, hits)
		}
	}
}

// Through a roundabout, in from the south and out to the west: one arc of it, as long as it is, in its direction, and no full circle (M40).
func TestRoundabout(t *testing.T) {
	m := roadnettest.Parse(t, `
		ring: S(0,-15)>a(10.6,-10.6)>E(15,0)>b(10.6,10.6)>N(0,15)>c(-10.6,10.6)>W(-15,0)>d(-10.6,-10.6)>S junction=roundabout
		s: P(0,-100)-S; w: W-Q(-100,0); n: N-R(0,100)`)
	g := m.Graph
	s := roadnet.NewSearch(g)
	s.From(m.Edge("P", "S"), 100_000, roadnet.Penalties{UTurnCM: 4000})
	length, cost, ok := s.To(m.Edge("W", "Q"))
	arc := 0.75 * 8 * 2 * 15 * math.Sin(math.Pi/8) // of the octagon
	if !ok || cost != length || math.Abs(float64(length)/100-arc) > 0.5 {
		t.Errorf("round from south to west: %d cm at %d, want %.1f m", length, cost, arc)
	}
	for _, e := range s.Path(nil, m.Edge("W", "Q")) {
		if f := g.Edge(e).Flags; f&roadnet.FlagRoundabout == 0 || f&roadnet.FlagOneway == 0 {
			t.Errorf("%s has the flags %b", m.EdgeName(e), f)
		}
	}
	if e, ok := m.FindEdge("S", "W"); ok {
		t.Errorf("the ring has the edge %s against its direction", m.EdgeName(e))
	}
	_, bearing := g.At(m.Edge("S", "N"), 100)
	if math.Abs(bearing-67.5) > 2 {
		t.Errorf("the ring's tangent after a metre is %.1f, want that of its first side", bearing)
	}
}
