package roadnet_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"milepost/internal/roadnet"
	"milepost/internal/roadnet/roadnettest"
)

// edgesOf lists the edges of a map as "A>B", sorted.
func edgesOf(m *roadnettest.Map) string {
	var names []string
	for e := range roadnet.EdgeIndex(m.Graph.Edges()) {
		names = append(names, m.EdgeName(e))
	}
	slices.Sort(names)
	return strings.Join(names, " ")
}

// Ways are cut at junctions and nowhere else, and no two edges have one name (M34, M36, M40; keys mean the same in every build).
func TestCut(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"no junction inside", `A(0,0)-x(50,0)-B(100,0)`, "A>B B>A"},
		{"end on a way", `A(0,0)-J(50,0)-B(100,0); J-C(50,50)`, "A>J B>J C>J J>A J>B J>C"},
		{"crossing without a shared node", `A(-200,0)-B(200,0); C(0,-200)-D(0,200)`, "A>B B>A C>D D>C"},
		{"a way that crosses itself", `A(0,0)-J(50,0)-p(100,0)-q(100,50)-r(50,50)-J-B(50,-50)`, "A>J B>J J>A J>B J>q J>r q>J q>r r>J r>q"},
		{"ring with one exit", `J(0,0)>p(15,15)>q(0,30)>r(-15,15)>J; J-B(0,-50)`, "B>J J>B J>q q>J"},
		{"two-way ring", `J(0,0)-p(15,15)-q(0,30)-r(-15,15)-J`, "J>q J>r q>J q>r r>J r>q"},
		{"two halves between the same junctions", `A(0,0)-p(50,50)-B(100,0)-q(50,-50)-A; A-C(-50,0); B-D(150,0)`, "A>B A>C A>q B>A B>D B>q C>A D>B q>A q>B"},
		{"chord first", `A(0,0)-B(100,0)-q(50,-50)-A; A-C(-50,0); B-D(150,0)`, "A>B A>C A>q B>A B>D B>q C>A D>B q>A q>B"},
		{"chord last", `B(100,0)-q(50,-50)-A(0,0)-B; A-C(-50,0); B-D(150,0)`, "A>B A>C A>q B>A B>D B>q C>A D>B q>A q>B"},
		{"there and back on itself", `A(0,0)-B(100,0)-A`, "A>B B>A"},
		{"there and back one-way", `A(0,0)>B(100,0)>A`, "A>B B>A"},
		{"three-node two-way ring", `A(0,0)-p(50,50)-q(0,100)-A`, "A>p A>q p>A p>q q>A q>p"},
		{"repeated nodes", `A(0,0)-A-B(100,0)-B-B`, "A>B B>A"},
		{"one node", `A(0,0)-A; B(0,50)-C(50,50)`, "B>C C>B"},
		{"missing node inside", `A(0,0)-B(50,0)-x-C(100,0)-D(150,0)`, "A>B B>A C>D D>C"},
		{"missing end", `A(0,0)-B(50,0)-x`, "A>B B>A"},
		{"oneway backwards", `A(0,0)-B(50,0) oneway=-1`, "B>A"},
		{"bollard", `A(0,0)-P(50,0)-B(100,0); P barrier=bollard`, "A>P B>P P>A P>B"},
		{"construction", `A(0,0)-B(50,0); C(0,50)-D(50,50) highway=construction`, "A>B B>A"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := roadnettest.Parse(t, c.text)
			if got := edgesOf(m); got != c.want {
				t.Errorf("edges %s\nwant  %s", got, c.want)
			}
			checkGraph(t, m.Graph)
		})
	}
}

