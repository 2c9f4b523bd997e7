package roadnet

import (
	"cmp"
	"encoding/binary"
	"maps"
	"slices"
)

// automaton collects runs of edges that are forbidden, and makes of them what a search follows: after Aho and Corasick, where a state is
// the longest end of the way so far that begins a forbidden run. A run's first edge alone needs no state.
type automaton struct {
	g      *Graph
	pairs  map[uint64]turnRule // of edge and next edge; next is not set
	prefix map[string]EdgeIndex
	runs   [][]EdgeIndex       // the run of each state, in order of creation
	ends   map[string]Vehicles // whole runs of three edges and more
}

func newAutomaton(g *Graph) *automaton {
	return &automaton{g: g, pairs: map[uint64]turnRule{}, prefix: map[string]EdgeIndex{}, ends: map[string]Vehicles{}}
}

// ban forbids a run of two edges or more.
func (a *automaton) ban(run []EdgeIndex, set Vehicles) {
	if len(run) == 2 {
		k := turnKey(run[0], run[1])
		r := a.pairs[k]
		r.ban |= set
		a.pairs[k] = r
		return
	}
	for n := 2; n < len(run); n++ {
		if name := nameRun(run[:n]); a.prefix[name] == 0 {
			a.runs = append(a.runs, run[:n])
			a.prefix[name] = EdgeIndex(len(a.runs)) // numbered anew in build; zero is none
		}
	}
	a.ends[nameRun(run)] |= set
}

// shut keeps some classes from passing a node, of which in are the edges that end there.
func (a *automaton) shut(in []EdgeIndex, set Vehicles) {
	for _, e := range in {
		for _, next := range a.g.Out(a.g.edges[e].To) {
			if a.g.edges[e].Twin == next {
				continue
			}
			k := turnKey(e, next)
			r := a.pairs[k]
			r.wall |= set
			a.pairs[k] = r
		}
	}
}

// pairBans is the number of pairs of edges that are forbidden whatever came before.
func (a *automaton) pairBans() (n int) {
	for _, r := range a.pairs {
		if r.ban != 0 {
			n++
		}
	}
	return n
}

func nameRun(run []EdgeIndex) string {
	b := make([]byte, 0, 4*len(run))
	for _, e := range run {
		b = binary.BigEndian.AppendUint32(b, uint32(e))
	}
	return string(b)
}

func (a *automaton) build() turns {
	edges := len(a.g.edges)
	slices.SortFunc(a.runs, func(x, y []EdgeIndex) int {
		return cmp.Or(cmp.Compare(x[len(x)-1], y[len(y)-1]), slices.Compare(x, y))
	})
	t := turns{ruled: make([]uint64, (edges+63)/64), stated: make([]uint64, (edges+63)/64), edgeOf: []EdgeIndex{}}
	for i, run := range a.runs {
		last := run[len(run)-1]
		a.prefix[nameRun(run)] = EdgeIndex(edges + i)
		t.edgeOf = append(t.edgeOf, last)
		t.stated[last>>6] |= 1 << (last & 63)
	}
	all := map[uint64]turnRule{}
	for k := range a.pairs {
		a.step(all, EdgeIndex(k>>32), []EdgeIndex{EdgeIndex(k >> 32)}, EdgeIndex(uint32(k)))
	}
	for i, run := range a.runs {
		if len(run) == 2 {
			a.step(all, run[0], run[:1], run[1])
		}
		for _, next := range a.g.Out(a.g.edges[run[len(run)-1]].To) {
			a.step(all, EdgeIndex(edges+i), run, next)
		}
	}
	t.keys = slices.Sorted(maps.Keys(all))
	t.rules = make([]turnRule, len(t.keys))
	for i, k := range t.keys {
		t.rules[i] = all[k]
		if from := k >> 32; from < uint64(edges) {
			t.ruled[from>>6] |= 1 << (from & 63)
		}
	}
	return t
}

// step writes down what becomes of going from a label, reached over a run, to the next edge.
func (a *automaton) step(all map[uint64]turnRule, label EdgeIndex, run []EdgeIndex, next EdgeIndex) {
	r := a.pairs[turnKey(run[len(run)-1], next)]
	r.next = next
	whole := append(slices.Clone(run), next)
	found := false
	for from := range run {
		name := nameRun(whole[from:])
		r.ban |= a.ends[name]
		if s, ok := a.prefix[name]; ok && !found {
			r.next, found = s, true
		}
	}
	if r != (turnRule{next: next}) {
		all[turnKey(label, next)] = r
	}
}
