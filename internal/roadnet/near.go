package roadnet

import (
	"cmp"
	"math"
	"slices"
)

// Near appends to dst the nearest point of every directed edge within the radius, ordered by distance and then by edge. A position that
// is not on the globe, and a radius that is not above zero, find nothing.
func (g *Graph) Near(dst []Hit, p Point, radiusM float64) []Hit {
	if !p.valid() || !(radiusM > 0) {
		return dst
	}
	q := query{g: g, hits: dst, base: len(dst), p: p, radius: radiusM, lon: p.Lon * e7, lat: p.Lat * e7}
	q.ky = metresPerDegree / e7
	q.kx = q.ky * cosDeg(p.Lat)
	q.walk()
	q.finish()
	return q.hits
}

// query is one search for near edges. While it runs, hits past base hold one entry a geometry: Edge is the geometry's index, AlongCM the
// vertex that begins the nearest segment, and Bearing the share of the segment.
type query struct {
	g        *Graph
	hits     []Hit
	base     int
	p        Point
	radius   float64
	lon, lat float64 // 1e-7 degrees
	kx, ky   float64 // metres to 1e-7 degree
}

func (q *query) walk() {
	reach := q.radius/metresPerDegree + 1e-7
	south, north := max(q.p.Lat-reach, -90), min(q.p.Lat+reach, 90)
	half := 180.0
	if c := cosDeg(max(math.Abs(south), math.Abs(north))); c*180 > reach {
		half = reach / c
	}
	for row := rowOf(south); row <= rowOf(north); row++ {
		n := columns(row)
		c0, c1 := columnOf(q.p.Lon-half, n), columnOf(q.p.Lon+half, n)
		switch {
		case c1-c0+1 >= n:
			q.cells(row, 0, n-1)
		case c0 < 0:
			q.cells(row, c0+n, n-1)
			q.cells(row, 0, c1)
		case c1 >= n:
			q.cells(row, c0, n-1)
			q.cells(row, 0, c1-n)
		default:
			q.cells(row, c0, c1)
		}
	}
}

func (q *query) cells(row, c0, c1 int32) {
	from, to := q.g.grid.cellsIn(row, c0, c1)
	if from == to {
		return
	}
	for _, r := range q.g.grid.refs[q.g.grid.cellOff[from]:q.g.grid.cellOff[to]] {
		q.segment(r)
	}
}

// segment measures one segment on the plane that touches the globe at the position.
func (q *query) segment(r ref) {
	a, b := q.g.vertices[r.vertex], q.g.vertices[r.vertex+1]
	ax := float64(wrapFloatE7(float64(a.lon)-q.lon) * q.kx)
	ay := float64((float64(a.lat) - q.lat) * q.ky)
	dx := float64(float64(wrapE7(int64(b.lon)-int64(a.lon))) * q.kx)
	dy := float64((float64(b.lat) - float64(a.lat)) * q.ky)
	t := 0.0
	if sq := float64(dx*dx) + float64(dy*dy); sq > 0 {
		t = min(max(-(float64(ax*dx)+float64(ay*dy))/sq, 0), 1)
	}
	x, y := ax+float64(t*dx), ay+float64(t*dy)
	d := float64(x*x) + float64(y*y)
	if d > float64(q.radius*q.radius) {
		return
	}
	q.keep(r, math.Sqrt(d), t)
}

// keep holds the nearest segment of each geometry; of equally near ones the first, so that the order of cells does not matter.
func (q *query) keep(r ref, dist, t float64) {
	for i := len(q.hits) - 1; i >= q.base; i-- {
		h := &q.hits[i]
		if h.Edge != EdgeIndex(r.geom) {
			continue
		}
		if dist < h.DistM || dist == h.DistM && r.vertex < h.AlongCM {
			h.DistM, h.AlongCM, h.Bearing = dist, r.vertex, t
		}
		return
	}
	q.hits = append(q.hits, Hit{Edge: EdgeIndex(r.geom), AlongCM: r.vertex, DistM: dist, Bearing: t})
}

// finish turns each geometry into its one or two directed edges, and orders them.
func (q *query) finish() {
	g := q.g
	for i, end := q.base, len(q.hits); i < end; i++ {
		h := q.hits[i]
		e := g.geomEdge[h.Edge]
		first, last, back := g.geometry(e)
		a, b := g.vertices[h.AlongCM], g.vertices[h.AlongCM+1]
		along := a.along + int32(math.Round(float64(h.Bearing*float64(b.along-a.along))))
		hit := Hit{Edge: e, DistM: h.DistM, AlongCM: along, Point: lerp(a, b, h.Bearing), Bearing: g.tangent(h.AlongCM, first, last, false)}
		other := hit
		other.AlongCM = g.edges[e].LengthCM - along
		other.Bearing = turnInto360(hit.Bearing + 180)
		if back {
			hit.AlongCM, hit.Bearing = other.AlongCM, other.Bearing
		}
		q.hits[i] = hit
		if other.Edge = g.edges[e].Twin; other.Edge != NoEdge {
			q.hits = append(q.hits, other)
		}
	}
	slices.SortFunc(q.hits[q.base:], func(a, b Hit) int {
		return cmp.Or(cmp.Compare(a.DistM, b.DistM), cmp.Compare(a.Edge, b.Edge))
	})
}

func wrapFloatE7(d float64) float64 {
	if d > halfTurnE7 {
		return d - 2*halfTurnE7
	}
	if d <= -halfTurnE7 {
		return d + 2*halfTurnE7
	}
	return d
}
