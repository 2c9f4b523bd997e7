package roadnet_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"milepost/internal/roadnet"
	"milepost/internal/roadnet/roadnettest"
)

// naive is the search's meaning in the plainest form: settle the cheapest open label, ties by edge; never go past the length limit.
type naive struct {
	cost, length map[roadnet.EdgeIndex]int32
	parent       map[roadnet.EdgeIndex]roadnet.EdgeIndex
	done         map[roadnet.EdgeIndex]bool
}

func naiveSearch(g *roadnet.Graph, start roadnet.EdgeIndex, limit int32, p roadnet.Penalties) *naive {
	n := &naive{
		cost: map[roadnet.EdgeIndex]int32{}, length: map[roadnet.EdgeIndex]int32{},
		parent: map[roadnet.EdgeIndex]roadnet.EdgeIndex{}, done: map[roadnet.EdgeIndex]bool{},
	}
	relax := func(from, parent roadnet.EdgeIndex, cost, length int32) {
		if length > limit {
			return
		}
		for _, next := range g.Out(g.Edge(from).To) {
			c := cost
			if g.Edge(from).Twin == next {
				c += p.UTurnCM
			}
			if g.Turn(from, next) == roadnet.TurnBanned {
				c += p.BanCM
			}
			if g.Edge(from).Flags&roadnet.FlagPrivate == 0 && g.Edge(next).Flags&roadnet.FlagPrivate != 0 {
				c += p.PrivateCM
			}
			old, seen := n.cost[next]
			worse := seen && (c > old || c == old && (length > n.length[next] || length == n.length[next] && parent >= n.parent[next]))
			if n.done[next] || worse {
				continue
			}
			n.cost[next], n.length[next], n.parent[next] = c, length, parent
		}
	}
	relax(start, roadnet.NoEdge, 0, 0)
	for {
		best := roadnet.NoEdge
		for e := range roadnet.EdgeIndex(g.Edges()) {
			if c, ok := n.cost[e]; ok && !n.done[e] && (best == roadnet.NoEdge || c < n.cost[best]) {
				best = e
			}
		}
		if best == roadnet.NoEdge {
			return n
		}
		n.done[best] = true
		e := g.Edge(best)
		slow := int32(int64(e.LengthCM) * int64(p.SlowPM) * max(90-int64(e.SpeedKMH), 0) / 90_000)
		relax(best, best, n.cost[best]+e.LengthCM+slow, n.length[best]+e.LengthCM)
	}
}

func (n *naive) path(target roadnet.EdgeIndex) (path []roadnet.EdgeIndex) {
	for e := n.parent[target]; e != roadnet.NoEdge; e = n.parent[e] {
		path = append([]roadnet.EdgeIndex{e}, path...)
	}
	return path
}

// Search finds what a naive Dijkstra finds, to every edge, over random cities with bans, one-way and private streets; and asking for
// targets in another order changes nothing (M12, M28, M30, P of equal results: matching is a pure function).
func TestSearchEqualsNaive(t *testing.T) {
	prices := []roadnet.Penalties{{}, {UTurnCM: 4000, BanCM: 15000, PrivateCM: 3000}, {UTurnCM: 100_000, BanCM: 1, PrivateCM: 50}, {UTurnCM: 4000, BanCM: 15000, SlowPM: 200}}
	for seed := range uint64(12) {
		g := randomCity(t, seed, roadnet.Point{Lon: 9, Lat: 48}, 7)
		rnd := rand.New(rand.NewPCG(seed, 1))
		s := roadnet.NewSearch(g)
		for round := range 6 {
			start := roadnet.EdgeIndex(rnd.IntN(g.Edges()))
			limit := int32(rnd.IntN(120_000))
			p := prices[round%len(prices)]
			want := naiveSearch(g, start, limit, p)
			s.From(start, limit, p)
			for _, i := range rnd.Perm(g.Edges()) {
				e := roadnet.EdgeIndex(i)
				length, cost, ok := s.To(e)
				if ok != want.done[e] || ok && (length != want.length[e] || cost != want.cost[e]) {
					t.Fatalf("seed %d, from %d limit %d to %d: %d cm at %d %v, want %d at %d %v", seed, start, limit, e,
						length, cost, ok, want.length[e], want.cost[e], want.done[e])
				}
				if !ok {
					continue
				}
				if got, path := fmt.Sprint(s.Path(nil, e)), fmt.Sprint(want.path(e)); got != path {
					t.Fatalf("seed %d, from %d to %d: path %s, want %s", seed, start, e, got, path)
				}
			}
		}
	}
}

// The limit is on length, not on cost order: a motorway that runs on does not hide the exit beside it (F33).
func TestSearchLimitSkipsAndGoesOn(t *testing.T) {
	m := roadnettest.Parse(t, `
		M(0,0)>N(300,0)>O(5000,0) highway=motorway
		N>R(900,-100) highway=motorway_link
		R-S(1000,-100)`)
	s := roadnet.NewSearch(m.Graph)
	s.From(m.Edge("M", "N"), 100_000, roadnet.Penalties{})
	if _, _, ok := s.To(m.Edge("R", "S")); !ok {
		t.Error("the exit 700 m away was not found within 1 km")
	}
	if length, _, ok := s.To(m.Edge("N", "O")); !ok || length != 0 {
		t.Errorf("the motorway's continuation: %d cm, %v", length, ok)
	}
}

// A bad limit finds nothing; a limit of zero finds what begins at the start's end; a start is found again round a block (M10).
func TestSearchLimits(t *testing.T) {
	m := roadnettest.Parse(t, `A(0,0)>B(100,0); B>C(100,100); C>A`)
	s := roadnet.NewSearch(m.Graph)
	if _, _, ok := s.To(0); ok {
		t.Error("a search that has not begun found something")
	}
	ab, bc := m.Edge("A", "B"), m.Edge("B", "C")
	s.From(ab, -1, roadnet.Penalties{})
	if _, _, ok := s.To(bc); ok {
		t.Error("a negative limit found something")
	}
	s.From(ab, 0, roadnet.Penalties{})
	if length, _, ok := s.To(bc); !ok || length != 0 {
		t.Errorf("next edge: %d %v", length, ok)
	}
	if _, _, ok := s.To(m.Edge("C", "A")); ok {
		t.Error("limit 0 went 100 m")
	}
	s.From(ab, 100_000, roadnet.Penalties{})
	want := m.Graph.Edge(bc).LengthCM + m.Graph.Edge(m.Edge("C", "A")).LengthCM
	if length, _, ok := s.To(ab); !ok || length != want {
		t.Errorf("round the block: %d %v, want %d", length, ok, want)
	}
	if got := m.Names(s.Path(nil, ab)); got != "B>C C>A" {
		t.Errorf("round the block over %s", got)
	}
}

// Steady state allocates nothing (M49).
func TestSearchAllocatesNothing(t *testing.T) {
	g := randomCity(t, 3, roadnet.Point{Lon: 9, Lat: 48}, 20)
	s := roadnet.NewSearch(g)
	var path []roadnet.EdgeIndex
	var hits []roadnet.Hit
	target := roadnet.EdgeIndex(g.Edges() - 1)
	p := g.NodePoint(5)
	run := func() {
		s.From(0, 1<<29, roadnet.Penalties{UTurnCM: 4000, BanCM: 15000})
		s.To(target)
		path = s.Path(path[:0], target)
		hits = g.Near(hits[:0], p, 100)
	}
	run()
	if n := testing.AllocsPerRun(20, run); n != 0 {
		t.Errorf("%v allocations a search", n)
	}
}
