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
	access Vehicles // see Edge.passable
	contra Vehicles
	labels []label
	heap   minHeap
	stamp  uint32    // of the running search's open labels; settled ones bear stamp+1
	start  EdgeIndex // a label
	limit  int32
	prices Penalties
	goal   goal
}

// goal is where a search leads to, so that it leaves out what cannot be on a way there.
type goal struct {
	set      bool
	place    vertex
	kx, ky   float64 // cm to 1e-7 degree, a little less than true
	radiusCM float64
}

// label is the best known way to the START of an edge: there is one for each edge and for each state.
type label struct {
	stamp        uint32
	cost, length int32
	parent       EdgeIndex // a label; NoEdge: straight from the search's start
}

// NewSearch makes the scratch memory for one goroutine, for cars: 16 bytes an edge.
func NewSearch(g *Graph) *Search { return NewSearchFor(g, View{}) }

// NewSearchFor is NewSearch for another view of the graph: no path leads over an edge that is not Passable in it.
func NewSearchFor(g *Graph, v View) *Search {
	s := &Search{g: g, labels: make([]label, g.labels()), start: NoEdge}
	s.access, s.contra = v.masks()
	return s
}

// From begins a search from the END of an edge. No path longer than limitCM is followed; the limit is on length alone, so that a price
// never cuts off what lies within reach. Of paths that lead to the same edge the cheapest counts, at equal cost the shorter, then the one
// over the lower edge. Prices below zero count as zero. The way to the start is not known to restrictions over several ways; see
// FromState.
func (s *Search) From(start EdgeIndex, limitCM int32, p Penalties) {
	s.FromState(State(start), limitCM, p)
}

// FromState is From for a start with what restrictions remember of the way there, as Follow or Search.State gave it.
func (s *Search) FromState(start State, limitCM int32, p Penalties) {
	if s.stamp >= math.MaxUint32-3 {
		clear(s.labels)
		s.stamp = 0
	}
	s.stamp += 2
	s.goal.set = false
	s.start = EdgeIndex(start)
	s.prices = Penalties{
		UTurnCM: max(p.UTurnCM, 0), BanCM: max(p.BanCM, 0), PrivateCM: max(p.PrivateCM, 0), ContraflowCM: max(p.ContraflowCM, 0),
		SlowPM: max(p.SlowPM, 0), ContraflowPM: max(p.ContraflowPM, 0),
	}
	s.limit = min(limitCM, maxLimitCM)
	s.heap = s.heap[:0]
	if s.limit >= 0 {
		s.relax(s.start, NoEdge, 0, 0)
	}
}

// Toward is said after From and before To: whatever To is asked for, the ways that count go on to within a radius of a place, and no way is
// followed that is longer than the limit when it gets there. It makes a search quicker.
func (s *Search) Toward(p Point, radiusCM int32) {
	if !p.valid() {
		return
	}
	ky := metresPerDegree / e7 * 100 * 0.995 // the plane is off by less than that within some tens of kilometres
	v := vertex{lon: int32(math.Round(p.Lon * e7)), lat: int32(math.Round(p.Lat * e7))}
	s.goal = goal{set: true, place: v, kx: float64(ky * cosDeg(min(math.Abs(p.Lat)+0.5, 90))), ky: ky, radiusCM: float64(radiusCM)}
}

// still is a length in cm that a way from a node to the goal has at least.
func (s *Search) still(n NodeIndex) int32 {
	if !s.goal.set {
		return 0
	}
	p := s.g.nodePlace[n]
	dx := float64(float64(wrapE7(int64(p.lon)-int64(s.goal.place.lon))) * s.goal.kx)
	dy := float64((float64(p.lat) - float64(s.goal.place.lat)) * s.goal.ky)
	return int32(min(max(math.Sqrt(float64(dx*dx)+float64(dy*dy))-s.goal.radiusCM, 0), maxLimitCM))
}

// To returns the length and the cost of the cheapest path from the search's start to the START of the target. The search goes only as
// far as it must to know.
func (s *Search) To(target EdgeIndex) (lengthCM, costCM int32, ok bool) {
	if s.start == NoEdge {
		return 0, 0, false
	}
	x := s.reached(target)
	for x == NoEdge {
		if !s.settle() {
			return 0, 0, false
		}
		x = s.reached(target)
	}
	l := &s.labels[x]
	return l.length, l.cost, true
}

