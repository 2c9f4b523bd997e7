package roadnet

import (
	"cmp"
	"errors"
	"math"
	"slices"
	"strconv"
)

// maxSegmentM bounds the distance of two neighbouring nodes of a way: ferries have long segments, but not longer ones.
const maxSegmentM = 400_000

// maxEdgeM is where a stretch is cut although there is no junction: an edge, which may be longer by one segment, then stays below 1<<29 cm,
// and a search's limit and one more edge stay within an int32.
const maxEdgeM = 4_000_000

var errTooMany = errors.New("more than 1,000,000,000 directed edges or points")

// layout turns cleaned ways into stretches between junctions, and these into the graph's arrays.
type layout struct {
	b     *Builder
	nodes []int32 // indices in b.needed; the pieces and the stretches are parts of it
	piece []stretch
	cuts  []stretch

	canon  map[int32]int32 // of nodes at 180 degrees: the one node that stands for the place
	nodeOf []NodeIndex     // of each needed node, -1 where it is no shared junction
}

// stretch is a run of a way's nodes.
type stretch struct {
	way        int32 // index in b.ways
	first, end int32 // in layout.nodes
	from, to   NodeIndex
	private    Vehicles // through a gate
}

func newLayout(b *Builder) *layout {
	l := &layout{b: b, nodes: make([]int32, 0, len(b.refs)), canon: map[int32]int32{}}
	at := map[vertex]int32{}
	for i, v := range b.place {
		if b.state[i]&nodeKnown == 0 || v.lon != halfTurnE7 && v.lon != -halfTurnE7 {
			continue
		}
		v.lon = halfTurnE7
		if first, ok := at[v]; ok {
			l.canon[int32(i)] = first
		} else {
			at[v] = int32(i)
		}
	}
	return l
}

// junction is the node that stands for a node at the antimeridian, and every other node itself.
func (l *layout) junction(i int32) int32 {
	if c, ok := l.canon[i]; ok {
		return c
	}
	return i
}

// clean makes pieces: ways without repeated and missing nodes, cut at closed nodes and impossible segments.
func (l *layout) clean() {
	for w := range l.b.ways {
		before, mark := len(l.piece), len(l.nodes)
		inside := l.cleanWay(int32(w))
		switch {
		case len(l.piece) == before:
			l.b.stats.ShortWays++
			l.b.found(MemberWay, l.b.ways[w].id, "fewer than two usable nodes")
		case !inside:
			l.piece, l.nodes = l.piece[:before], l.nodes[:mark]
			l.b.stats.OutsideWays++
		default:
			l.b.stats.Ways++
		}
	}
}

func (l *layout) cleanWay(w int32) (inside bool) {
	b := l.b
	mark := len(l.nodes)
	start := mark
	flush := func() {
		if len(l.nodes)-start >= 2 {
			l.piece = append(l.piece, stretch{way: w, first: int32(start), end: int32(len(l.nodes))})
		} else {
			l.nodes = l.nodes[:start]
		}
		start = len(l.nodes)
	}
	for _, id := range b.refs[b.ways[w].first:b.ways[w].end] {
		found, _ := slices.BinarySearch(b.needed, id)
		i := int32(found)
		if b.state[i]&nodeKnown == 0 {
			b.stats.MissingNodes++
			b.found(MemberWay, b.ways[w].id, "node "+strconv.FormatInt(id, 10)+" is missing: the way is cut there")
			flush()
			continue
		}
		if n := len(l.nodes); n > start {
			last := l.nodes[n-1]
			if last == i {
				continue
			}
			if between(b.place[last], b.place[i]) > maxSegmentM {
				b.stats.BadSegments++
				b.found(MemberWay, b.ways[w].id, "an impossibly long segment before node "+strconv.FormatInt(id, 10)+": the way is cut there")
				flush()
			} else {
				inside = inside || b.touches(b.place[last], b.place[i])
			}
		}
		l.nodes = append(l.nodes, i)
		if b.state[i]&nodeClosed != 0 && len(l.nodes)-start >= 2 {
			flush()
			l.nodes = append(l.nodes, i)
		}
	}
	flush()
	l.timetable(w, mark)
	return inside
}

// timetable gives a ferry whose duration is known the speed that follows from it and the length of its nodes from mark on.
func (l *layout) timetable(w int32, mark int) {
	attr := &l.b.ways[w].attr
	if attr.seconds <= 0 {
		return
	}
	metres := 0.0
	for i := mark + 1; i < len(l.nodes); i++ {
		metres += between(l.b.place[l.nodes[i-1]], l.b.place[l.nodes[i]])
	}
	kmh := uint8(min(max(math.Round(metres*3.6/float64(attr.seconds)), 1), topSpeedKMH))
	attr.speed = [2]uint8{kmh, kmh}
	attr.flags |= FlagPosted
}

