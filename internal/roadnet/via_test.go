package roadnet_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"milepost/internal/roadnet"
	"milepost/internal/roadnet/roadnettest"
)

// rule is a restriction over ways of a test city, each of which is one stretch.
type rule struct {
	only, uTurn bool
	ways        []int64 // from, over one or two ways, to
}

// viaCity is a small grid of streets with restrictions over ways at random.
func viaCity(tb testing.TB, seed uint64, size int) (*roadnet.Graph, []rule) {
	tb.Helper()
	rnd := rand.New(rand.NewPCG(seed, 5))
	b := roadnet.NewBuilder(nil)
	id := func(x, y int) int64 { return int64(1 + y*size + x) }
	at := map[int64][]int64{} // ways of each node
	ends := map[int64][2]int64{}
	street := func(a, c int64) {
		way := int64(100 + len(ends))
		tags := roadnet.Tags{{Key: "highway", Value: "residential"}}
		if rnd.IntN(4) == 0 {
			tags = append(tags, roadnet.Tag{Key: "oneway", Value: "yes"})
		}
		b.AddWay(way, []int64{a, c}, tags)
		ends[way] = [2]int64{a, c}
		at[a], at[c] = append(at[a], way), append(at[c], way)
	}
	for y := range size {
		for x := range size {
			if x+1 < size {
				street(id(x, y), id(x+1, y))
			}
			if y+1 < size {
				street(id(x, y), id(x, y+1))
			}
		}
	}
	var rules []rule
	for r := range 3 * size * size {
		node := id(rnd.IntN(size), rnd.IntN(size))
		ways := []int64{at[node][rnd.IntN(len(at[node]))]}
		for range 2 + rnd.IntN(2) {
			w := at[node][rnd.IntN(len(at[node]))]
			ways = append(ways, w)
			node = ends[w][0] + ends[w][1] - node
		}
		ru := rule{only: rnd.IntN(3) == 0, uTurn: rnd.IntN(4) == 0, ways: ways}
		rules = append(rules, ru)
		kind := map[[2]bool]string{{}: "no_left_turn", {true, false}: "only_straight_on", {false, true}: "no_u_turn", {true, true}: "only_u_turn"}[[2]bool{ru.only, ru.uTurn}]
		members := []roadnet.Member{{Kind: roadnet.MemberWay, Ref: ways[0], Role: "from"}}
		for _, w := range ways[1 : len(ways)-1] {
			members = append(members, roadnet.Member{Kind: roadnet.MemberWay, Ref: w, Role: "via"})
		}
		members = append(members, roadnet.Member{Kind: roadnet.MemberWay, Ref: ways[len(ways)-1], Role: "to"})
		b.AddRelation(int64(r+1), members, roadnet.Tags{{Key: "type", Value: "restriction"}, {Key: "restriction", Value: kind}})
	}
	for y := range size {
		for x := range size {
			b.AddNode(id(x, y), int64(x)*13_000+rnd.Int64N(5_000), int64(y)*11_000+rnd.Int64N(5_000), nil)
		}
	}
	g, err := b.Build()
	if err != nil {
		tb.Fatal(err)
	}
	if s := g.Stats(); s.RestrictionsViaWay < size || s.States == 0 || s.BannedPaths == 0 {
		tb.Fatalf("a city that proves nothing: %+v", s)
	}
	return g, rules
}

// forbids says whether a rule forbids the last step of a run of edges, read from the rule's own words.
func (r *rule) forbids(g *roadnet.Graph, run []roadnet.EdgeIndex) bool {
	n := len(r.ways)
	if len(run) < n {
		return false
	}
	run = run[len(run)-n:]
	for i := range n - 1 {
		if g.Edge(run[i]).Way != r.ways[i] || i > 0 && g.Edge(run[i]).Twin == run[i-1] {
			return false
		}
	}
	last, next := run[n-2], run[n-1]
	if g.Edge(last).Twin == next && !r.uTurn {
		return false
	}
	to := func(e roadnet.EdgeIndex) bool { return g.Edge(e).Way == r.ways[n-1] }
	return slices.ContainsFunc(g.Out(g.Edge(last).To), to) && to(next) != r.only
}