// reached returns the settled label of the target, of several the cheapest; NoEdge when there is none yet.
func (s *Search) reached(target EdgeIndex) EdgeIndex {
	best := NoEdge
	if s.labels[target].stamp == s.stamp+1 {
		best = target
	}
	from, to := s.g.statesOf(target)
	for x := from; x < to; x++ {
		if l := &s.labels[x]; l.stamp == s.stamp+1 && (best == NoEdge || l.cost < s.labels[best].cost) {
			best = x
		}
	}
	return best
}

// State is the target with what restrictions remember of the way that To has found, to go on with FromState.
func (s *Search) State(target EdgeIndex) State {
	if x := s.reached(target); x != NoEdge {
		return State(x)
	}
	return State(target)
}

// Path appends the edges strictly between the search's start and the target, in order; nothing when To has not found the target.
func (s *Search) Path(dst []EdgeIndex, target EdgeIndex) []EdgeIndex {
	if s.start == NoEdge {
		return dst
	}
	x := s.reached(target)
	if x == NoEdge {
		return dst
	}
	base := len(dst)
	for x = s.labels[x].parent; x != NoEdge; x = s.labels[x].parent {
		dst = append(dst, s.g.labelEdge(x))
	}
	slices.Reverse(dst[base:])
	return dst
}

// settle makes the cheapest open label final and looks at what follows it; false when there is none.
func (s *Search) settle() bool {
	for len(s.heap) > 0 {
		x := EdgeIndex(uint32(s.heap.pop()))
		l := &s.labels[x]
		if l.stamp != s.stamp {
			continue // settled before, by a cheaper entry
		}
		l.stamp++
		e := &s.g.edges[s.g.labelEdge(x)]
		if length := l.length + e.LengthCM; length <= s.limit && length <= s.limit-s.still(e.To) {
			s.relax(x, x, length, addCost(addCost(l.cost, e.LengthCM), s.ride(e)))
		}
		return true
	}
	return false
}

// ride is what an edge costs beside its length: for its speed, and for its direction.
func (s *Search) ride(e *Edge) int32 {
	perMille := int64(0)
	if e.SpeedKMH < quickKMH {
		perMille = int64(s.prices.SlowPM) * (quickKMH - int64(e.SpeedKMH))
	}
	if e.Access&s.access == 0 {
		perMille += int64(s.prices.ContraflowPM) * quickKMH
	}
	return int32(min(int64(e.LengthCM)*perMille/(1000*quickKMH), math.MaxInt32))
}

// quickKMH is the speed from which on roads cost no more than their length.
const quickKMH = 90

// relax offers the way over the end of a label's edge to all edges that leave there.
func (s *Search) relax(x, parent EdgeIndex, length, cost int32) {
	g := s.g
	e := g.labelEdge(x)
	from := &g.edges[e]
	ruled := x != e || g.turns.ruled[e>>6]&(1<<(e&63)) != 0
	for _, next := range g.Out(from.To) {
		n := &g.edges[next]
		if !n.passable(s.access, s.contra) {
			continue
		}
		to, c := next, addCost(cost, s.price(from, n, next))
		if ruled {
			if r, ok := g.rule(x, next); ok {
				if r.wall&s.access != 0 {
					continue
				}
				if r.ban&s.access != 0 {
					c = addCost(c, s.prices.BanCM)
				}
				to = r.next
			}
		}
		s.offer(to, parent, length, c)
	}
}

func (s *Search) offer(to, parent EdgeIndex, length, cost int32) {
	l := &s.labels[to]
	if l.stamp == s.stamp+1 || l.stamp == s.stamp && !better(cost, length, parent, l) {
		return
	}
	if l.stamp != s.stamp || cost != l.cost {
		s.heap.push(uint64(cost)<<32 | uint64(uint32(to)))
	}
	*l = label{stamp: s.stamp, cost: cost, length: length, parent: parent}
}

// price is what the step from one edge to the next costs beside its length and the turn rules.
func (s *Search) price(from, to *Edge, next EdgeIndex) int32 {
	var c int32
	if from.Twin == next {
		c = s.prices.UTurnCM
	}
	if to.Private&^from.Private&s.access != 0 {
		c = addCost(c, s.prices.PrivateCM)
	}
	if from.Access&^to.Access&s.access != 0 {
		c = addCost(c, s.prices.ContraflowCM)
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
