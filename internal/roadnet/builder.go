package roadnet

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
)

// ErrOrder says that a way or a relation was added after the first node.
var ErrOrder = errors.New("ways and relations come before nodes")

// Box is a part of the globe in degrees. West greater than East: over the antimeridian.
type Box struct{ West, South, East, North float64 }

// MemberKind is the kind of OSM object that a relation names.
type MemberKind uint8

// The kinds of members.
const (
	MemberNode MemberKind = iota + 1
	MemberWay
	MemberRelation
)

// Member is one member of an OSM relation.
type Member struct {
	Kind MemberKind
	Ref  int64
	Role string
}

// Builder makes a graph of OSM objects: ways and relations first, then the nodes that they need, then Build.
// The graph depends on the objects alone, not on their order.
type Builder struct {
	box   *Box
	ways  []rawWay
	refs  []int64 // node ids of all ways
	turns []rawTurn
	stats ImportStats
	rules rules
	note  func(Finding)

	// From the first node on.
	barriers map[int32]obstacle // of needed nodes that bear one
	needed   []int64            // ids, ascending
	place    []vertex
	state    []nodeState
	known    int // of needed
	lastNode int
	err      error
}

type rawWay struct {
	id         int64
	first, end int
	attr       wayAttr
}

type nodeState uint8

const (
	nodeKnown nodeState = 1 << iota
	nodeGate
	nodeClosed   // to every class of the graph
	nodeUsed     // by one way
	nodeJunction // by more, or an end
)

// obstacle says to which classes a node's barrier is closed, and to which passing it costs.
type obstacle struct{ closed, gate Vehicles }

// NewBuilder begins a graph for cars. With a box, only ways of which a segment may touch it are taken, and those whole.
func NewBuilder(box *Box) *Builder { return NewBuilderFor(ImportOptions{Box: box}) }

// NewBuilderFor begins a graph for the vehicles, and by the profiles, of the options.
func NewBuilderFor(opt ImportOptions) *Builder {
	b := &Builder{
		box: opt.Box, note: opt.Note, barriers: map[int32]obstacle{},
		rules: rules{set: opt.Vehicles & AllVehicles(), profiles: opt.Profiles, contraflow: opt.Contraflow},
	}
	if b.rules.set == 0 {
		b.rules.set = SetOf(Car)
	}
	if b.rules.profiles == nil {
		b.rules.profiles = DefaultProfiles()
	}
	return b
}

// found reports what is odd about an object.
func (b *Builder) found(kind MemberKind, id int64, text string) {
	if b.note != nil {
		b.note(Finding{Kind: kind, ID: id, Text: text})
	}
}

// AddWay takes a way if one of the classes of vehicles may use it. The slices are copied.
func (b *Builder) AddWay(id int64, refs []int64, tags Tags) {
	if b.needed != nil {
		b.err = fmt.Errorf("way %d: %w", id, ErrOrder)
		return
	}
	attr, ok := b.rules.readWay(tags)
	if !ok {
		return
	}
	first := len(b.refs)
	b.refs = append(b.refs, refs...)
	b.ways = append(b.ways, rawWay{id: id, first: first, end: len(b.refs), attr: attr})
}

// Needs says whether a node is part of a way that was taken. The first call closes the list of ways.
func (b *Builder) Needs(id int64) bool { return b.find(id) >= 0 }

// AddNode gives a node's place in 1e-7 degrees, and its tags. Nodes that no way needs are ignored, and so are repeated ones.
func (b *Builder) AddNode(id, lonE7, latE7 int64, tags Tags) {
	i := b.find(id)
	if i < 0 || b.state[i]&nodeKnown != 0 {
		return
	}
	if lonE7 < -halfTurnE7 || lonE7 > halfTurnE7 || latE7 < -halfTurnE7/2 || latE7 > halfTurnE7/2 {
		b.stats.BadNodes++
		b.found(MemberNode, id, "off the globe: taken as missing")
		return
	}
	b.place[i] = vertex{lon: int32(lonE7), lat: int32(latE7)}
	b.state[i] |= nodeKnown
	b.known++
	if len(tags) > 0 {
		b.addBarrier(int32(i), tags)
	}
}

