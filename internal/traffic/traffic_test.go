package traffic_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"milepost/internal/roadnet"
	"milepost/internal/roadnet/roadnettest"
	"milepost/internal/traffic"
)

// town is a block with a one-way side, a dead end and a banned turn.
func town(t *testing.T) *roadnet.Graph {
	t.Helper()
	return townFor(t, roadnet.ImportOptions{})
}

func townFor(t *testing.T, opt roadnet.ImportOptions) *roadnet.Graph {
	t.Helper()
	return roadnettest.ParseFor(t, opt, `
ab: A(0,0)-B(400,0); bc: B-C(400,400); C-D(0,400); D-A; B-E(800,0); E>F(800,400); F>C; D-X(0,500)
no_left_turn ab B bc
`).Graph
}

func drive(t *testing.T, g *roadnet.Graph, n, seconds int, seed uint64) (*traffic.Fleet, [][]traffic.Fix) {
	t.Helper()
	f, err := traffic.New(g, n, seed)
	if err != nil {
		t.Fatal(err)
	}
	fixes := make([][]traffic.Fix, n)
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for s := range seconds {
		for i := range n {
			fixes[i] = append(fixes[i], f.Drive(i, at.Add(time.Duration(s)*time.Second), time.Second))
		}
	}
	return f, fixes
}

// S1, S3: what was driven is connected, and no pair of edges breaks a turn rule.
func TestRoutesAreLegal(t *testing.T) {
	t.Run("along the one-way streets", func(t *testing.T) { testRoutes(t, town(t)) })
	t.Run("on a map that also has edges against them", func(t *testing.T) { testRoutes(t, townFor(t, roadnet.ImportOptions{Contraflow: true})) })
}

func testRoutes(t *testing.T, g *roadnet.Graph) {
	t.Helper()
	edges := map[traffic.Pair]roadnet.EdgeIndex{} // first pair of an edge
	for e := range roadnet.EdgeIndex(g.Edges()) {
		if !g.Passable(e, roadnet.View{}) {
			continue
		}
		s := g.Shape(nil, e)
		for i := range s[1:] {
			edges[traffic.Pair{Way: g.Edge(e).Way, From: s[i].Node, To: s[i+1].Node}] = e
		}
	}
	f, _ := drive(t, g, 20, 600, 1)
	turned := 0
	for i := range f.Vehicles() {
		truth := f.Truth(i)
		if len(truth) < 3 {
			t.Errorf("%s drove only %d stretches in ten minutes", f.ID(i), len(truth))
		}
		for j, p := range truth {
			e, ok := edges[p]
			if !ok {
				t.Fatalf("%s drove %+v, which the map does not have in that direction", f.ID(i), p)
			}
			if j == 0 {
				continue
			}
			if truth[j-1].To != p.From {
				t.Fatalf("%s jumps from %+v to %+v", f.ID(i), truth[j-1], p)
			}
			before := edges[truth[j-1]]
			if before != e {
				turned++
				if turn := g.Turn(before, e); turn == roadnet.TurnBanned {
					t.Fatalf("%s broke the rule from %+v to %+v", f.ID(i), truth[j-1], p)
				}
			}
		}
	}
	if turned < 100 {
		t.Errorf("only %d turns in all", turned)
	}
}

// I16: the same seed gives the same fleet, another one another.
func TestSeed(t *testing.T) {
	g := town(t)
	_, a := drive(t, g, 3, 30, 7)
	_, b := drive(t, g, 3, 30, 7)
	if diff := cmp.Diff(a, b); diff != "" {
		t.Errorf("same seed (-first +second):\n%s", diff)
	}
	if _, c := drive(t, g, 3, 30, 8); cmp.Equal(a, c) {
		t.Error("another seed gives the same fleet")
	}
}

// S4: positions stay within the noise of a road, and are not on it exactly.
func TestNoise(t *testing.T) {
	g := town(t)
	_, fixes := drive(t, g, 10, 300, 3)
	total, n := 0.0, 0
	for _, vehicle := range fixes {
		for _, fix := range vehicle {
			hits := g.Near(nil, fix.Point, 100)
			if len(hits) == 0 || hits[0].DistM > 45 {
				t.Fatalf("%s reports %+v, far from every road", fix.Vehicle, fix)
			}
			total, n = total+hits[0].DistM, n+1
			if fix.Heading < 0 || fix.Heading >= 360 || fix.SpeedMPS < 0 || fix.AccuracyM < 3 {
				t.Fatalf("%s reports %+v", fix.Vehicle, fix)
			}
		}
	}
	if mean := total / float64(n); mean < 1 || mean > 10 {
		t.Errorf("mean distance from the road is %.1f m, want that of a receiver", mean)
	}
}

// A map without a road to drive on is an error, not a fleet of nothing.
func TestNoRoads(t *testing.T) {
	if _, err := traffic.New(&roadnet.Graph{}, 1, 1); err == nil {
		t.Error("a fleet on an empty map")
	}
}
