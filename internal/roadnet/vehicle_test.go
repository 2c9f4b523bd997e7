package roadnet_test

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"milepost/internal/roadnet"
	"milepost/internal/roadnet/roadnettest"
)

func all() roadnet.ImportOptions { return roadnet.ImportOptions{Vehicles: roadnet.AllVehicles()} }

// Who may go along a road and against it, by its tags (M27, M29, M30, M31, M33).
func TestAccessByVehicle(t *testing.T) {
	for _, c := range []struct{ tags, along, against string }{
		{"highway=residential", "car,truck,bus,bicycle,foot", "car,truck,bus,bicycle,foot"},
		{"highway=motorway", "car,truck,bus", ""},
		{"highway=trunk motorroad=yes", "car,truck,bus", "car,truck,bus"},
		{"highway=residential oneway=yes", "car,truck,bus,bicycle,foot", "foot"},
		{"highway=residential oneway=yes oneway:bicycle=no", "car,truck,bus,bicycle,foot", "bicycle,foot"},
		{"highway=residential oneway=yes cycleway=opposite_lane", "car,truck,bus,bicycle,foot", "bicycle,foot"},
		{"highway=residential oneway=yes cycleway:left=opposite_track", "car,truck,bus,bicycle,foot", "bicycle,foot"},
		{"highway=residential oneway=yes busway=opposite_lane", "car,truck,bus,bicycle,foot", "bus,foot"},
		{"highway=residential oneway=yes oneway:psv=no", "car,truck,bus,bicycle,foot", "bus,foot"},
		{"highway=residential oneway=-1", "foot", "car,truck,bus,bicycle,foot"},
		{"highway=residential oneway=yes oneway:foot=yes", "car,truck,bus,bicycle,foot", ""},
		{"highway=residential junction=roundabout", "car,truck,bus,bicycle,foot", "foot"},
		{"highway=residential access=no psv=yes", "bus", "bus"},
		{"highway=residential motor_vehicle=bus", "bus,bicycle,foot", "bus,bicycle,foot"},
		{"highway=residential hgv=no", "car,bus,bicycle,foot", "car,bus,bicycle,foot"},
		{"highway=residential motor_vehicle=no", "bicycle,foot", "bicycle,foot"},
		{"highway=residential vehicle=no bus=yes", "bus,foot", "bus,foot"},
		{"highway=service access=private", "car,truck,bus,bicycle,foot", "car,truck,bus,bicycle,foot"},
		{"highway=residential foot=use_sidepath", "car,truck,bus,bicycle", "car,truck,bus,bicycle"},
		{"highway=busway", "bus", "bus"},
		{"highway=track", "car,truck,bicycle,foot", "car,truck,bicycle,foot"},
		{"highway=pedestrian", "bicycle,foot", "bicycle,foot"},
		{"highway=pedestrian motor_vehicle=delivery", "car,truck,bus,bicycle,foot", "car,truck,bus,bicycle,foot"},
		{"highway=cycleway", "bicycle,foot", "bicycle,foot"},
		{"highway=cycleway oneway=yes foot=no", "bicycle", ""},
		{"highway=footway", "foot", "foot"},
		{"highway=footway bicycle=yes", "bicycle,foot", "bicycle,foot"},
		{"highway=steps", "foot", "foot"},
		{"highway=path", "bicycle,foot", "bicycle,foot"},
		{"highway=bridleway", "foot", "foot"},
		{"route=ferry", "bicycle,foot", "bicycle,foot"},
		{"route=ferry motor_vehicle=yes bicycle=no", "car,truck,bus,foot", "car,truck,bus,foot"},
		{"highway=construction construction=primary", "", ""},
		{"highway=proposed", "", ""},
		{"highway=platform", "", ""},
	} {
		m := roadnettest.ParseFor(t, all(), "A(0,0)-B(100,0) "+c.tags+"; X(0,900)-Y(9,900)")
		for pair, want := range map[[2]string]string{{"A", "B"}: c.along, {"B", "A"}: c.against} {
			got := ""
			if e, ok := m.FindEdge(pair[0], pair[1]); ok {
				got = m.Graph.Edge(e).Access.String()
			}
			if got != want {
				t.Errorf("%s, %v: %q, want %q", c.tags, pair, got, want)
			}
		}
		checkGraph(t, m.Graph)
	}
}

