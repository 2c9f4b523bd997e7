package roadnet_test

import (
	"strings"
	"testing"

	"milepost/internal/roadnet"
	"milepost/internal/roadnet/roadnettest"
)

func fields(s string) []string { return strings.Fields(s) }

// naiveReach lists what legal paths reach from an edge, remembering what restrictions over ways remember.
func naiveReach(g *roadnet.Graph, from roadnet.EdgeIndex) map[roadnet.EdgeIndex]bool {
	seen := map[roadnet.State]bool{roadnet.State(from): true}
	queue := []roadnet.State{roadnet.State(from)}
	edges := map[roadnet.EdgeIndex]bool{}
	for len(queue) > 0 {
		s := queue[0]
		queue = queue[1:]
		edges[g.EdgeOf(s)] = true
		out := g.Out(g.Edge(g.EdgeOf(s)).To)
		for _, next := range out {
			to, turn := g.Follow(s, next, roadnet.Car)
			if turn == roadnet.TurnBanned || turn == roadnet.TurnU && len(out) > 1 || seen[to] {
				continue
			}
			seen[to] = true
			queue = append(queue, to)
		}
	}
	return edges
}

// Strong components are what legal paths join both ways, over random cities with bans at nodes and over ways (M35).
func TestStrongComponents(t *testing.T) {
	for seed := range uint64(6) {
		g := randomCity(t, seed, roadnet.Point{Lon: 9, Lat: 48}, 8)
		reach := make([]map[roadnet.EdgeIndex]bool, g.Edges())
		for e := range reach {
			reach[e] = naiveReach(g, roadnet.EdgeIndex(e))
		}
		size := map[int32]int{}
		for a := range roadnet.EdgeIndex(g.Edges()) {
			size[g.StrongComponent(a, roadnet.Car)]++
			for b := range roadnet.EdgeIndex(g.Edges()) {
				if same := g.StrongComponent(a, roadnet.Car) == g.StrongComponent(b, roadnet.Car); same != (reach[a][b] && reach[b][a]) {
					t.Fatalf("seed %d, edges %d and %d: in one piece %v, reach each other %v %v", seed, a, b, same, reach[a][b], reach[b][a])
				}
			}
		}
		for c, n := range size {
			if n > size[0] {
				t.Errorf("seed %d: component %d has %d edges, component 0 %d", seed, c, n, size[0])
			}
		}
	}
}

// A street that turn bans alone cut off is a piece of its own, though it is connected (M35). With a restriction over ways, an edge that is
// always reached in a state belongs to the piece of that state.
func TestStrongBehindBans(t *testing.T) {
	m := roadnettest.Parse(t, `
		we: W(-100,0)-J(0,0)-E(100,0); side: J-S(0,-100)
		no_left_turn side J we; no_right_turn side J we`)
	js, sj, ej := m.Edge("J", "S"), m.Edge("S", "J"), m.Edge("E", "J")
	g := m.Graph
	if g.Edge(js).Component != g.Edge(ej).Component || g.StrongComponent(ej, roadnet.Car) != 0 || g.StrongComponent(sj, roadnet.Car) == 0 {
		t.Errorf("out of the side street: %d, on the street: %d", g.StrongComponent(sj, roadnet.Car), g.StrongComponent(ej, roadnet.Car))
	}
	if g.StrongComponent(js, roadnet.Bicycle) != -1 || g.StrongComponent(js, 99) != -1 {
		t.Error("a class that the graph is not for has pieces")
	}
	m = roadnettest.Parse(t, `a: A(0,0)-J(100,0); v: J>K(200,0); b: K-B(300,0); c: K-C(200,100); C-A
		no_left_turn a v c`)
	if g := m.Graph; g.StrongComponent(m.Edge("J", "K"), roadnet.Car) != 0 || g.StrongComponent(m.Edge("A", "J"), roadnet.Car) != 0 {
		t.Errorf("the via way is in piece %d", g.StrongComponent(m.Edge("J", "K"), roadnet.Car))
	}
}