func (b *Builder) addBarrier(i int32, tags Tags) {
	var o obstacle
	for v := range Vehicle(numVehicles) {
		if !b.rules.set.Has(v) {
			continue
		}
		switch b.rules.profiles.of[v].readBarrier(tags) {
		case barrierPrivate:
			o.gate |= v.bit()
		case barrierClosed:
			o.closed |= v.bit()
		case barrierOpen:
		}
	}
	if o.gate != 0 {
		b.state[i] |= nodeGate
		b.stats.GatedNodes++
	}
	switch {
	case o.closed == b.rules.set:
		b.state[i] |= nodeClosed
		b.stats.ClosedNodes++
	case o.closed != 0: // an edge ends there, and turn rules keep some classes from going on
		b.state[i] |= nodeJunction
		b.stats.ClosedNodes++
	}
	if o != (obstacle{}) {
		b.barriers[i] = o
	}
}

// complete says that every needed node is known.
func (b *Builder) complete() bool { return b.needed != nil && b.known == len(b.needed) }

// find returns a node's index in needed, or -1. Files hold nodes in rising order, so the place after the last one is tried first.
func (b *Builder) find(id int64) int {
	if b.needed == nil {
		b.closeWays()
	}
	if i := b.lastNode + 1; i < len(b.needed) && b.needed[i-1] < id && id <= b.needed[i] {
		if b.needed[i] != id {
			return -1
		}
		b.lastNode = i
		return i
	}
	i, ok := slices.BinarySearch(b.needed, id)
	if !ok {
		return -1
	}
	b.lastNode = i
	return i
}

func (b *Builder) closeWays() {
	slices.SortStableFunc(b.ways, func(x, y rawWay) int { return cmp.Compare(x.id, y.id) })
	kept := b.ways[:0]
	for i, w := range b.ways {
		if i > 0 && w.id == kept[len(kept)-1].id {
			b.stats.DuplicateWays++
			b.found(MemberWay, w.id, "comes more than once: the first one counts")
			continue
		}
		kept = append(kept, w)
	}
	b.ways = kept
	ids := make([]int64, len(b.refs), len(b.refs)+1)
	copy(ids, b.refs)
	slices.Sort(ids)
	b.needed = slices.Clip(slices.Compact(ids))
	b.place = make([]vertex, len(b.needed))
	b.state = make([]nodeState, len(b.needed))
}

// Build makes the graph. The builder is spent.
func (b *Builder) Build() (*Graph, error) {
	if b.needed == nil {
		b.closeWays()
	}
	if b.err != nil {
		return nil, b.err
	}
	l := newLayout(b)
	l.clean()
	l.markJunctions()
	l.cut()
	if err := l.order(); err != nil {
		return nil, err
	}
	g := l.graph()
	b.applyTurns(g, l)
	// What the graph was made of is not needed any more, and the rest takes memory of its own.
	*l = layout{}
	b.ways, b.refs, b.turns, b.needed, b.place, b.state, b.barriers = nil, nil, nil, nil, nil, nil, nil
	setComponents(g)
	setStrong(g)
	var err error
	if g.grid, err = buildGrid(g.geomOff, g.vertices); err != nil {
		return nil, err
	}
	g.stats = b.stats
	g.hash = hashGraph(g)
	return g, nil
}

// touches says whether a segment's box meets the box asked for.
func (b *Builder) touches(p, q vertex) bool {
	if b.box == nil {
		return true
	}
	if max(p.point().Lat, q.point().Lat) < b.box.South || min(p.point().Lat, q.point().Lat) > b.box.North {
		return false
	}
	width := b.box.East - b.box.West
	if width < 360 {
		width = wrapDegPositive(width)
	}
	west := p.point().Lon
	run := wrapDeg(q.point().Lon - west)
	if run < 0 {
		west, run = west+run, -run
	}
	// The segment covers [west, west+run]; the box [West, West+width], both on a circle.
	return wrapDegPositive(west-b.box.West) <= width || wrapDegPositive(b.box.West-west) <= run
}

func wrapDegPositive(d float64) float64 {
	d = math.Mod(d, 360)
	if d < 0 {
		d += 360
	}
	return d
}
