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
	labels []label // cost in ms to the END of the edge, estimate not included; length unused
	heap   minHeap
	stamp  uint32
	goal   Point
	kx     float64 // degrees of longitude to degrees of latitude, at least
}

// NewRouter makes the scratch memory for one goroutine: 16 bytes an edge.
func NewRouter(g *Graph) *Router {
	southWest, northEast := g.Bounds()
	narrowest := cosDeg(max(math.Abs(southWest.Lat), math.Abs(northEast.Lat)))
	return &Router{g: g, labels: make([]label, g.Edges()), kx: narrowest}
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
		e := EdgeIndex(uint32(r.heap.pop()))
		l := &r.labels[e]
		if l.stamp != r.stamp {
			continue
		}
		l.stamp++
		if e == to {
			return r.path(dst, to), l.cost, true
		}
		r.expand(e, l.cost, to)
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

func (r *Router) expand(e EdgeIndex, cost int32, to EdgeIndex) {
	g := r.g
	out := g.Out(g.edges[e].To)
	for _, next := range out {
		n := &g.edges[next]
		switch g.Turn(e, next) {
		case TurnBanned:
			continue
		case TurnU:
			if len(out) > 1 {
				continue
			}
		case TurnFree:
		}
		if n.Flags&FlagPrivate != 0 && g.edges[e].Flags&FlagPrivate == 0 && g.edges[to].Flags&FlagPrivate == 0 {
			continue
		}
		r.offer(next, e, addCost(cost, g.Millis(next)))
	}
}

// Millis is how long an edge takes at free flow, in milliseconds, rounded up.
func (g *Graph) Millis(e EdgeIndex) int32 {
	speed := int64(max(g.edges[e].SpeedKMH, 1))
	return int32(min((int64(g.edges[e].LengthCM)*36+speed-1)/speed, math.MaxInt32))
}

func (r *Router) offer(e, parent EdgeIndex, cost int32) {
	l := &r.labels[e]
	if l.stamp == r.stamp+1 || l.stamp == r.stamp && (l.cost < cost || l.cost == cost && l.parent <= parent) {
		return
	}
	*l = label{stamp: r.stamp, cost: cost, parent: parent}
	r.heap.push(uint64(addCost(cost, r.estimate(e)))<<32 | uint64(uint32(e)))
}

// estimate is a time that the rest of the way takes at least.
func (r *Router) estimate(e EdgeIndex) int32 {
	p := r.g.NodePoint(r.g.edges[e].To)
	dx := float64(wrapDeg(p.Lon-r.goal.Lon) * r.kx)
	dy := p.Lat - r.goal.Lat
	metres := metresPerDegree * math.Sqrt(float64(dx*dx)+float64(dy*dy))
	return int32(min(metres*3600/topSpeedKMH*0.99, math.MaxInt32/2))
}

func (r *Router) path(dst []EdgeIndex, to EdgeIndex) []EdgeIndex {
	base := len(dst)
	for e := to; e != NoEdge; e = r.labels[e].parent {
		dst = append(dst, e)
	}
	slices.Reverse(dst[base:])
	return dst
}
