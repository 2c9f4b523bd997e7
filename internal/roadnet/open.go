package roadnet

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"unsafe"
)

// Open makes a graph of the bytes of a graph file. The graph's arrays are parts of data, which must stay as it is as long as the graph is
// used: a file mapped into memory will do, read-only. Everything that a question to the graph relies on is checked, so that no file can
// make it panic; whether the content is what the hash says is a matter for Verify.
func Open(data []byte) (*Graph, error) {
	if binary.NativeEndian.Uint16([]byte{1, 0}) != 1 {
		return nil, fmt.Errorf("%w: it needs a little-endian machine", ErrGraphFile)
	}
	empty := Graph{}
	list, err := empty.sections()
	if err != nil {
		return nil, err
	}
	sizes := make([]int, len(list))
	for i, s := range list {
		sizes[i] = s.size
	}
	if len(data) > 0 && uintptr(unsafe.Pointer(unsafe.SliceData(data)))%8 != 0 {
		data = aligned(data)
	}
	t, err := readTable(data, sizes)
	if err != nil {
		return nil, err
	}
	g, err := t.graph()
	if err == nil {
		err = g.valid()
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrGraphFile, err)
	}
	return g, nil
}

// aligned copies bytes to where the arrays can lie.
func aligned(data []byte) []byte {
	words := make([]uint64, (len(data)+7)/8)
	b := unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(words))), len(data))
	copy(b, data)
	return b
}

// cast sees bytes as elements. The sections' alignment is that of the file, and every bit pattern is a value of the types that it is used
// with.
func cast[T int32 | int64 | uint64 | NodeIndex | EdgeIndex | vertex | ref | turnRule | Edge](b []byte) []T {
	var zero T
	n := len(b) / int(unsafe.Sizeof(zero))
	if n == 0 {
		return []T{}
	}
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), n)
}

func (t *fileTable) graph() (*Graph, error) {
	s := t.sections
	var meta fileMeta
	if err := json.Unmarshal(s[0], &meta); err != nil {
		return nil, fmt.Errorf("its description: %w", err)
	}
	if meta.Vehicles == 0 || meta.Vehicles&^AllVehicles() != 0 || len(meta.Pace) != numVehicles {
		return nil, fmt.Errorf("its description is of %d vehicles and %d profiles", meta.Vehicles, len(meta.Pace))
	}
	g := &Graph{
		hash: t.hash, stats: meta.Stats, vehicles: meta.Vehicles, contraflow: meta.Contraflow, profile: meta.Profile, pace: meta.Pace,
		nodeID: cast[int64](s[1]), nodePlace: cast[vertex](s[2]),
		edges: cast[Edge](s[3]), shape: cast[int32](s[4]),
		geomOff: cast[int32](s[5]), geomEdge: cast[EdgeIndex](s[6]), vertices: cast[vertex](s[7]), vertexNode: cast[int64](s[8]),
		outOff: cast[int32](s[9]), out: cast[EdgeIndex](s[10]),
		turns: turns{
			keys: cast[uint64](s[11]), rules: cast[turnRule](s[12]), edgeOf: cast[EdgeIndex](s[13]),
			ruled: cast[uint64](s[14]), stated: cast[uint64](s[15]),
		},
		grid: grid{row0: meta.GridRow, rowOff: cast[int32](s[16]), cols: cast[int32](s[17]), cellOff: cast[int32](s[18]), refs: cast[ref](s[19])},
	}
	for v := range g.strong {
		if g.vehicles.Has(Vehicle(v)) {
			g.strong[v] = cast[int32](s[20+v])
		}
	}
	return g, nil
}

