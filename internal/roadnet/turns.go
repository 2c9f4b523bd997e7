package roadnet

import (
	"slices"
)

// turns is what the turn restrictions make of the graph: an automaton over its edges. A label is an edge, or a state: an edge together
// with the way there, as far as a restriction over ways has to remember it. States are numbered after the edges.
type turns struct {
	keys   []uint64    // label<<32 | next edge, ascending
	rules  []turnRule  // of each key
	edgeOf []EdgeIndex // of each state: its edge, ascending
	ruled  []uint64    // bit set of the edges that keys holds as labels
	stated []uint64    // bit set of the edges that have states
}

// turnRule is what becomes of going from a label to an edge.
type turnRule struct {
	next EdgeIndex // the label that this leads to: the edge, or one of its states
	ban  Vehicles  // that may not, by a restriction: costed in matching
	wall Vehicles  // that cannot, for a barrier
}

// State is a place in the network together with what turn restrictions over several ways remember of the way there. Every EdgeIndex is
// a State: the edge with nothing to remember. States mean something only together with the graph's hash.
type State int32

// EdgeOf returns the edge of a state.
func (g *Graph) EdgeOf(s State) EdgeIndex { return g.labelEdge(EdgeIndex(s)) }

func (g *Graph) labelEdge(x EdgeIndex) EdgeIndex {
	if int(x) < len(g.edges) {
		return x
	}
	return g.turns.edgeOf[int(x)-len(g.edges)]
}

// labels is the number of edges and states.
func (g *Graph) labels() int { return len(g.edges) + len(g.turns.edgeOf) }

// statesOf returns the first state of an edge and the one after its last.
func (g *Graph) statesOf(e EdgeIndex) (from, to EdgeIndex) {
	if len(g.turns.edgeOf) == 0 || g.turns.stated[e>>6]&(1<<(e&63)) == 0 {
		return 0, 0
	}
	lo, _ := slices.BinarySearch(g.turns.edgeOf, e)
	hi := lo
	for hi < len(g.turns.edgeOf) && g.turns.edgeOf[hi] == e {
		hi++
	}
	return EdgeIndex(len(g.edges) + lo), EdgeIndex(len(g.edges) + hi)
}

// IsOn says whether a state is one of an edge; any number may be asked about.
func (g *Graph) IsOn(s State, e EdgeIndex) bool {
	return s >= 0 && int(s) < g.labels() && g.EdgeOf(s) == e
}

// rule returns what the restrictions say of going from a label to an edge; not ok: nothing.
func (g *Graph) rule(x, next EdgeIndex) (r turnRule, ok bool) {
	if int(x) < len(g.edges) && g.turns.ruled[x>>6]&(1<<(x&63)) == 0 {
		return turnRule{}, false
	}
	i, ok := slices.BinarySearch(g.turns.keys, turnKey(x, next))
	if !ok {
		return turnRule{}, false
	}
	return g.turns.rules[i], true
}

func turnKey(from, to EdgeIndex) uint64 { return uint64(from)<<32 | uint64(to) }

// Turn says what the turn rules make of a car's going from one edge to the next, whatever came before; to must leave from's end node. A
// banned turn back is TurnBanned.
func (g *Graph) Turn(from, to EdgeIndex) Turn {
	_, t := g.Follow(State(from), to, Car)
	return t
}

// Follow goes on from a state to an edge that leaves its end: it returns where that leads, and what the turn rules make of it for a class
// of vehicles. A path that is followed edge by edge is judged as a whole, restrictions over several ways included.
func (g *Graph) Follow(s State, to EdgeIndex, v Vehicle) (State, Turn) {
	r, ok := g.rule(EdgeIndex(s), to)
	if !ok {
		r.next = to
	}
	switch {
	case r.wall.Has(v):
		return State(r.next), TurnClosed
	case r.ban.Has(v):
		return State(r.next), TurnBanned
	case g.edges[g.EdgeOf(s)].Twin == to:
		return State(r.next), TurnU
	default:
		return State(r.next), TurnFree
	}
}
