package roadnet

import (
	"cmp"
	"math"
	"slices"
)

// Near appends to dst the nearest point of every directed edge for cars within the radius, ordered by distance and then by edge. A
// position that is not on the globe, and a radius that is not above zero, find nothing.
func (g *Graph) Near(dst []Hit, p Point, radiusM float64) []Hit {
	return g.NearFor(dst, p, radiusM, View{})
}

// NearFor is Near for another view of the graph.
func (g *Graph) NearFor(dst []Hit, p Point, radiusM float64, v View) []Hit {
	if !p.valid() || !(radiusM > 0) {
		return dst
	}
	q := query{g: g, hits: dst, base: len(dst), p: p, radius: radiusM, lon: p.Lon * e7, lat: p.Lat * e7}
	q.access, q.contra = v.masks()
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
	access   Vehicles
	contra   Vehicles
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

// finish turns each geometry into its directed edges, of those that the view has, and orders them.
func (q *query) finish() {
	g := q.g
	end := len(q.hits)
	kept := q.base
	for i := q.base; i < end; i++ {
		hit, twin := g.hitsOf(q.hits[i])
		has := g.edges[hit.Edge].passable(q.access, q.contra)
		if twin.Edge != NoEdge && g.edges[twin.Edge].passable(q.access, q.contra) {
			if has {
				q.hits = append(q.hits, twin)
			} else {
				hit, has = twin, true
			}
		}
		if has {
			q.hits[kept] = hit
			kept++
		}
	}
	q.hits = append(q.hits[:kept], q.hits[end:]...)
	slices.SortFunc(q.hits[q.base:], func(a, b Hit) int {
		return cmp.Or(cmp.Compare(a.DistM, b.DistM), cmp.Compare(a.Edge, b.Edge))
	})
}

// hitsOf makes hits on the one or two edges of a geometry of what query holds.
func (g *Graph) hitsOf(h Hit) (hit, twin Hit) {
	e := g.geomEdge[h.Edge]
	first, last, back := g.geometry(e)
	a, b := g.vertices[h.AlongCM], g.vertices[h.AlongCM+1]
	along := a.along + int32(math.Round(float64(h.Bearing*float64(b.along-a.along))))
	hit = Hit{Edge: e, DistM: h.DistM, AlongCM: along, Point: lerp(a, b, h.Bearing), Bearing: g.tangent(h.AlongCM, first, last, false)}
	twin = hit
	twin.AlongCM = g.edges[e].LengthCM - along
	twin.Bearing = turnInto360(hit.Bearing + 180)
	if back {
		hit.AlongCM, hit.Bearing = twin.AlongCM, twin.Bearing
	}
	twin.Edge = g.edges[e].Twin
	return hit, twin
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