// checkGraph verifies what holds for every graph.
func checkGraph(t *testing.T, g *roadnet.Graph) {
	t.Helper()
	keys := map[roadnet.EdgeKey]bool{}
	out := 0
	for n := range roadnet.NodeIndex(g.Nodes()) {
		out += len(g.Out(n))
		for i, e := range g.Out(n) {
			if g.Edge(e).From != n || i > 0 && g.Out(n)[i-1] >= e {
				t.Fatalf("node %d: edge %d out of place", n, e)
			}
		}
	}
	if out != g.Edges() {
		t.Fatalf("%d edges leave nodes, of %d", out, g.Edges())
	}
	var shape, back []roadnet.ShapePoint
	for i := range roadnet.EdgeIndex(g.Edges()) {
		e, k := g.Edge(i), g.Key(i)
		if keys[k] {
			t.Fatalf("two edges are named %+v", k)
		}
		keys[k] = true
		shape = g.Shape(shape[:0], i)
		if len(shape) < 2 || shape[0].Node != k.From || shape[len(shape)-1].Node != k.To || shape[0].AlongCM != 0 || shape[len(shape)-1].AlongCM != e.LengthCM || e.LengthCM < 1 {
			t.Fatalf("edge %d %+v has the shape %+v", i, e, shape)
		}
		sum := 0.0
		for j := range len(shape) - 1 {
			if shape[j].AlongCM > shape[j+1].AlongCM || shape[j].Node == shape[j+1].Node {
				t.Fatalf("edge %d: shape %+v", i, shape)
			}
			sum += roadnet.Distance(shape[j].Point, shape[j+1].Point)
		}
		if math.Abs(sum*100-float64(e.LengthCM)) > 1.5 {
			t.Fatalf("edge %d is %d cm long, its shape %v m", i, e.LengthCM, sum)
		}
		if e.Twin == roadnet.NoEdge {
			continue
		}
		tw := g.Edge(e.Twin)
		back = g.Shape(back[:0], e.Twin)
		if tw.Twin != i || tw.From != e.To || tw.To != e.From || tw.LengthCM != e.LengthCM || tw.Component != e.Component || len(back) != len(shape) {
			t.Fatalf("edge %d %+v and its twin %+v", i, e, tw)
		}
		for j, p := range shape {
			if q := back[len(back)-1-j]; q.Node != p.Node || q.Point != p.Point || q.AlongCM != e.LengthCM-p.AlongCM {
				t.Fatalf("edge %d and its twin differ at %d: %+v %+v", i, j, p, q)
			}
		}
	}
}

// Random cities hold the same truths, among them that of unique names.
func TestRandomGraphs(t *testing.T) {
	for seed := range uint64(20) {
		checkGraph(t, randomCity(t, seed, roadnet.Point{Lon: 179.995, Lat: -17}, 12))
	}
}

// Random ways over few nodes, which cross themselves and each other all the time, keep unique names.
func TestRandomTangles(t *testing.T) {
	for seed := range uint64(400) {
		rnd := rand.New(rand.NewPCG(seed, 3))
		b := roadnet.NewBuilder(nil)
		nodes := 2 + rnd.Int64N(8)
		for w := range 1 + rnd.Int64N(3) {
			refs := make([]int64, 2+rnd.IntN(12))
			for i := range refs {
				refs[i] = 1 + rnd.Int64N(nodes)
			}
			one := [...]string{"no", "yes", "-1"}[rnd.IntN(3)]
			b.AddWay(w, refs, roadnet.Tags{{Key: "highway", Value: "primary"}, {Key: "oneway", Value: one}})
		}
		for n := range nodes {
			b.AddNode(n+1, rnd.Int64N(100_000), rnd.Int64N(100_000), nil)
		}
		g, err := b.Build()
		if err != nil {
			t.Fatal(err)
		}
		checkGraph(t, g)
	}
}

