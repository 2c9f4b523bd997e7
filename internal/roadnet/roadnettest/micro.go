package roadnettest

import (
	"math"
	"strconv"
	"strings"
	"testing"

	"milepost/internal/roadnet"
)

// metresPerDegree is the length of a degree on the sphere that roadnet measures with.
const metresPerDegree = 111195.07973436874

// Map is a small map, with names for its nodes and ways.
type Map struct {
	Graph  *roadnet.Graph
	Origin roadnet.Point

	tb     testing.TB
	nodes  map[string]int64
	ways   map[string]int64
	roads  []Road
	rules  []Rule
	places []node
}

// Origin is where Parse puts the place (0,0).
func Origin() roadnet.Point { return roadnet.Point{Lon: 9, Lat: 48} }

// Parse makes a map around Origin; see ParseAt.
func Parse(tb testing.TB, text string) *Map {
	tb.Helper()
	return ParseAt(tb, Origin(), text)
}

// ParseAt makes a map of statements with ";" or line breaks between them. A statement is one way,
//
//	[name:] A(0,0)-B(900,0)>C(900,100) [key=value ...]
//
// where (x,y) are metres east and north of the origin, given once a node; "-" makes a two-way road and ">" a one-way road (a way is the
// one or the other: its first mark counts for all). "|" in a tag's value stands for ";". Without a highway tag it is highway=residential. Or a statement is a turn restriction,
//
//	no_left_turn w1 J w2            or, over ways, only_straight_on w1 w2 w3
//
// naming ways (unnamed ones are w1, w2 ... in order) and a node, or tags of a node, or a place of a node that is on no way yet:
//
//	J barrier=bollard
//
// Node ids are 1, 2 ... in the order of their first mention, way ids 1001, 1002 ... .
func ParseAt(tb testing.TB, origin roadnet.Point, text string) *Map {
	tb.Helper()
	return parse(tb, origin, roadnet.ImportOptions{}, text)
}

// ParseFor is Parse for the vehicles, and by the profiles, of the options.
func ParseFor(tb testing.TB, opt roadnet.ImportOptions, text string) *Map {
	tb.Helper()
	return parse(tb, Origin(), opt, text)
}

func parse(tb testing.TB, origin roadnet.Point, opt roadnet.ImportOptions, text string) *Map {
	tb.Helper()
	p := parser{m: &Map{Origin: origin, tb: tb, nodes: map[string]int64{}, ways: map[string]int64{}}, b: roadnet.NewBuilderFor(opt)}
	for line := range strings.FieldsFuncSeq(text, func(r rune) bool { return r == ';' || r == '\n' }) {
		if line = strings.TrimSpace(line); line != "" {
			p.statement(line)
		}
	}
	p.nodes()
	p.m.places = p.order
	g, err := p.b.Build()
	if err != nil {
		tb.Fatalf("build the map: %v", err)
	}
	p.m.Graph = g
	return p.m
}

type parser struct {
	m     *Map
	b     *roadnet.Builder
	order []node
	rels  int64
}

type node struct {
	x, y  float64
	known bool
	tags  roadnet.Tags
}

func (p *parser) statement(line string) {
	p.m.tb.Helper()
	fields := strings.Fields(line)
	switch {
	case strings.HasPrefix(fields[0], "no_") || strings.HasPrefix(fields[0], "only_"):
		p.restriction(fields)
	case strings.HasSuffix(fields[0], ":"):
		p.way(strings.TrimSuffix(fields[0], ":"), fields[1:])
	case strings.ContainsAny(stripPlaces(fields[0]), "->"):
		p.way("w"+strconv.Itoa(len(p.m.ways)+1), fields)
	default:
		i := p.node(fields[0])
		p.order[i-1].tags = append(p.order[i-1].tags, p.tags(fields[1:])...)
	}
}

// stripPlaces takes "(x,y)" out, whose signs are no marks.
func stripPlaces(s string) string {
	var out strings.Builder
	depth := 0
	for _, r := range s {
		switch {
		case r == '(':
			depth++
		case r == ')':
			depth--
		case depth == 0:
			out.WriteRune(r)
		}
	}
	return out.String()
}

func (p *parser) way(name string, fields []string) {
	p.m.tb.Helper()
	if len(fields) == 0 {
		p.m.tb.Fatalf("way %s has no nodes", name)
	}
	id := int64(1001 + len(p.m.ways))
	p.m.ways[name] = id
	tags := p.tags(fields[1:])
	if tags.Get("highway") == "" && tags.Get("route") == "" {
		tags = append(tags, roadnet.Tag{Key: "highway", Value: "residential"})
	}
	var refs []int64
	var one bool
	start, depth := 0, 0
	for i, r := range fields[0] {
		switch {
		case r == '(':
			depth++
		case r == ')':
			depth--
		case depth == 0 && (r == '-' || r == '>'):
			if len(refs) == 0 {
				one = r == '>'
			}
			refs = append(refs, p.node(fields[0][start:i]))
			start = i + 1
		}
	}
	refs = append(refs, p.node(fields[0][start:]))
	road := Road{Name: name, Oneway: one, Tags: tags}
	for _, ref := range refs {
		road.Nodes = append(road.Nodes, p.m.NodeName(ref))
	}
	p.m.roads = append(p.m.roads, road)
	if one {
		tags = append(tags, roadnet.Tag{Key: "oneway", Value: "yes"})
	}
	p.b.AddWay(id, refs, tags)
}

