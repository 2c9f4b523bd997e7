package roadnet

import (
	"cmp"
	"slices"
)

// setStrong finds, for each class of vehicles, the strongly connected pieces: two edges are in one piece when legal paths lead from the
// one to the other and back, without a banned turn and without turning back but in a dead end; private roads count. A dead end of
// bans alone, which no weak component shows, is a piece of its own (M35).
func setStrong(g *Graph) {
	for v := range Vehicle(numVehicles) {
		if g.vehicles.Has(v) {
			t := tarjan{g: g, v: v}
			g.strong[v] = t.pieces()
		}
	}
}

// StrongComponent is the strongly connected piece of an edge for a class of vehicles; 0 is the biggest, -1 says that the class may not
// use the edge.
func (g *Graph) StrongComponent(e EdgeIndex, v Vehicle) int32 {
	if v >= numVehicles || g.strong[v] == nil {
		return -1
	}
	return g.strong[v][e]
}

// tarjan is Tarjan's algorithm over labels, without recursion.
type tarjan struct {
	g     *Graph
	v     Vehicle
	order []int32 // of discovery, from 1; 0 not yet
	low   []int32
	piece []int32 // -1 while on the stack or not yet seen
	next  int32
	count []int32 // labels of each piece
	stack []EdgeIndex
	calls []call
}

type call struct {
	label EdgeIndex
	out   int32 // the next one of the edges that leave
}

func (t *tarjan) pieces() []int32 {
	n := t.g.labels()
	t.order, t.low, t.piece = make([]int32, n), make([]int32, n), make([]int32, n)
	for i := range t.piece {
		t.piece[i] = -1
	}
	for e := range t.g.edges {
		if t.order[e] == 0 && t.g.edges[e].Access.Has(t.v) {
			t.visit(EdgeIndex(e))
		}
	}
	return t.rank()
}

func (t *tarjan) enter(x EdgeIndex) {
	t.next++
	t.order[x], t.low[x] = t.next, t.next
	t.stack = append(t.stack, x)
	t.calls = append(t.calls, call{label: x})
}

func (t *tarjan) visit(root EdgeIndex) {
	t.enter(root)
	for len(t.calls) > 0 {
		c := &t.calls[len(t.calls)-1]
		x := c.label
		out := t.g.Out(t.g.edges[t.g.labelEdge(x)].To)
		if int(c.out) < len(out) {
			next := out[c.out]
			c.out++
			if y, ok := t.g.legal(x, next, t.v); ok {
				switch {
				case t.order[y] == 0:
					t.enter(y)
				case t.piece[y] < 0:
					t.low[x] = min(t.low[x], t.order[y])
				}
			}
			continue
		}
		t.calls = t.calls[:len(t.calls)-1]
		if len(t.calls) > 0 {
			up := t.calls[len(t.calls)-1].label
			t.low[up] = min(t.low[up], t.low[x])
		}
		if t.low[x] == t.order[x] {
			t.close(x)
		}
	}
}

// close takes a piece off the stack.
func (t *tarjan) close(root EdgeIndex) {
	id := int32(len(t.count))
	size := int32(0)
	for {
		x := t.stack[len(t.stack)-1]
		t.stack = t.stack[:len(t.stack)-1]
		t.piece[x] = id
		size++
		if x == root {
			break
		}
	}
	t.count = append(t.count, size)
}

// rank numbers the pieces by size; an edge with states belongs to the biggest of its labels' pieces.
func (t *tarjan) rank() []int32 {
	ranks := rankBySize(t.count, t.firstEdges())
	edges := len(t.g.edges)
	for x := range t.piece {
		if t.piece[x] >= 0 {
			t.piece[x] = ranks[t.piece[x]]
		}
	}
	for x := edges; x < len(t.piece); x++ {
		if e := t.g.labelEdge(EdgeIndex(x)); t.piece[x] >= 0 {
			t.piece[e] = min(t.piece[e], t.piece[x])
		}
	}
	return t.piece[:edges:edges]
}

// firstEdges is the lowest label of each piece.
func (t *tarjan) firstEdges() []int32 {
	first := make([]int32, len(t.count))
	for x, p := range slices.Backward(t.piece) {
		if p >= 0 {
			first[p] = int32(x)
		}
	}
	return first
}

// legal says whether a driver may go on from a label to an edge, and where that leads.
func (g *Graph) legal(x, next EdgeIndex, v Vehicle) (to EdgeIndex, ok bool) {
	if !g.edges[next].Access.Has(v) {
		return 0, false
	}
	s, turn := g.Follow(State(x), next, v)
	switch turn {
	case TurnBanned, TurnClosed:
		return 0, false
	case TurnU:
		e := g.labelEdge(x)
		for _, o := range g.Out(g.edges[e].To) {
			if o == next || !g.edges[o].Access.Has(v) {
				continue
			}
			if _, other := g.Follow(State(x), o, v); other != TurnClosed {
				return 0, false
			}
		}
	case TurnFree:
	}
	return EdgeIndex(s), true
}

// sortKey orders pieces: the biggest first, at equal size the one with the lowest member.
func sortKey(aSize, bSize, aFirst, bFirst int32) int {
	return cmp.Or(cmp.Compare(bSize, aSize), cmp.Compare(aFirst, bFirst))
}