// The same objects in another order make the same graph, to the hash; another tag, place or rule makes another hash (M43, M44).
func TestHash(t *testing.T) {
	lines := []string{`a: A(0,0)-J(100,0)-B(200,0)`, `b: J-C(100,100)`, `c: C>D(0,100) highway=primary`}
	m := roadnettest.Parse(t, strings.Join(lines, "\n")+"\nno_left_turn a J b")
	type way struct {
		id   int64
		refs []int64
		tags roadnet.Tags
	}
	res := roadnet.Tags{{Key: "highway", Value: "residential"}}
	ways := []way{
		{m.Way("a"), []int64{1, 2, 3}, res},
		{m.Way("b"), []int64{2, 4}, res},
		{m.Way("c"), []int64{4, 5}, roadnet.Tags{{Key: "highway", Value: "primary"}, {Key: "oneway", Value: "yes"}}},
	}
	build := func(order []int, shift int64, rule string) [32]byte {
		b := roadnet.NewBuilder(nil)
		for _, i := range order {
			b.AddWay(ways[i].id, ways[i].refs, ways[i].tags)
		}
		b.AddRelation(1, []roadnet.Member{{Kind: roadnet.MemberWay, Ref: 1001, Role: "from"}, {Kind: roadnet.MemberNode, Ref: 2, Role: "via"}, {Kind: roadnet.MemberWay, Ref: 1002, Role: "to"}},
			roadnet.Tags{{Key: "type", Value: "restriction"}, {Key: "restriction", Value: rule}})
		for i, xy := range [][2]float64{{0, 0}, {100, 0}, {200, 0}, {100, 100}, {0, 100}} {
			p := m.Point(xy[0], xy[1])
			b.AddNode(int64(i+1), int64(math.Round(p.Lon*1e7))+shift, int64(math.Round(p.Lat*1e7)), nil)
		}
		g, err := b.Build()
		if err != nil {
			t.Fatal(err)
		}
		return g.Hash()
	}
	same := m.Graph.Hash()
	for _, order := range [][]int{{0, 1, 2}, {2, 1, 0}, {1, 2, 0}} {
		if build(order, 0, "no_left_turn") != same {
			t.Errorf("order %v makes another graph", order)
		}
	}
	if build([]int{0, 1, 2}, 1, "no_left_turn") == same || build([]int{0, 1, 2}, 0, "only_left_turn") == same || same == [32]byte{} {
		t.Error("another map has the same hash")
	}
}

// A road over the antimeridian is as long as it is, is found from both sides, and joins nodes at +180 and -180 (M26).
func TestAntimeridian(t *testing.T) {
	m := roadnettest.ParseAt(t, roadnet.Point{Lon: 180, Lat: 0}, `A(-111,0)-B(111,0)`)
	if got := m.Graph.Edge(0).LengthCM; got < 22_190 || got > 22_210 {
		t.Errorf("length %d cm, want about 22200", got)
	}
	sw, ne := m.Graph.Bounds()
	if sw.Lon < 179.9 || ne.Lon > -179.9 {
		t.Errorf("bounds %v %v", sw, ne)
	}
	for _, x := range []float64{-50, -1, 0, 1, 50} {
		hits := m.Graph.Near(nil, m.Point(x, 5), 35)
		if len(hits) != 2 || math.Abs(hits[0].DistM-5) > 0.01 {
			t.Fatalf("at x=%v: %+v", x, hits)
		}
		if gx, gy := m.XY(hits[0].Point); math.Abs(gx-x) > 0.02 || math.Abs(gy) > 0.02 {
			t.Errorf("at x=%v the snapped place is %v,%v", x, gx, gy)
		}
	}
	b := roadnet.NewBuilder(nil)
	road := roadnet.Tags{{Key: "highway", Value: "primary"}}
	b.AddWay(1, []int64{1, 2}, road)
	b.AddWay(2, []int64{3, 4}, road)
	b.AddNode(1, 1_799_990_000, 0, nil)
	b.AddNode(2, 1_800_000_000, 0, nil)
	b.AddNode(3, -1_800_000_000, 0, nil)
	b.AddNode(4, -1_799_990_000, 0, nil)
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	if g.Nodes() != 3 || g.Edge(3).Component != 0 {
		t.Errorf("%d nodes, want 3", g.Nodes())
	}
	checkGraph(t, g)
}

// Roads at the pole and on the equator have their true lengths (M25).
func TestLengths(t *testing.T) {
	for _, at := range []roadnet.Point{{}, {Lon: 9, Lat: 48}, {Lon: -70, Lat: -54}, {Lon: 15, Lat: 78.2}, {Lon: 0, Lat: 89.99}} {
		m := roadnettest.ParseAt(t, at, `A(0,0)-B(300,400)`)
		haversine := func(a, b roadnet.Point) float64 {
			r := math.Pi / 180
			h := math.Pow(math.Sin((b.Lat-a.Lat)*r/2), 2) + math.Cos(a.Lat*r)*math.Cos(b.Lat*r)*math.Pow(math.Sin((b.Lon-a.Lon)*r/2), 2)
			return 2 * 6371008.8 * math.Asin(math.Sqrt(h))
		}
		s := m.Graph.Shape(nil, 0)
		want := haversine(s[0].Point, s[1].Point)
		tolerance := 0.02
		if at.Lat > 85 {
			tolerance = want / 20
		}
		if got := float64(m.Graph.Edge(0).LengthCM) / 100; math.Abs(got-want) > tolerance {
			t.Errorf("%v: %v m, want %v", at, got, want)
		}
	}
}