// historySearch is Dijkstra over the last three edges of every path: what Search must find with its automaton.
func historySearch(g *roadnet.Graph, rules []rule, start roadnet.EdgeIndex, limit int32, p roadnet.Penalties) map[roadnet.EdgeIndex]int32 {
	type at struct{ a, b, c roadnet.EdgeIndex } // c is the newest
	type entry struct{ cost, length int32 }
	open := map[at]entry{{roadnet.NoEdge, roadnet.NoEdge, start}: {}}
	done := map[at]bool{}
	best := map[roadnet.EdgeIndex]int32{}
	for {
		var here at
		found := false
		for k, e := range open {
			if !done[k] && (!found || e.cost < open[here].cost) {
				here, found = k, true
			}
		}
		if !found {
			return best
		}
		done[here] = true
		e := open[here]
		first := here.b == roadnet.NoEdge
		length, cost := e.length, e.cost
		if !first {
			if c, ok := best[here.c]; !ok || cost < c {
				best[here.c] = cost
			}
			length, cost = length+g.Edge(here.c).LengthCM, cost+g.Edge(here.c).LengthCM
		}
		if length > limit {
			continue
		}
		for _, next := range g.Out(g.Edge(here.c).To) {
			c := cost
			run := []roadnet.EdgeIndex{}
			for _, x := range []roadnet.EdgeIndex{here.a, here.b, here.c, next} {
				if x != roadnet.NoEdge {
					run = append(run, x)
				}
			}
			if slices.ContainsFunc(rules, func(r rule) bool { return r.forbids(g, run) }) {
				c += p.BanCM
			}
			if g.Edge(here.c).Twin == next {
				c += p.UTurnCM
			}
			k := at{here.b, here.c, next}
			if o, ok := open[k]; !ok || !done[k] && c < o.cost {
				open[k] = entry{c, length}
			}
		}
	}
}

// Restrictions over one and two ways are followed by the automaton exactly as a search that remembers whole paths would (M28).
func TestViaWaysEqualHistory(t *testing.T) {
	p := roadnet.Penalties{UTurnCM: 4000, BanCM: 15_000}
	for seed := range uint64(25) {
		g, rules := viaCity(t, seed, 4)
		checkGraph(t, g)
		rnd := rand.New(rand.NewPCG(seed, 6))
		s := roadnet.NewSearch(g)
		for range 3 {
			start := roadnet.EdgeIndex(rnd.IntN(g.Edges()))
			const limit = 1 << 20
			want := historySearch(g, rules, start, limit, p)
			s.From(start, limit, p)
			for _, i := range rnd.Perm(g.Edges()) {
				e := roadnet.EdgeIndex(i)
				_, cost, ok := s.To(e)
				if w, found := want[e]; ok != found || cost != w {
					t.Fatalf("seed %d, from %d to %d: cost %d %v, want %d %v", seed, start, e, cost, ok, w, found)
				}
				checkFollow(t, g, rules, start, s, e)
			}
		}
	}
}

// checkFollow walks the found path by Follow and compares its judgement with the rules' own words, and its state with the search's.
func checkFollow(t *testing.T, g *roadnet.Graph, rules []rule, start roadnet.EdgeIndex, s *roadnet.Search, target roadnet.EdgeIndex) {
	t.Helper()
	if _, _, ok := s.To(target); !ok {
		return
	}
	run := append(s.Path([]roadnet.EdgeIndex{start}, target), target)
	state := roadnet.State(start)
	for i, e := range run[1:] {
		var turn roadnet.Turn
		state, turn = g.Follow(state, e, roadnet.Car)
		want := slices.ContainsFunc(rules, func(r rule) bool { return r.forbids(g, run[:i+2]) })
		if (turn == roadnet.TurnBanned) != want || g.EdgeOf(state) != e {
			t.Fatalf("path %v, step %d: turn %v, banned by the rules: %v", run, i, turn, want)
		}
	}
	if state != s.State(target) {
		t.Fatalf("path %v: Follow ends in state %d, the search in %d", run, state, s.State(target))
	}
}

