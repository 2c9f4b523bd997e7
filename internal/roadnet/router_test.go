package roadnet_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"milepost/internal/roadnet"
	"milepost/internal/roadnet/roadnettest"
)

// legal says whether a driver may go from one edge to the next on the way to a goal.
func legal(g *roadnet.Graph, from, next, goal roadnet.EdgeIndex) bool {
	private := func(e roadnet.EdgeIndex) bool { return g.Edge(e).Flags&roadnet.FlagPrivate != 0 }
	if private(next) && !private(from) && !private(goal) {
		return false
	}
	switch g.Turn(from, next) {
	case roadnet.TurnBanned, roadnet.TurnClosed:
		return false
	case roadnet.TurnU:
		return len(g.Out(g.Edge(from).To)) == 1
	case roadnet.TurnFree:
	}
	return true
}

// fastest is Bellman-Ford over edges: the times of all legal paths from an edge.
func fastest(g *roadnet.Graph, from, goal roadnet.EdgeIndex) []int64 {
	times := make([]int64, g.Edges())
	for i := range times {
		times[i] = math.MaxInt64
	}
	times[from] = 0
	for changed := true; changed; {
		changed = false
		for e := range roadnet.EdgeIndex(g.Edges()) {
			if times[e] == math.MaxInt64 {
				continue
			}
			for _, next := range g.Out(g.Edge(e).To) {
				if t := times[e] + int64(g.Millis(next)); legal(g, e, next, goal) && t < times[next] {
					times[next], changed = t, true
				}
			}
		}
	}
	return times
}

// Routes of the simulated fleet are legal and the fastest there are, over random cities, and are found whenever there is one (M27, M28:
// the truth that matching is measured by must itself keep the rules).
func TestRouterIsLegalAndFastest(t *testing.T) {
	for seed := range uint64(8) {
		g := randomCity(t, seed, roadnet.Point{Lon: 9, Lat: 48}, 8)
		r := roadnet.NewRouter(g)
		rnd := rand.New(rand.NewPCG(seed, 4))
		var path []roadnet.EdgeIndex
		for range 40 {
			from, to := roadnet.EdgeIndex(rnd.IntN(g.Edges())), roadnet.EdgeIndex(rnd.IntN(g.Edges()))
			want := fastest(g, from, to)[to]
			var millis int32
			var ok bool
			path, millis, ok = r.Route(path[:0], from, to)
			if ok != (want < math.MaxInt64) || ok && int64(millis) != want {
				t.Fatalf("seed %d, %d to %d: %d ms %v, want %d", seed, from, to, millis, ok, want)
			}
			if !ok {
				continue
			}
			if path[0] != from || path[len(path)-1] != to {
				t.Fatalf("seed %d, %d to %d: %v", seed, from, to, path)
			}
			for i := range len(path) - 1 {
				if !legal(g, path[i], path[i+1], to) {
					t.Fatalf("seed %d: %d to %d is not legal", seed, path[i], path[i+1])
				}
			}
		}
	}
}

// Turning back only in a dead end; a ban is gone round; into a yard only to stop there.
func TestRouter(t *testing.T) {
	m := roadnettest.Parse(t, `
		we: W(-100,0)-J(0,0); je: J-E(100,0); jn: J-N(0,100); en: E-F(100,100)-N
		yard: N-Y(0,200) access=private
		no_left_turn we J jn`)
	r := roadnet.NewRouter(m.Graph)
	for _, c := range []struct{ from, to, want string }{
		{"WJ", "JN", ""}, // J>N is left to those who come from E, who could not turn back there: the yard is closed to those who pass
		{"WJ", "EN", "W>J J>E E>N"},
		{"JW", "WJ", "J>W W>J"},
		{"JN", "NY", "J>N N>Y"},
	} {
		path, _, ok := r.Route(nil, m.Edge(c.from[:1], c.from[1:]), m.Edge(c.to[:1], c.to[1:]))
		if got := m.Names(path); ok != (c.want != "") || got != c.want {
			t.Errorf("%s to %s: %s, want %s", c.from, c.to, got, c.want)
		}
	}
}