// Offsets along an edge, from both ends and past them, over repeated places (M40).
func TestAt(t *testing.T) {
	m := roadnettest.Parse(t, `A(0,0)-p(100,0)-q(100,0)-B(100,100)`)
	for _, c := range []struct {
		from, to      string
		along         int32
		x, y, bearing float64
	}{
		{"A", "B", 0, 0, 0, 90},
		{"A", "B", 5000, 50, 0, 90},
		{"A", "B", 10_000, 100, 0, 90},
		{"A", "B", 15_000, 100, 50, 0},
		{"A", "B", 99_999, 100, 100, 0},
		{"A", "B", -5, 0, 0, 90},
		{"B", "A", 0, 100, 100, 180},
		{"B", "A", 5000, 100, 50, 180},
		{"B", "A", 15_000, 50, 0, 270},
	} {
		p, bearing := m.Graph.At(m.Edge(c.from, c.to), c.along)
		x, y := m.XY(p)
		if math.Abs(x-c.x) > 0.02 || math.Abs(y-c.y) > 0.02 || math.Abs(bearing-c.bearing) > 0.1 {
			t.Errorf("%+v: at %.2f,%.2f bearing %.2f", c, x, y, bearing)
		}
	}
	zero := roadnettest.Parse(t, `A(0,0)-B(0,0)`)
	if p, bearing := zero.Graph.At(0, 1); math.IsNaN(p.Lon) || math.IsNaN(bearing) || zero.Graph.Edge(0).LengthCM != 1 {
		t.Errorf("an edge of no length: %v %v", p, bearing)
	}
	checkGraph(t, zero.Graph)
}

// Components: the biggest is 0, and a bollard cuts them (M30, M35).
func TestComponents(t *testing.T) {
	m := roadnettest.Parse(t, `
		i: I(0,500)-K(50,500)
		A(0,0)-B(100,0)-C(200,0); B-D(100,100)
		E(500,0)-P(550,0)-F(600,0)-G(700,0)
		P barrier=bollard`)
	for pair, want := range map[[2]string]int32{{"A", "B"}: 0, {"B", "D"}: 0} {
		if got := m.Graph.Edge(m.Edge(pair[0], pair[1])).Component; got != want {
			t.Errorf("%v in component %d, want %d", pair, got, want)
		}
	}
	ep, pg, ik := m.Graph.Edge(m.Edge("E", "P")), m.Graph.Edge(m.Edge("P", "G")), m.Graph.Edge(m.Edge("I", "K"))
	if ep.Component == pg.Component || ik.Component == 0 || ep.To == pg.From {
		t.Errorf("components %d %d %d", ep.Component, pg.Component, ik.Component)
	}
	s := roadnet.NewSearch(m.Graph)
	s.From(m.Edge("E", "P"), 1<<29, roadnet.Penalties{})
	if _, _, ok := s.To(m.Edge("P", "G")); ok {
		t.Error("a path leads through a bollard")
	}
	if _, _, ok := s.To(m.Edge("P", "E")); !ok {
		t.Error("no turning back at a bollard (M7)")
	}
}