// One graph serves every class: each sees its own roads, by its own prices (M29, M30).
func TestViews(t *testing.T) {
	m := roadnettest.ParseFor(t, all(), `
		main: A(0,0)-J(100,0)-K(200,0)-B(300,0)
		lane: J-p(150,5)-K access=no psv=yes
		cut: J-L(150,-40)-K highway=cycleway
		yard: K-Y(200,100) access=private bicycle=yes
		P(250,-200)-Q(250,-100)-B; Q barrier=bollard`)
	g := m.Graph
	near := func(v roadnet.Vehicle, x, y, r float64) string {
		names := map[string]bool{}
		for _, h := range g.NearFor(nil, m.Point(x, y), r, roadnet.View{Vehicle: v}) {
			names[g.Edge(h.Edge).Class.String()+fmt.Sprint(g.Edge(h.Edge).Way-1000)] = true
		}
		return fmt.Sprint(len(names))
	}
	for v, want := range map[roadnet.Vehicle]string{roadnet.Car: "1", roadnet.Bus: "2", roadnet.Bicycle: "2", roadnet.Foot: "2"} {
		if got := near(v, 150, -10, 40); got != want {
			t.Errorf("%s: %s roads near the middle, want %s", v, got, want)
		}
	}
	if got := len(g.Near(nil, m.Point(150, -40), 5)); got != 0 {
		t.Errorf("a car is near %d edges of the cycleway", got)
	}
	cost := func(v roadnet.Vehicle, from, to roadnet.EdgeIndex) int32 {
		s := roadnet.NewSearchFor(g, roadnet.View{Vehicle: v})
		s.From(from, 1<<20, roadnet.Penalties{PrivateCM: 3000, UTurnCM: 1 << 20})
		length, c, ok := s.To(to)
		if !ok {
			return -1
		}
		return c - length
	}
	aj, ky, pq, qb := m.Edge("A", "J"), m.Edge("K", "Y"), m.Edge("P", "Q"), m.Edge("Q", "B")
	for v, want := range map[roadnet.Vehicle][2]int32{roadnet.Car: {3000, -1}, roadnet.Truck: {3000, -1}, roadnet.Bicycle: {0, 0}, roadnet.Foot: {3000, 0}} {
		if got := [2]int32{cost(v, aj, ky), cost(v, pq, qb)}; got != want {
			t.Errorf("%s: into the yard and past the bollard at %v, want %v", v, got, want)
		}
	}
	if _, turn := g.Follow(roadnet.State(pq), qb, roadnet.Car); turn != roadnet.TurnClosed {
		t.Errorf("the bollard is %v", turn)
	}
	if path, _, ok := roadnet.NewRouter(g).Route(nil, pq, m.Edge("Q", "P")); !ok || len(path) != 2 {
		t.Errorf("a car cannot turn back at the bollard: %v", path)
	}
	if c := g.StrongComponent(pq, roadnet.Car); c == g.StrongComponent(qb, roadnet.Car) || g.StrongComponent(pq, roadnet.Foot) != 0 {
		t.Errorf("the piece behind the bollard is %d", c)
	}
}

// A view without a vehicle's roads is empty; a car's graph is a car's alone.
func TestViewOfOthersIsEmpty(t *testing.T) {
	m := roadnettest.Parse(t, `A(0,0)-B(100,0)`)
	if m.Graph.Vehicles() != roadnet.SetOf(roadnet.Car) || m.Graph.Contraflow() {
		t.Errorf("a plain graph is for %s", m.Graph.Vehicles())
	}
	if got := m.Graph.NearFor(nil, m.Point(50, 0), 35, roadnet.View{Vehicle: roadnet.Bus, Contraflow: true}); len(got) != 0 {
		t.Errorf("a bus sees %v", got)
	}
	if e := m.Edge("A", "B"); m.Graph.Passable(e, roadnet.View{Vehicle: roadnet.Bus}) || !m.Graph.Passable(e, roadnet.View{}) {
		t.Error("passable by a bus, or not by a car")
	}
}