// markJunctions finds the nodes where an edge must end: ends of pieces, and nodes that come more than once.
func (l *layout) markJunctions() {
	for _, p := range l.piece {
		for k := p.first; k < p.end; k++ {
			s := &l.b.state[l.junction(l.nodes[k])]
			if *s&nodeUsed != 0 || k == p.first || k == p.end-1 {
				*s |= nodeJunction
			}
			*s |= nodeUsed
		}
	}
}

func (l *layout) isJunction(i int32) bool { return l.b.state[l.junction(i)]&nodeJunction != 0 }

// cut makes stretches of the pieces, way by way. Pieces come in the order of their ways' ids.
func (l *layout) cut() {
	for i := 0; i < len(l.piece); {
		j := i
		names := map[[2]int32]int{} // of a stretch's ends: its place in l.cuts
		for ; j < len(l.piece) && l.piece[j].way == l.piece[i].way; j++ {
			l.cutPiece(l.piece[j], names)
		}
		i = j
	}
}

func (l *layout) cutPiece(p stretch, names map[[2]int32]int) {
	first, length := p.first, 0.0
	for k := p.first + 1; k < p.end; k++ {
		length += between(l.b.place[l.nodes[k-1]], l.b.place[l.nodes[k]])
		if k == p.end-1 || length > maxEdgeM || l.isJunction(l.nodes[k]) {
			l.add(stretch{way: p.way, first: first, end: k + 1}, names)
			first, length = k, 0
		}
	}
}

// add takes a stretch whose name (its way and its two ends) no other one has. Two stretches of a way between the same junctions, such as
// the halves of a ring, are told apart by a further junction within one; a ring with one junction gets two.
func (l *layout) add(s stretch, names map[[2]int32]int) {
	if s.end-s.first < 2 {
		return
	}
	name := l.name(s)
	other, taken := names[name]
	inner := s.end - s.first - 2
	switch {
	case name[0] == name[1] && inner > 0: // a ring
		third := s.first + 1 + inner/2
		l.split(s, third, names)
	case !taken:
		names[name] = len(l.cuts)
		l.cuts = append(l.cuts, s)
	case inner > 0:
		l.split(s, s.first+(inner+1)/2, names)
	default:
		o := l.cuts[other]
		if n := o.end - o.first - 2; n > 0 {
			mid := o.first + (n+1)/2
			l.b.state[l.junction(l.nodes[mid])] |= nodeJunction
			l.cuts[other] = stretch{way: o.way, first: o.first, end: mid + 1}
			delete(names, name)
			names[l.name(l.cuts[other])] = other
			l.add(stretch{way: o.way, first: mid, end: o.end}, names)
			l.add(s, names)
			return
		}
		l.b.stats.Repeated++
		l.b.found(MemberWay, l.b.ways[s.way].id, "goes over the same stretch twice")
	}
}

func (l *layout) split(s stretch, at int32, names map[[2]int32]int) {
	l.b.state[l.junction(l.nodes[at])] |= nodeJunction
	l.add(stretch{way: s.way, first: s.first, end: at + 1}, names)
	l.add(stretch{way: s.way, first: at, end: s.end}, names)
}

// name is what makes an edge's key unique within its way. On a two-way road the ends' order means nothing.
func (l *layout) name(s stretch) [2]int32 {
	from, to := l.nodes[s.first], l.nodes[s.end-1]
	if l.b.ways[s.way].attr.dir == both && from > to {
		from, to = to, from
	}
	return [2]int32{from, to}
}

// order numbers nodes and sorts stretches by place, so that what is near is near in memory, and nothing depends on the file's order.
func (l *layout) order() error {
	if len(l.nodes) > 500_000_000 || len(l.cuts) > 500_000_000 {
		return errTooMany
	}
	b := l.b
	key := func(s stretch) uint64 { v := b.place[l.nodes[s.first]]; return morton(v.lon, v.lat) }
	slices.SortFunc(l.cuts, func(x, y stretch) int {
		return cmp.Or(cmp.Compare(key(x), key(y)), cmp.Compare(b.ways[x.way].id, b.ways[y.way].id), cmp.Compare(x.first, y.first))
	})
	l.nodeOf = make([]NodeIndex, len(b.needed))
	for i := range l.nodeOf {
		l.nodeOf[i] = -1
	}
	return nil
}

// graph makes the arrays of edges, geometry and nodes.
func (l *layout) graph() *Graph {
	r := &l.b.rules
	g := &Graph{vehicles: r.set, contraflow: r.contraflow, profile: r.profiles.digest(r.set), pace: make([]pace, numVehicles)}
	for v := range g.pace {
		if r.set.Has(Vehicle(v)) {
			g.pace[v] = r.profiles.of[v].pace()
		}
	}
	for i := range l.cuts {
		s := &l.cuts[i]
		s.from, s.to = l.node(g, l.nodes[s.first]), l.node(g, l.nodes[s.end-1])
	}
	l.markPrivate(len(g.nodeID))
	l.reserve(g)
	for i := range l.cuts {
		l.addEdges(g, &l.cuts[i])
	}
	g.setOut()
	l.b.stats.Nodes = len(g.vertices)
	return g
}