// Gates make their stretch private; at a crossing only the small road (M30).
func TestGates(t *testing.T) {
	m := roadnettest.Parse(t, `
		A(0,0)-J(100,0)-B(200,0)
		J-g(100,20)-Y(100,50) highway=service
		B-h(300,0)-C(400,0)
		K(100,-100)-J highway=service
		g barrier=gate; J barrier=gate`)
	for pair, want := range map[[2]string]bool{{"A", "J"}: false, {"J", "B"}: false, {"J", "Y"}: true, {"B", "C"}: false, {"K", "J"}: true} {
		if got := m.Graph.Edge(m.Edge(pair[0], pair[1])).Flags&roadnet.FlagPrivate != 0; got != want {
			t.Errorf("%v private: %v, want %v", pair, got, want)
		}
	}
	s := roadnet.NewSearch(m.Graph)
	p := roadnet.Penalties{PrivateCM: 3000}
	s.From(m.Edge("A", "J"), 100_000, p)
	if length, cost, ok := s.To(m.Edge("J", "Y")); !ok || cost != length+3000 {
		t.Errorf("into the yard: %d at %d %v", length, cost, ok)
	}
	s.From(m.Edge("K", "J"), 100_000, p)
	if length, cost, ok := s.To(m.Edge("J", "Y")); !ok || cost != length {
		t.Errorf("from private to private: %d at %d %v", length, cost, ok)
	}
}

// Turn rules at a crossing of two streets, W-J-E and S-J-N (M28).
func TestTurns(t *testing.T) {
	const cross = `we: W(-100,0)-J(0,0); je: J-E(100,0); sj: S(0,-100)-J; jn: J-N(0,100)
		side: E-Z(200,0); bus: J-B(70,70) access=no psv=yes
		`
	for _, c := range []struct {
		name, rule string
		banned     string // turns at J, "W>J J>N" written W-N
		stat       func(roadnet.ImportStats) int
	}{
		{"no", `no_left_turn we J jn`, "W-N", applied},
		{"only", `only_straight_on we J je`, "W-N W-S", applied},
		{"no turning back", `no_u_turn we J we`, "W-W", applied},
		{"no turning back onto another road", `no_u_turn we J jn`, "W-N", applied},
		{"a rule about itself that is none about U-turns", `no_left_turn we J we`, "", applied},
		{"only leaves turning back as it is", `only_right_turn sj J je`, "S-N S-W", applied},
		{"for cars alone", `no_left_turn we J jn restriction:motorcar=no_right_turn`, "W-N", applied},
		{"except cars", `no_left_turn we J jn except=motorcar`, "", ignored},
		{"except buses", `no_left_turn we J jn except=psv`, "W-N", applied},
		{"an unknown kind", `no_left_turn we J jn restriction:motor_vehicle=give_way`, "", ignored},
		{"dangling to", `no_left_turn we J gone`, "", broken},
		{"dangling via", `no_left_turn we gone jn`, "", broken},
		{"a to that does not meet", `only_straight_on we J side`, "", broken},
		{"a from that does not meet", `only_straight_on side J je`, "", broken},
		{"only onto a road not for cars must not close the junction", `only_straight_on we J bus`, "", broken},
		{"over a way", `no_u_turn we je side`, "", viaWay},
		{"over a way that does not meet", `no_u_turn sj side jn`, "", broken},
		{"twice the same", "no_left_turn we J jn\nno_left_turn we J jn", "W-N", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := roadnettest.Parse(t, cross+c.rule)
			var got []string
			for _, from := range []string{"W", "E", "S", "N"} {
				for _, to := range []string{"W", "E", "S", "N"} {
					turn := m.Graph.Turn(m.Edge(from, "J"), m.Edge("J", to))
					if turn == roadnet.TurnBanned {
						got = append(got, from+"-"+to)
					} else if (turn == roadnet.TurnU) != (from == to) {
						t.Errorf("turn %s-%s is %v", from, to, turn)
					}
				}
			}
			slices.Sort(got)
			if diff := cmp.Diff(c.banned, strings.Join(got, " ")); diff != "" {
				t.Error(diff)
			}
			if c.stat != nil && c.stat(m.Graph.Stats()) != 1 {
				t.Errorf("stats %+v", m.Graph.Stats())
			}
		})
	}
}

func applied(s roadnet.ImportStats) int { return s.Restrictions }
func ignored(s roadnet.ImportStats) int { return s.RestrictionsIgnored }
func broken(s roadnet.ImportStats) int  { return s.RestrictionsBroken }
func viaWay(s roadnet.ImportStats) int  { return s.RestrictionsViaWay }