// Against a one-way street only where the graph has such edges and the view asks for them, at a price paid once at the entry (M27).
func TestContraflow(t *testing.T) {
	const text = `A(0,0)>B(400,0)>C(800,0); C-D(900,0); Z(-100,0)-A; A-q(400,300); q-C`
	opt := roadnet.ImportOptions{Contraflow: true}
	m := roadnettest.ParseFor(t, opt, text)
	g := m.Graph
	checkGraph(t, g)
	ba := m.Edge("C", "A")
	if e := g.Edge(ba); e.Flags&(roadnet.FlagContraflow|roadnet.FlagOneway) != roadnet.FlagContraflow|roadnet.FlagOneway || e.Access != 0 || !e.Contra.Has(roadnet.Car) {
		t.Errorf("against the street: %+v", e)
	}
	if e := g.Edge(m.Edge("A", "C")); e.Flags&roadnet.FlagContraflow != 0 || e.Contra != 0 {
		t.Errorf("along the street: %+v", e)
	}
	against := roadnet.View{Contraflow: true}
	if n, n2 := len(g.Near(nil, m.Point(200, 0), 35)), len(g.NearFor(nil, m.Point(200, 0), 35, against)); n != 1 || n2 != 2 {
		t.Errorf("%d edges along the rules, %d with contraflow", n, n2)
	}
	p := roadnet.Penalties{ContraflowCM: 10_000, UTurnCM: 1 << 20}
	dc, az := m.Edge("D", "C"), m.Edge("A", "Z")
	s := roadnet.NewSearchFor(g, against)
	s.From(dc, 1<<20, p)
	if length, cost, ok := s.To(az); !ok || cost != length+10_000 || m.Names(s.Path(nil, az)) != "C>A" {
		t.Errorf("wrong way: %d at %d over %s", length, cost, m.Names(s.Path(nil, az)))
	}
	s = roadnet.NewSearch(g)
	s.From(dc, 1<<20, p)
	if length, cost, ok := s.To(az); !ok || cost != length || length < 90_000 {
		t.Errorf("by the rules: %d at %d", length, cost)
	}
	if path, _, ok := roadnet.NewRouter(g).Route(nil, dc, az); !ok || len(path) != 4 || g.Edge(path[1]).Flags&roadnet.FlagContraflow != 0 {
		t.Errorf("the router goes %s", m.Names(path))
	}
	if _, ok := roadnettest.Parse(t, text).FindEdge("C", "A"); ok {
		t.Error("a graph that was not asked for them has edges against one-way streets")
	}
}

// Restrictions bind the classes that they speak of (M28, M29).
func TestTurnsByVehicle(t *testing.T) {
	for rule, want := range map[string]string{
		"no_left_turn we J jn":                                                 "car,truck,bus,bicycle",
		"no_left_turn we J jn except=psv|bicycle":                              "car,truck",
		"no_left_turn we J jn type=restriction:hgv":                            "truck",
		"no_left_turn we J jn restriction:bus=give_way":                        "car,truck,bicycle",
		"no_left_turn we J jn except=motor_vehicle":                            "bicycle",
		"only_straight_on we J je restriction:hgv=no_straight_on":              "car,bus,bicycle",
		"no_left_turn we v vn except=bus":                                      "car,truck,bicycle",
		"no_left_turn we v vn type=restriction:bus":                            "bus",
		"no_left_turn we J jn except=psv\nno_left_turn we J jn except=bicycle": "car,truck,bus,bicycle",
	} {
		m := roadnettest.ParseFor(t, all(), `
			we: W(-100,0)-J(0,0); je: J-E(100,0); jn: J-N(0,100)
			v: J-V(50,50); vn: V-X(50,150)
			`+rule)
		var set roadnet.Vehicles
		for v := range roadnet.Vehicle(5) {
			_, turn := m.Graph.Follow(roadnet.State(m.Edge("W", "J")), m.Edge("J", "N"), v)
			if turn == roadnet.TurnBanned {
				set |= roadnet.SetOf(v)
			}
			s, _ := m.Graph.Follow(roadnet.State(m.Edge("W", "J")), m.Edge("J", "V"), v)
			if _, turn = m.Graph.Follow(s, m.Edge("V", "X"), v); turn == roadnet.TurnBanned {
				set |= roadnet.SetOf(v)
			}
		}
		if got := set.String(); got != want {
			t.Errorf("%s: binds %q, want %q", rule, got, want)
		}
	}
}