// node returns the id of "A" or "A(x,y)".
func (p *parser) node(text string) int64 {
	p.m.tb.Helper()
	name, place, placed := strings.Cut(text, "(")
	id, ok := p.m.nodes[name]
	if !ok {
		p.order = append(p.order, node{})
		id = int64(len(p.order))
		p.m.nodes[name] = id
	}
	if placed {
		x, y, _ := strings.Cut(strings.TrimSuffix(place, ")"), ",")
		n := &p.order[id-1]
		n.x, n.y, n.known = p.number(x), p.number(y), true
	}
	return id
}

func (p *parser) number(s string) float64 {
	p.m.tb.Helper()
	v, err := strconv.ParseFloat(strings.TrimSpace(s), 64)
	if err != nil {
		p.m.tb.Fatalf("a place of the map: %v", err)
	}
	return v
}

func (p *parser) tags(fields []string) (tags roadnet.Tags) {
	p.m.tb.Helper()
	for _, f := range fields {
		k, v, ok := strings.Cut(f, "=")
		if !ok {
			p.m.tb.Fatalf("%q is no tag", f)
		}
		tags = append(tags, roadnet.Tag{Key: k, Value: strings.ReplaceAll(v, "|", ";")})
	}
	return tags
}

func (p *parser) restriction(fields []string) {
	p.m.tb.Helper()
	if len(fields) < 4 {
		p.m.tb.Fatalf("%v: a restriction has a from, a via and a to", fields)
	}
	names := fields[1:]
	end := len(names)
	for end > 0 && strings.Contains(names[end-1], "=") {
		end--
	}
	tags := append(p.tags(names[end:]), roadnet.Tag{Key: "type", Value: "restriction"}, roadnet.Tag{Key: "restriction", Value: fields[0]})
	names = names[:end]
	rule := Rule{Kind: fields[0], Members: names}
	var members []roadnet.Member
	for i, name := range names {
		role := "via"
		switch i {
		case 0:
			role = "from"
		case len(names) - 1:
			role = "to"
		}
		kind, ref := roadnet.MemberWay, p.m.ways[name]
		if ref == 0 {
			kind, ref = roadnet.MemberNode, p.m.nodes[name]
		}
		if ref == 0 {
			ref, rule.Broken = 999_999, true // a dangling member, on purpose
		}
		members = append(members, roadnet.Member{Kind: kind, Ref: ref, Role: role})
	}
	p.m.rules = append(p.m.rules, rule)
	p.rels++
	p.b.AddRelation(p.rels, members, tags)
}

func (p *parser) nodes() {
	p.m.tb.Helper()
	for i, n := range p.order {
		if !n.known {
			continue // a node that the file lacks, on purpose
		}
		at := p.m.Point(n.x, n.y)
		p.b.AddNode(int64(i+1), int64(math.Round(at.Lon*1e7)), int64(math.Round(at.Lat*1e7)), n.tags)
	}
}

// Point returns the place x metres east and y metres north of the origin.
func (m *Map) Point(x, y float64) roadnet.Point {
	lon := m.Origin.Lon + x/(metresPerDegree*math.Cos(m.Origin.Lat*math.Pi/180))
	if lon > 180 {
		lon -= 360
	} else if lon < -180 {
		lon += 360
	}
	return roadnet.Point{Lon: lon, Lat: m.Origin.Lat + y/metresPerDegree}
}

// XY is the reverse of Point.
func (m *Map) XY(p roadnet.Point) (x, y float64) {
	dlon := p.Lon - m.Origin.Lon
	if dlon > 180 {
		dlon -= 360
	} else if dlon < -180 {
		dlon += 360
	}
	return dlon * metresPerDegree * math.Cos(m.Origin.Lat*math.Pi/180), (p.Lat - m.Origin.Lat) * metresPerDegree
}

// Node returns a node's OSM id by name.
func (m *Map) Node(name string) int64 {
	m.tb.Helper()
	id, ok := m.nodes[name]
	if !ok {
		m.tb.Fatalf("no node %s", name)
	}
	return id
}

// Way returns a way's OSM id by name.
func (m *Map) Way(name string) int64 {
	m.tb.Helper()
	id, ok := m.ways[name]
	if !ok {
		m.tb.Fatalf("no way %s", name)
	}
	return id
}

// NodeName returns the name of an OSM node id.
func (m *Map) NodeName(id int64) string {
	for name, n := range m.nodes {
		if n == id {
			return name
		}
	}
	return "?"
}

// Edge returns the edge that goes from one named node to another.
func (m *Map) Edge(from, to string) roadnet.EdgeIndex {
	m.tb.Helper()
	e, ok := m.FindEdge(from, to)
	if !ok {
		m.tb.Fatalf("no edge from %s to %s", from, to)
	}
	return e
}

// FindEdge is Edge for edges that may not exist.
func (m *Map) FindEdge(from, to string) (roadnet.EdgeIndex, bool) {
	m.tb.Helper()
	for e := range roadnet.EdgeIndex(m.Graph.Edges()) {
		if k := m.Graph.Key(e); k.From == m.Node(from) && k.To == m.Node(to) {
			return e, true
		}
	}
	return roadnet.NoEdge, false
}

// EdgeName writes an edge as "A>B".
func (m *Map) EdgeName(e roadnet.EdgeIndex) string {
	if e == roadnet.NoEdge {
		return "none"
	}
	k := m.Graph.Key(e)
	return m.NodeName(k.From) + ">" + m.NodeName(k.To)
}

// Names writes edges as "A>B B>C".
func (m *Map) Names(edges []roadnet.EdgeIndex) string {
	names := make([]string, len(edges))
	for i, e := range edges {
		names[i] = m.EdgeName(e)
	}
	return strings.Join(names, " ")
}