// A restriction of many entries (no_entry) or exits (no_exit) bans each pair; only_ with several is broken (M28).
func TestTurnsMany(t *testing.T) {
	build := func(kind string, from, to []int64) *roadnet.Graph {
		b := roadnet.NewBuilder(nil)
		road := roadnet.Tags{{Key: "highway", Value: "primary"}}
		for w := range int64(4) {
			b.AddWay(w+1, []int64{10, w + 1}, road)
		}
		members := []roadnet.Member{{Kind: roadnet.MemberNode, Ref: 10, Role: "via"}}
		for _, f := range from {
			members = append(members, roadnet.Member{Kind: roadnet.MemberWay, Ref: f, Role: "from"})
		}
		for _, f := range to {
			members = append(members, roadnet.Member{Kind: roadnet.MemberWay, Ref: f, Role: "to"})
		}
		b.AddRelation(1, members, roadnet.Tags{{Key: "type", Value: "restriction"}, {Key: "restriction", Value: kind}})
		b.AddNode(10, 0, 0, nil)
		for i, p := range [][2]int64{{0, 9000}, {9000, 0}, {0, -9000}, {-9000, 0}} {
			b.AddNode(int64(i+1), p[0], p[1], nil)
		}
		g, err := b.Build()
		if err != nil {
			t.Fatal(err)
		}
		return g
	}
	for kind, want := range map[string]int{"no_entry": 2, "no_exit": 2, "only_straight_on": 0} {
		from, to := []int64{1, 2}, []int64{3}
		if kind == "no_exit" {
			from, to = []int64{1}, []int64{2, 3}
		}
		g := build(kind, from, to)
		if got := g.Stats().Bans; got != want {
			t.Errorf("%s: %d bans, want %d", kind, got, want)
		}
	}
}

// The order of calls is held, and impossible input is counted rather than trusted.
func TestBuilderMisuse(t *testing.T) {
	road := roadnet.Tags{{Key: "highway", Value: "primary"}}
	var told []string
	b := roadnet.NewBuilderFor(roadnet.ImportOptions{Note: func(f roadnet.Finding) { told = append(told, f.String()) }})
	b.AddWay(1, []int64{1, 2, 3, 4}, road)
	b.AddWay(1, []int64{1, 2}, road)
	b.AddNode(1, 0, 0, nil)
	b.AddNode(1, 5, 5, nil)
	b.AddNode(2, 10_000, 0, nil)
	b.AddNode(3, 0, 900_000_001, nil)
	b.AddNode(4, -1_900_000_000, 0, nil)
	b.AddNode(99, 0, 0, nil)
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	if s := g.Stats(); s.DuplicateWays != 1 || s.BadNodes != 2 || s.MissingNodes != 2 || s.Ways != 1 || g.NodePoint(0) != (roadnet.Point{}) {
		t.Errorf("%+v", s)
	}
	want := []string{
		"way 1: comes more than once: the first one counts", "node 3: off the globe: taken as missing", "node 4: off the globe: taken as missing",
		"way 1: node 3 is missing: the way is cut there", "way 1: node 4 is missing: the way is cut there",
	}
	if diff := cmp.Diff(want, told); diff != "" {
		t.Error(diff)
	}
	b = roadnet.NewBuilder(nil)
	b.AddWay(1, []int64{1, 2}, road)
	b.AddNode(1, 0, 0, nil)
	b.AddWay(2, []int64{1, 3}, road)
	if _, err := b.Build(); !errors.Is(err, roadnet.ErrOrder) {
		t.Errorf("a late way: %v", err)
	}
	if g, err := roadnet.NewBuilder(nil).Build(); err != nil || g.Edges() != 0 || len(g.Near(nil, roadnet.Point{Lon: 1, Lat: 1}, 100)) != 0 {
		t.Errorf("an empty graph: %v", err)
	}
}