// Speeds by class: what is posted binds those who go by it and bounds the others; a ferry goes by its timetable (M33).
func TestSpeeds(t *testing.T) {
	m := roadnettest.ParseFor(t, all(), `
		A(0,0)-B(100,0) highway=primary maxspeed=100
		C(0,50)-D(100,50) highway=residential
		E(0,99)-F(100,99) highway=residential maxspeed=10
		G(0,200)-H(10000,200) route=ferry motor_vehicle=yes duration=00:30
		K(0,300)-L(9,300) route=ferry duration=PT1H
		M(0,400)-N(100,400) route=ferry duration=soon`)
	for edge, want := range map[string]string{"AB": "100 90 100 20 5", "CD": "35 30 30 18 5", "EF": "10 10 10 10 5", "GH": "20 20 20 20 20", "KL": "1 1 1 1 1", "MN": "20 20 20 15 15"} {
		var got []string
		for v := range roadnet.Vehicle(5) {
			got = append(got, fmt.Sprint(m.Graph.Speed(m.Edge(edge[:1], edge[1:]), v)))
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %v, want %s", edge, got, want)
		}
	}
	if ms := m.Graph.Millis(m.Edge("G", "H")); math.Abs(float64(ms)-30*60_000) > 5000 {
		t.Errorf("the ferry takes %d ms, want half an hour", ms)
	}
}

