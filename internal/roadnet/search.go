package roadnet

import (
	"math"
	"slices"
)

// maxLimitCM keeps length plus one more edge within an int32.
const maxLimitCM = 1 << 29

// Search finds shortest paths between edges. It has scratch memory: one a goroutine. After the first few searches it allocates nothing.
type Search struct {
	g      *Graph
	labels []label
	heap   minHeap
	stamp  uint32 // of the running search's open labels; settled ones bear stamp+1
	start  EdgeIndex
	limit  int32
	prices Penalties
}

// label is the best known way to the START of an edge.
type label struct {
	stamp        uint32
	cost, length int32
	parent       EdgeIndex // NoEdge: straight from the search's start
}

// NewSearch makes the scratch memory for one goroutine: 16 bytes an edge.
func NewSearch(g *Graph) *Search {
	return &Search{g: g, labels: make([]label, g.Edges()), start: NoEdge}
}

// From begins a search from the END of an edge. No path longer than limitCM is followed; the limit is on length alone, so that a price
// never cuts off what lies within reach. Of paths that lead to the same edge the cheapest counts, at equal cost the shorter, then the one
// over the lower edge. Prices below zero count as zero.
func (s *Search) From(start EdgeIndex, limitCM int32, p Penalties) {
	if s.stamp >= math.MaxUint32-3 {
		clear(s.labels)
		s.stamp = 0
	}
	s.stamp += 2
	s.start = start
	s.prices = Penalties{UTurnCM: max(p.UTurnCM, 0), BanCM: max(p.BanCM, 0), PrivateCM: max(p.PrivateCM, 0)}
	s.limit = min(limitCM, maxLimitCM)
	s.heap = s.heap[:0]
	if s.limit >= 0 {
		s.relax(start, NoEdge, 0, 0)
	}
}

// To returns the length and the cost of the cheapest path from the search's start to the START of the target. The search goes only as
// far as it must to know.
func (s *Search) To(target EdgeIndex) (lengthCM, costCM int32, ok bool) {
	if s.start == NoEdge {
		return 0, 0, false
	}
	for s.labels[target].stamp != s.stamp+1 {
		if !s.settle() {
			return 0, 0, false
		}
	}
	l := s.labels[target]
	return l.length, l.cost, true
}

// Path appends the edges strictly between the search's start and the target, in order; nothing when To has not found the target.
func (s *Search) Path(dst []EdgeIndex, target EdgeIndex) []EdgeIndex {
	if s.start == NoEdge || s.labels[target].stamp != s.stamp+1 {
		return dst
	}
	base := len(dst)
	for e := s.labels[target].parent; e != NoEdge; e = s.labels[e].parent {
		dst = append(dst, e)
	}
	slices.Reverse(dst[base:])
	return dst
}

// settle makes the cheapest open label final and looks at what follows it; false when there is none.
func (s *Search) settle() bool {
	for len(s.heap) > 0 {
		e := EdgeIndex(uint32(s.heap.pop()))
		l := &s.labels[e]
		if l.stamp != s.stamp {
			continue // settled before, by a cheaper entry
		}
		l.stamp++
		length := l.length + s.g.edges[e].LengthCM
		if length <= s.limit {
			s.relax(e, e, length, addCost(l.cost, s.g.edges[e].LengthCM))
		}
		return true
	}
	return false
}

// relax offers the way over the end of edge e to all edges that leave there.
func (s *Search) relax(e, parent EdgeIndex, length, cost int32) {
	from := &s.g.edges[e]
	for _, next := range s.g.Out(from.To) {
		l := &s.labels[next]
		if l.stamp == s.stamp+1 {
			continue
		}
		c := addCost(cost, s.price(from, e, next))
		if l.stamp == s.stamp && !better(c, length, parent, l) {
			continue
		}
		if l.stamp != s.stamp || c != l.cost {
			s.heap.push(uint64(c)<<32 | uint64(uint32(next)))
		}
		*l = label{stamp: s.stamp, cost: c, length: length, parent: parent}
	}
}

// price is what the step from one edge to the next costs beside its length.
func (s *Search) price(from *Edge, e, next EdgeIndex) int32 {
	var c int32
	if from.Twin == next {
		c = s.prices.UTurnCM
	}
	if s.g.isBanned(e, next) {
		c = addCost(c, s.prices.BanCM)
	}
	if from.Flags&FlagPrivate == 0 && s.g.edges[next].Flags&FlagPrivate != 0 {
		c = addCost(c, s.prices.PrivateCM)
	}
	return c
}

func better(cost, length int32, parent EdgeIndex, l *label) bool {
	if cost != l.cost {
		return cost < l.cost
	}
	if length != l.length {
		return length < l.length
	}
	return parent < l.parent
}

// addCost adds without running over.
func addCost(a, b int32) int32 { return int32(min(int64(a)+int64(b), math.MaxInt32)) }

// minHeap is a heap of four children a node; its keys order by cost and then by edge.
type minHeap []uint64

func (h *minHeap) push(key uint64) {
	*h = append(*h, key)
	a := *h
	i := len(a) - 1
	for i > 0 {
		up := (i - 1) / 4
		if a[up] <= key {
			break
		}
		a[i] = a[up]
		i = up
	}
	a[i] = key
}

func (h *minHeap) pop() uint64 {
	a := *h
	top := a[0]
	last := a[len(a)-1]
	a = a[:len(a)-1]
	*h = a
	if len(a) == 0 {
		return top
	}
	i := 0
	for {
		child := 4*i + 1
		if child >= len(a) {
			break
		}
		least := child
		for c := child + 1; c < min(child+4, len(a)); c++ {
			if a[c] < a[least] {
				least = c
			}
		}
		if a[least] >= last {
			break
		}
		a[i] = a[least]
		i = least
	}
	a[i] = last
	return top
}