// Segments half round the globe are no roads, and many long ones are refused before they fill the memory.
func TestBuilderLongSegments(t *testing.T) {
	road := roadnet.Tags{{Key: "highway", Value: "primary"}}
	b := roadnet.NewBuilder(nil)
	b.AddWay(1, []int64{1, 2, 3}, road)
	b.AddNode(1, 0, 0, nil)
	b.AddNode(2, 900_000_000, 0, nil)
	b.AddNode(3, 900_010_000, 0, nil)
	g, err := b.Build()
	if err != nil || g.Stats().BadSegments != 1 || g.Edges() != 2 {
		t.Errorf("%v %+v", err, g.Stats())
	}
	b = roadnet.NewBuilder(nil)
	const n = 4000
	for w := range int64(n) {
		b.AddWay(w, []int64{2 * w, 2*w + 1}, road)
	}
	for w := range int64(n) {
		b.AddNode(2*w, 0, w*100, nil)
		b.AddNode(2*w+1, 30_000_000, w*100, nil)
	}
	if _, err := b.Build(); err == nil {
		t.Error("4000 roads of 330 km each, without a bend, were taken")
	}
}

// A way round and round the globe is cut before its length runs over.
func TestBuilderEndlessWay(t *testing.T) {
	b := roadnet.NewBuilder(nil)
	refs := make([]int64, 200)
	for i := range refs {
		refs[i] = int64(i)
	}
	b.AddWay(1, refs, roadnet.Tags{{Key: "highway", Value: "primary"}})
	for i := range refs {
		b.AddNode(int64(i), int64(i)*30_000_000%3_600_000_000-1_800_000_000, int64(i)*1000, nil)
	}
	g, err := b.Build()
	if err != nil || g.Stats().BadSegments != 0 || g.Edges() < 20 {
		t.Fatalf("the way is not taken, or not cut: %v", err)
	}
	for e := range roadnet.EdgeIndex(g.Edges()) {
		if n := g.Edge(e).LengthCM; n < 1 || n > 1<<29 {
			t.Errorf("edge %d is %d cm long", e, n)
		}
	}
	s := roadnet.NewSearch(g)
	s.From(0, math.MaxInt32, roadnet.Penalties{UTurnCM: math.MaxInt32, BanCM: math.MaxInt32})
	for e := range roadnet.EdgeIndex(g.Edges()) {
		if length, cost, ok := s.To(e); ok && (length < 0 || cost < length) {
			t.Errorf("edge %d: %d cm at %d", e, length, cost)
		}
	}
}

// A box keeps the ways of which a segment may touch it, also over the antimeridian.
func TestBox(t *testing.T) {
	road := roadnet.Tags{{Key: "highway", Value: "primary"}}
	build := func(box *roadnet.Box) string {
		b := roadnet.NewBuilder(box)
		lons := []int64{1_799_000_000, 1_799_900_000, -1_799_900_000, -1_799_000_000, 90_000_000, 90_100_000}
		for w := range len(lons) - 1 {
			if w != 3 {
				b.AddWay(int64(w+1), []int64{int64(w), int64(w + 1)}, road)
			}
		}
		for i, lon := range lons {
			b.AddNode(int64(i), lon, 0, nil)
		}
		g, err := b.Build()
		if err != nil {
			t.Fatal(err)
		}
		ways := map[int64]bool{}
		for e := range roadnet.EdgeIndex(g.Edges()) {
			ways[g.Edge(e).Way] = true
		}
		return fmt.Sprint(ways)
	}
	for _, c := range []struct {
		box  *roadnet.Box
		want string
	}{
		{nil, "map[1:true 2:true 3:true 5:true]"},
		{&roadnet.Box{West: 8, South: -1, East: 10, North: 1}, "map[5:true]"},
		{&roadnet.Box{West: 8, South: 1, East: 10, North: 2}, "map[]"},
		{&roadnet.Box{West: 179.995, South: -1, East: -179.995, North: 1}, "map[2:true]"},
		{&roadnet.Box{West: 179.95, South: -1, East: 179.96, North: 1}, "map[1:true]"},
		{&roadnet.Box{West: -180, South: -90, East: 180, North: 90}, "map[1:true 2:true 3:true 5:true]"},
		{&roadnet.Box{West: -179.95, South: -1, East: -179.91, North: 1}, "map[3:true]"},
	} {
		if got := build(c.box); got != c.want {
			t.Errorf("box %+v: %s, want %s", c.box, got, c.want)
		}
	}
}