// The default profiles are a file like any other; what is written otherwise but says the same is the same to the graph's hash, and what
// says something else is not.
func TestProfiles(t *testing.T) {
	text := string(roadnet.DefaultProfilesTOML())
	hash := func(text string) [32]byte {
		p, err := roadnet.ParseProfiles("x/my.toml", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		return roadnettest.ParseFor(t, roadnet.ImportOptions{Profiles: p}, `A(0,0)-B(100,0)`).Graph.Hash()
	}
	want := roadnettest.Parse(t, `A(0,0)-B(100,0)`).Graph.Hash()
	_, foot, _ := strings.Cut(text, "[foot]")
	for name, same := range map[string]string{
		"itself": text, "a comment": "# mine\n" + text, "the order of values": strings.Replace(text, `["yes", "permissive",`, `["permissive", "yes",`, 1),
		"another class": strings.Replace(text, "steps          = 3", "steps = 2", 1), "one class alone": "[foot]" + foot,
	} {
		if hash(same) != want {
			t.Errorf("%s: another graph", name)
		}
	}
	for name, other := range map[string]string{
		"a speed": strings.Replace(text, "residential    = 35", "residential = 36", 1),
		"a value": strings.Replace(text, `"permissive", `, "", 1), "a barrier": strings.Replace(text, `"bollard", "block",`, `"block",`, 1),
	} {
		if hash(other) == want {
			t.Errorf("%s: the same graph", name)
		}
	}
}

// Every fault of a file of profiles is told, with its line.
func TestProfileErrors(t *testing.T) {
	text := string(roadnet.DefaultProfilesTOML())
	line := func(mark string) int {
		before, _, _ := strings.Cut(text, mark)
		return strings.Count(before, "\n") + 1
	}
	for _, c := range []struct{ old, fresh, want string }{
		{"posted    = true\nmax_speed = 140", "posted = 1\nmax_speed = 140", fmt.Sprintf("my.toml:%d: posted must be true or false", line("posted    = true\nmax_speed = 140"))},
		{"max_speed = 140", "max_speed = 300", fmt.Sprintf("my.toml:%d: max_speed must be a whole number of km/h from 1 to 140", line("max_speed = 140"))},
		{"motorway       = 105", "motorway = 1.5\nmoterway = 9", fmt.Sprintf("my.toml:%d: motorway must be a whole number of km/h from 1 to 140\nmy.toml:%d: moterway is no class of roads", line("motorway       = 105"), line("motorway       = 105")+1)},
		{`access = "private" }`, `access = "maybe", toll = 1 }`, "track.access must be \"yes\", \"private\" or \"no\"\nmy.toml:" + fmt.Sprint(line(`track          = { speed = 15`)) + ": track.toll: no such key"},
		{"[car]", "[van]", "[van]: no such class of vehicles; there are car, truck, bus, bicycle, foot"},
		{"[car.roads]", "[car.streets]", "[car.streets]: a profile has the parts roads and barriers"},
		{"[truck]", "[car]", "[car] was given before, in line"},
		{`turns     = ["hgv", `, `turns = ["hgv", "hgv", "", 1, `, `turns: "hgv" is in it twice`},
		{`"area=yes"`, `"area"`, `never: "area" is not of the form key=value`},
		{"[car.barriers]\nclosed", "[car.barriers]\nclosd", "closd: no such key; barriers are closed, gate or open"},
		{`closed = ["bollard"`, `closed = ["gate"`, `gate: "gate" is in another list of these barriers, too`},
		{"max_speed = 90\n", "", fmt.Sprintf("my.toml:%d: [truck]: max_speed is missing", line("[truck]"))},
		{`"private", "destination"`, `"yes", "destination"`, `[car]: "yes" is both allowed and private`},
		{"max_speed = 140", "max_speed = 50", "[car]: max_speed 50 is below the 105 of motorway"},
		{"[car]\n", "[car]\nfast = true\n", "fast: no such key; a profile has access,"},
		{"[car]\n", "x = 1\n[car]\n", "x is outside the table of a class"},
		{"[car]\n", "[car\n", "my.toml:" + fmt.Sprint(line("[car]"))},
		{"[car]\n", "[[car]]\n", "lists of tables mean nothing here"},
	} {
		_, err := roadnet.ParseProfiles("/etc/my.toml", []byte(strings.Replace(text, c.old, c.fresh, 1)))
		var fault *roadnet.ProfileError
		if err == nil || !errors.As(err, &fault) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q for %q:\n%v\nwant %s", c.fresh, c.old, err, c.want)
		}
	}
	for _, empty := range []string{"", "# nothing\n", strings.Repeat("#", 2<<20)} {
		if _, err := roadnet.ParseProfiles("my.toml", []byte(empty)); err == nil {
			t.Error("a file without profiles was taken")
		}
	}
}

// Whatever a file of profiles holds, it is refused or makes graphs.
func FuzzProfiles(f *testing.F) {
	f.Add(roadnet.DefaultProfilesTOML())
	f.Add([]byte("[car]\nposted = true\n[car.roads]\nroad = { speed = 1 }\n[[x]]\na.b = [1, 'x']\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := roadnet.ParseProfiles("x", data)
		if err != nil {
			return
		}
		b := roadnet.NewBuilderFor(roadnet.ImportOptions{Profiles: p, Vehicles: roadnet.AllVehicles()})
		b.AddWay(1, []int64{1, 2}, roadnet.Tags{{Key: "highway", Value: "residential"}})
		b.AddNode(1, 0, 0, nil)
		b.AddNode(2, 9, 0, nil)
		if _, err := b.Build(); err != nil {
			t.Fatal(err)
		}
	})
}