// A search cut in two at any edge, with the state handed over, costs what the whole one costs (M28, M43).
func TestViaWayHandOver(t *testing.T) {
	m := roadnettest.Parse(t, `
		a: A(0,0)-J(100,0); v: J-K(200,0); b: K-B(300,0); c: K-C(200,100)
		no_left_turn a v c`)
	p := roadnet.Penalties{BanCM: 15_000}
	s := roadnet.NewSearch(m.Graph)
	aj, jk, kc := m.Edge("A", "J"), m.Edge("J", "K"), m.Edge("K", "C")
	s.From(aj, 1<<20, p)
	_, whole, _ := s.To(kc)
	_, first, _ := s.To(jk)
	state := s.State(jk)
	s.FromState(state, 1<<20, p)
	if _, second, ok := s.To(kc); !ok || whole != first+m.Graph.Edge(jk).LengthCM+second || second != 15_000 {
		t.Errorf("%d in one, %d and %d in two", whole, first, second)
	}
	s.From(jk, 1<<20, p)
	if _, cost, _ := s.To(kc); cost != 0 {
		t.Errorf("who has not come from A pays %d", cost)
	}
	r := roadnet.NewRouter(m.Graph)
	if path, _, ok := r.Route(nil, aj, kc); !ok || m.Names(path) != "A>J J>K K>B B>K K>C" {
		t.Errorf("the router goes %s", m.Names(path))
	}
}

// What restrictions over ways say, in the words of the map: over several edges and ways, only_ ones, for some vehicles, and those that do
// not fit, which are passed over with the relation's id and the reason (M28).
func TestViaWays(t *testing.T) {
	const roads = `
		a: A(0,0)-J(100,0); v: J-x(150,0)-K(200,0); s: x-S(150,-50)
		w: K-L(300,0); c: K-C(200,100); d: L-D(300,100); e: L-E(400,0)
		`
	for _, c := range []struct{ name, rule, path, want string }{
		{"over a way of two edges", `no_left_turn a v c`, "A J x K C", "K-C"},
		{"the other way round means nothing", `no_left_turn a v c`, "C K x J A", ""},
		{"joined in the middle", `no_left_turn a v c`, "S x K C", ""},
		{"over two ways", `no_left_turn a v w d`, "A J x K L D", "L-D"},
		{"only: the wanted one", `only_straight_on a v w`, "A J x K L", ""},
		{"only: another", `only_straight_on a v w`, "A J x K C", "K-C"},
		{"only does not ban leaving the via way before its end", `only_straight_on a v w`, "A J x S", ""},
		{"only that does not fit closes nothing", `only_straight_on a v e`, "A J x K C", ""},
		{"not the whole way", `no_left_turn s v c`, "S x K C", ""},
		{"for buses", `no_left_turn a v c restriction:bus=no_left_turn except=motorcar`, "A J x K C", ""},
		{"turn back over a way", `no_u_turn a v a`, "A J x K x J A", ""},
		{"two rules that begin alike", "no_left_turn a v c\nno_left_turn a v w d", "A J x K L D", "L-D"},
		{"a turn rule at the same crossing", "no_left_turn v K c\nno_left_turn a v w d", "A J x K C", "K-C"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := roadnettest.Parse(t, roads+c.rule)
			nodes := fields(c.path)
			state := roadnet.State(m.Edge(nodes[0], nodes[1]))
			got := ""
			for i := 1; i < len(nodes)-1; i++ {
				var turn roadnet.Turn
				state, turn = m.Graph.Follow(state, m.Edge(nodes[i], nodes[i+1]), roadnet.Car)
				if turn == roadnet.TurnBanned {
					got += fmt.Sprint(nodes[i], "-", nodes[i+1])
				}
			}
			if got != c.want {
				t.Errorf("banned on %s: %q, want %q; %+v", c.path, got, c.want, m.Graph.Stats())
			}
		})
	}
}
