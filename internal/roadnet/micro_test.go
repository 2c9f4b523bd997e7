package roadnet_test

import (
	"testing"

	"milepost/internal/roadnet"
	"milepost/internal/roadnet/roadnettest"
)

// A street with a side street: the way is cut at the crossing, both directions exist, and searches go from edge to edge (M36, M39).
func TestCrossing(t *testing.T) {
	m := roadnettest.Parse(t, `main: A(0,0)-J(100,0)-B(300,0); J>C(100,200); no_left_turn main J w2`)
	g := m.Graph
	if g.Edges() != 5 || g.Nodes() != 4 {
		t.Fatalf("%d edges, %d nodes; want 5, 4", g.Edges(), g.Nodes())
	}
	aj, jb, jc := m.Edge("A", "J"), m.Edge("J", "B"), m.Edge("J", "C")
	if got := g.Edge(jb).LengthCM; got < 19_995 || got > 20_005 {
		t.Errorf("length of J>B %d cm, want 20000", got)
	}
	if got := g.Turn(aj, jb); got != roadnet.TurnFree {
		t.Errorf("turn A>J>B %v", got)
	}
	if got := g.Turn(aj, jc); got != roadnet.TurnBanned {
		t.Errorf("turn A>J>C %v", got)
	}
	if got := g.Turn(aj, m.Edge("J", "A")); got != roadnet.TurnU {
		t.Errorf("turn back %v", got)
	}
	s := roadnet.NewSearch(g)
	s.From(aj, 100_000, roadnet.Penalties{UTurnCM: 4000, BanCM: 15000, PrivateCM: 3000})
	length, cost, ok := s.To(jc)
	if !ok || length != 0 || cost != 15000 {
		t.Errorf("A>J to J>C: %d cm at %d, %v", length, cost, ok)
	}
	length, cost, ok = s.To(m.Edge("B", "J"))
	if !ok || length != g.Edge(jb).LengthCM || cost != length+4000 {
		t.Errorf("A>J to B>J: %d cm at %d, %v", length, cost, ok)
	}
	if got := m.Names(s.Path(nil, m.Edge("B", "J"))); got != "J>B" {
		t.Errorf("path %s", got)
	}
	hits := g.Near(nil, m.Point(150, 10), 35)
	if len(hits) != 2 || hits[0].DistM < 9.9 || hits[0].DistM > 10.1 {
		t.Errorf("hits %+v", hits)
	}
}