// reserve makes room for what the stretches will need: arrays that grow by copying are, for a country, most of an import's memory.
func (l *layout) reserve(g *Graph) {
	edges, vertices := 0, 0
	for i := range l.cuts {
		s := &l.cuts[i]
		edges++
		if l.b.ways[s.way].attr.dir == both {
			edges++
		}
		vertices += int(s.end - s.first)
	}
	g.edges, g.shape = make([]Edge, 0, edges), make([]int32, 0, edges)
	g.geomOff, g.geomEdge = append(make([]int32, 0, len(l.cuts)+1), 0), make([]EdgeIndex, 0, len(l.cuts))
	g.vertices, g.vertexNode = make([]vertex, 0, vertices), make([]int64, 0, vertices)
}

// node returns the junction for a stretch's end: a shared one, or one of its own where a barrier closes the node.
func (l *layout) node(g *Graph, i int32) NodeIndex {
	c := l.junction(i)
	closed := l.b.state[c]&nodeClosed != 0
	if !closed && l.nodeOf[c] >= 0 {
		return l.nodeOf[c]
	}
	n := NodeIndex(len(g.nodeID))
	g.nodeID = append(g.nodeID, l.b.needed[c])
	g.nodePlace = append(g.nodePlace, l.b.place[c])
	if !closed {
		l.nodeOf[c] = n
	}
	return n
}

// markPrivate marks the stretches with a gate in them or at an end. A gate at a crossing belongs to the small roads there: mappers often
// set the gate of a yard on the node where the yard's drive leaves the street.
func (l *layout) markPrivate(nodes int) {
	degree := make([]int32, nodes)
	for _, s := range l.cuts {
		degree[s.from]++
		degree[s.to]++
	}
	for i := range l.cuts {
		s := &l.cuts[i]
		small := l.b.ways[s.way].attr.class.small()
		for k := s.first; k < s.end; k++ {
			node := l.junction(l.nodes[k])
			if l.b.state[node]&nodeGate == 0 {
				continue
			}
			crossing := k == s.first && degree[s.from] > 2 || k == s.end-1 && degree[s.to] > 2
			if small || !crossing {
				s.private |= l.b.barriers[node].gate
			}
		}
	}
}

// addEdges appends a stretch's geometry and its one or two edges.
func (l *layout) addEdges(g *Graph, s *stretch) {
	way := &l.b.ways[s.way]
	along, prev := 0.0, vertex{}
	for k := s.first; k < s.end; k++ {
		v := l.b.place[l.nodes[k]]
		if k > s.first {
			along += between(prev, v)
		}
		prev = v
		v.along = int32(math.Round(along * 100))
		if k == s.end-1 {
			v.along = max(v.along, 1)
		}
		g.vertices = append(g.vertices, v)
		g.vertexNode = append(g.vertexNode, l.b.needed[l.nodes[k]])
	}
	length := g.vertices[len(g.vertices)-1].along
	geom := int32(len(g.geomOff) - 1)
	g.geomOff = append(g.geomOff, int32(len(g.vertices)))
	first := EdgeIndex(len(g.edges))
	g.geomEdge = append(g.geomEdge, first)
	for d, bit := range [2]direction{forward, backward} {
		if way.attr.dir&bit == 0 {
			continue
		}
		e := way.attr.edge(d, s.private)
		e.Way, e.LengthCM = way.id, length
		e.From, e.To = s.from, s.to
		if bit == backward {
			e.From, e.To = s.to, s.from
		}
		g.edges = append(g.edges, e)
		g.shape = append(g.shape, geom<<1|int32(d))
	}
	if way.attr.dir == both {
		g.edges[first].Twin, g.edges[first+1].Twin = first+1, first
	}
}

// edge makes the edge of one direction; gates are the classes that pay for a gate on it.
func (a *wayAttr) edge(d int, gates Vehicles) Edge {
	e := Edge{Twin: NoEdge, Layer: a.layer, Class: a.class, Flags: a.flags, SpeedKMH: a.speed[d], Lanes: a.lanes[d], Access: a.access[d], Contra: a.contra[d]}
	e.Private = a.private[d] | gates&(e.Access|e.Contra)
	if e.Private.Has(a.lead) {
		e.Flags |= FlagPrivate
	}
	if !e.Access.Has(a.lead) {
		e.Flags |= FlagContraflow
	}
	return e
}

// setOut lists the edges that leave each node.
func (g *Graph) setOut() {
	g.outOff = make([]int32, len(g.nodeID)+1)
	for i := range g.edges {
		g.outOff[g.edges[i].From+1]++
	}
	for n := range g.nodeID {
		g.outOff[n+1] += g.outOff[n]
	}
	next := slices.Clone(g.outOff)
	g.out = make([]EdgeIndex, len(g.edges))
	for i := range g.edges {
		from := g.edges[i].From
		g.out[next[from]] = EdgeIndex(i)
		next[from]++
	}
}
