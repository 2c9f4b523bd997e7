package roadnet

import (
	"math"
	"slices"
)

// topSpeedKMH is the greatest speed that the profile gives, which keeps the router's estimate below the truth.
const topSpeedKMH = 140

// Router finds the fastest legal paths, as a driver would choose them: no banned turn, no turning back but in a dead end, no private
// road on the way. It has scratch memory: one a goroutine.
type Router struct {
	g      *Graph
	v      Vehicle
	labels []label // cost in ms to the END of the edge, estimate not included; length unused
	heap   minHeap
	stamp  uint32
	goal   Point
	kx     float64 // degrees of longitude to degrees of latitude, at least
}

// NewRouter makes the scratch memory for one goroutine, for cars: 16 bytes an edge.
func NewRouter(g *Graph) *Router { return NewRouterFor(g, Car) }

// NewRouterFor is NewRouter for another class of vehicles.
func NewRouterFor(g *Graph, v Vehicle) *Router {
	southWest, northEast := g.Bounds()
	narrowest := cosDeg(max(math.Abs(southWest.Lat), math.Abs(northEast.Lat)))
	return &Router{g: g, v: v, labels: make([]label, g.labels()), kx: narrowest}
}

// Route appends the fastest path from one edge to another to dst, both included, and says how long it takes at free flow from the end of
// the first to the end of the last, in milliseconds. Not ok: there is no legal path. Of equally fast paths the result is always the same.
func (r *Router) Route(dst []EdgeIndex, from, to EdgeIndex) (path []EdgeIndex, millis int32, ok bool) {
	if from == to {
		return append(dst, from), 0, true
	}
	r.begin(to)
	r.offer(from, NoEdge, 0)
	for len(r.heap) > 0 {
		x := EdgeIndex(uint32(r.heap.pop()))
		l := &r.labels[x]
		if l.stamp != r.stamp {
			continue
		}
		l.stamp++
		if r.g.labelEdge(x) == to {
			return r.path(dst, x), l.cost, true
		}
		r.expand(x, l.cost, to)
	}
	return dst, 0, false
}

func (r *Router) begin(to EdgeIndex) {
	if r.stamp >= math.MaxUint32-3 {
		clear(r.labels)
		r.stamp = 0
	}
	r.stamp += 2
	r.heap = r.heap[:0]
	r.goal = r.g.NodePoint(r.g.edges[to].To)
}

func (r *Router) expand(x EdgeIndex, cost int32, to EdgeIndex) {
	g := r.g
	e := g.labelEdge(x)
	for _, next := range g.Out(g.edges[e].To) {
		y, ok := g.legal(x, next, r.v)
		if !ok || g.edges[next].Private.Has(r.v) && !g.edges[e].Private.Has(r.v) && !g.edges[to].Private.Has(r.v) {
			continue
		}
		r.offer(y, x, addCost(cost, g.MillisFor(next, r.v)))
	}
}

// Millis is how long an edge takes a car at free flow, in milliseconds, rounded up.
func (g *Graph) Millis(e EdgeIndex) int32 { return g.MillisFor(e, Car) }

// MillisFor is Millis for another class of vehicles.
func (g *Graph) MillisFor(e EdgeIndex, v Vehicle) int32 {
	speed := int64(g.Speed(e, v))
	return int32(min((int64(g.edges[e].LengthCM)*36+speed-1)/speed, math.MaxInt32))
}

func (r *Router) offer(x, parent EdgeIndex, cost int32) {
	l := &r.labels[x]
	if l.stamp == r.stamp+1 || l.stamp == r.stamp && (l.cost < cost || l.cost == cost && l.parent <= parent) {
		return
	}
	*l = label{stamp: r.stamp, cost: cost, parent: parent}
	r.heap.push(uint64(addCost(cost, r.estimate(r.g.labelEdge(x))))<<32 | uint64(uint32(x)))
}

// estimate is a time that the rest of the way takes at least.
func (r *Router) estimate(e EdgeIndex) int32 {
	p := r.g.NodePoint(r.g.edges[e].To)
	dx := float64(wrapDeg(p.Lon-r.goal.Lon) * r.kx)
	dy := p.Lat - r.goal.Lat
	metres := metresPerDegree * math.Sqrt(float64(dx*dx)+float64(dy*dy))
	return int32(min(metres*3600/topSpeedKMH*0.99, math.MaxInt32/2))
}

func (r *Router) path(dst []EdgeIndex, to EdgeIndex) []EdgeIndex { // to is a label
	base := len(dst)
	for x := to; x != NoEdge; x = r.labels[x].parent {
		dst = append(dst, r.g.labelEdge(x))
	}
	slices.Reverse(dst[base:])
	return dst
}