// valid checks what questions rely on.
func (g *Graph) valid() error {
	nodes, edges, geoms := len(g.nodeID), len(g.edges), len(g.geomEdge)
	words := (edges + 63) / 64
	for _, c := range []struct {
		what      string
		got, want int
	}{
		{"node places", len(g.nodePlace), nodes},
		{"shapes", len(g.shape), edges},
		{"geometry offsets", len(g.geomOff), geoms + 1},
		{"vertex nodes", len(g.vertexNode), len(g.vertices)},
		{"out offsets", len(g.outOff), nodes + 1},
		{"out edges", len(g.out), edges},
		{"turn rules", len(g.turns.rules), len(g.turns.keys)},
		{"ruled edges", len(g.turns.ruled), words},
		{"stated edges", len(g.turns.stated), words},
		{"grid cells", len(g.grid.cellOff), len(g.grid.cols) + 1},
	} {
		if c.got != c.want {
			return fmt.Errorf("%d %s, want %d", c.got, c.what, c.want)
		}
	}
	for v, list := range g.strong {
		if list != nil && len(list) != edges {
			return fmt.Errorf("%d strong components of %s", len(list), Vehicle(v))
		}
	}
	if edges+len(g.turns.edgeOf) > math.MaxInt32 {
		return errTooMany
	}
	for _, check := range []func() error{g.validGeometry, g.validEdges, g.validOut, g.validTurns, g.validGrid} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

// rising says whether offsets go from 0 to an end in steps of at least some size.
func rising(off []int32, end, step int) bool {
	if len(off) == 0 || off[0] != 0 || int(off[len(off)-1]) != end {
		return false
	}
	for i := 1; i < len(off); i++ {
		if int64(off[i])-int64(off[i-1]) < int64(step) {
			return false
		}
	}
	return true
}

func (v vertex) onGlobe() bool {
	return v.lon >= -halfTurnE7 && v.lon <= halfTurnE7 && v.lat >= -halfTurnE7/2 && v.lat <= halfTurnE7/2
}

func (g *Graph) validGeometry() error {
	if !rising(g.geomOff, len(g.vertices), 2) {
		return fmt.Errorf("geometries are not one after the other")
	}
	for i := range g.geomEdge {
		along := int32(0)
		shape := g.vertices[g.geomOff[i]:g.geomOff[i+1]]
		for j, v := range shape {
			if !v.onGlobe() || v.along < along || j == 0 && v.along != 0 {
				return fmt.Errorf("geometry %d is impossible at its vertex %d", i, j)
			}
			along = v.along
		}
		if along < 1 || along > 1<<29 {
			return fmt.Errorf("geometry %d is %d cm long", i, along)
		}
		if e := g.geomEdge[i]; e < 0 || int(e) >= len(g.edges) || int(g.shape[e]>>1) != i {
			return fmt.Errorf("geometry %d belongs to edge %d", i, e)
		}
	}
	for i, v := range g.nodePlace {
		if !v.onGlobe() {
			return fmt.Errorf("node %d is off the globe", i)
		}
	}
	return nil
}

func (g *Graph) validEdges() error {
	for i := range g.edges {
		e := &g.edges[i]
		geom := int(g.shape[i] >> 1)
		if geom < 0 || geom >= len(g.geomEdge) || e.From < 0 || int(e.From) >= len(g.nodeID) || e.To < 0 || int(e.To) >= len(g.nodeID) {
			return fmt.Errorf("edge %d leads nowhere", i)
		}
		if e.LengthCM != g.vertices[g.geomOff[geom+1]-1].along {
			return fmt.Errorf("edge %d is not as long as its geometry", i)
		}
		if e.Twin == NoEdge {
			continue
		}
		if e.Twin < 0 || int(e.Twin) >= len(g.edges) || g.edges[e.Twin].Twin != EdgeIndex(i) || g.shape[e.Twin]^1 != g.shape[i] ||
			g.edges[e.Twin].From != e.To || g.edges[e.Twin].To != e.From {
			return fmt.Errorf("edge %d is no twin of its twin", i)
		}
	}
	return nil
}

func (g *Graph) validOut() error {
	if !rising(g.outOff, len(g.out), 0) {
		return fmt.Errorf("the lists of edges that leave nodes are not one after the other")
	}
	for n := range g.nodeID {
		last := NoEdge
		for _, e := range g.Out(NodeIndex(n)) {
			if e <= last || int(e) >= len(g.edges) || g.edges[e].From != NodeIndex(n) {
				return fmt.Errorf("edge %d does not leave node %d", e, n)
			}
			last = e
		}
	}
	return nil
}

func (g *Graph) validTurns() error {
	t := &g.turns
	ruled, stated := make([]uint64, len(t.ruled)), make([]uint64, len(t.stated))
	last := EdgeIndex(0)
	for i, e := range t.edgeOf {
		if e < last || int(e) >= len(g.edges) {
			return fmt.Errorf("state %d is on edge %d", i, e)
		}
		last = e
		stated[e>>6] |= 1 << (e & 63)
	}
	for i, k := range t.keys {
		from, to, rule := k>>32, k&math.MaxUint32, t.rules[i]
		if i > 0 && t.keys[i-1] >= k || from >= uint64(g.labels()) || to >= uint64(len(g.edges)) || rule.next < 0 || int(rule.next) >= g.labels() {
			return fmt.Errorf("turn rule %d is out of place", i)
		}
		if g.edges[g.labelEdge(EdgeIndex(from))].To != g.edges[to].From || g.labelEdge(rule.next) != EdgeIndex(to) {
			return fmt.Errorf("turn rule %d is about edges that do not meet", i)
		}
		if from < uint64(len(g.edges)) {
			ruled[from>>6] |= 1 << (from & 63)
		}
	}
	if !slices.Equal(ruled, t.ruled) || !slices.Equal(stated, t.stated) {
		return fmt.Errorf("the sets of edges with turn rules are not those of the rules")
	}
	return nil
}

func (g *Graph) validGrid() error {
	q := &g.grid
	if !rising(q.rowOff, len(q.cols), 0) || !rising(q.cellOff, len(q.refs), 0) || q.row0 < 0 {
		return fmt.Errorf("the index is not in order")
	}
	for i, r := range q.refs {
		if r.geom < 0 || int(r.geom) >= len(g.geomEdge) || r.vertex < g.geomOff[r.geom] || r.vertex >= g.geomOff[r.geom+1]-1 {
			return fmt.Errorf("entry %d of the index is no segment", i)
		}
	}
	return nil
}

// Verify computes anew what follows from the graph's content, the hash first, and compares: it finds what Open does not look for.
func (g *Graph) Verify() error {
	if hashGraph(g) != g.hash {
		return fmt.Errorf("%w: its content has another hash than it says", ErrGraphFile)
	}
	fresh, err := buildGrid(g.geomOff, g.vertices)
	if err != nil {
		return err
	}
	q := &g.grid
	if fresh.row0 != q.row0 || !slices.Equal(fresh.rowOff, q.rowOff) || !slices.Equal(fresh.cols, q.cols) || !slices.Equal(fresh.cellOff, q.cellOff) || !slices.Equal(fresh.refs, q.refs) {
		return fmt.Errorf("%w: the index is not that of its geometry", ErrGraphFile)
	}
	again := *g
	again.edges, again.strong = slices.Clone(g.edges), [numVehicles][]int32{}
	setComponents(&again)
	setStrong(&again)
	for i := range g.edges {
		if again.edges[i].Component != g.edges[i].Component {
			return fmt.Errorf("%w: the components are not those of its edges", ErrGraphFile)
		}
	}
	for v := range g.strong {
		if !slices.Equal(again.strong[v], g.strong[v]) {
			return fmt.Errorf("%w: the strong components are not those of its edges", ErrGraphFile)
		}
	}
	for i := range g.geomEdge {
		along, shape := 0.0, g.vertices[g.geomOff[i]:g.geomOff[i+1]]
		for j := 1; j < len(shape); j++ {
			along += between(shape[j-1], shape[j])
		}
		if want := max(int32(math.Round(along*100)), 1); shape[len(shape)-1].along != want {
			return fmt.Errorf("%w: geometry %d is %d cm long, not %d", ErrGraphFile, i, want, shape[len(shape)-1].along)
		}
	}
	return nil
}
