package roadnet_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	"milepost/internal/roadnet"
	"milepost/internal/roadnet/roadnettest"
)

// bruteNear looks at every segment of every edge, on the tangent plane at the position.
func bruteNear(g *roadnet.Graph, p roadnet.Point, radius float64) map[roadnet.EdgeIndex]float64 {
	found := map[roadnet.EdgeIndex]float64{}
	const metres = 111195.07973436874
	dlon := func(a, b float64) float64 { return math.Remainder(a-b, 360) }
	kx := metres * math.Cos(p.Lat*math.Pi/180)
	for e := range roadnet.EdgeIndex(g.Edges()) {
		shape := g.Shape(nil, e)
		best := math.Inf(1)
		for i := range len(shape) - 1 {
			a, b := shape[i].Point, shape[i+1].Point
			ax, ay := dlon(a.Lon, p.Lon)*kx, (a.Lat-p.Lat)*metres
			dx, dy := dlon(b.Lon, a.Lon)*kx, (b.Lat-a.Lat)*metres
			t := 0.0
			if sq := dx*dx + dy*dy; sq > 0 {
				t = min(max(-(ax*dx+ay*dy)/sq, 0), 1)
			}
			best = min(best, math.Hypot(ax+t*dx, ay+t*dy))
		}
		if best <= radius {
			found[e] = best
		}
	}
	return found
}

// The index finds exactly the edges that a look at all of them finds: in the middle latitudes, at the equator, over the antimeridian and
// next to the pole, within small and large radii (M25, M26, M36, M39).
func TestNearEqualsBruteForce(t *testing.T) {
	for _, at := range []roadnet.Point{{Lon: 9, Lat: 48}, {Lon: -0.005, Lat: -0.005}, {Lon: 179.995, Lat: 65}, {Lon: -75.6, Lat: 39.7}, {Lon: 20, Lat: 89.98}} {
		for seed := range uint64(3) {
			g := randomCity(t, seed, at, 12)
			rnd := rand.New(rand.NewPCG(seed, 2))
			for range 150 {
				p := g.NodePoint(roadnet.NodeIndex(rnd.IntN(g.Nodes())))
				p.Lon, p.Lat = math.Remainder(p.Lon+(rnd.Float64()-.5)*0.004, 360), min(p.Lat+(rnd.Float64()-.5)*0.004, 90)
				radius := []float64{1, 35, 100, 900}[rnd.IntN(4)]
				checkNear(t, g, p, radius)
			}
		}
	}
}

func checkNear(t *testing.T, g *roadnet.Graph, p roadnet.Point, radius float64) {
	t.Helper()
	want := bruteNear(g, p, radius)
	hits := g.Near(nil, p, radius)
	for i, h := range hits {
		d, ok := want[h.Edge]
		if !ok && h.DistM < radius-1e-6 || ok && math.Abs(d-h.DistM) > 1e-6 {
			t.Fatalf("%v radius %v: edge %d at %v, want %v %v", p, radius, h.Edge, h.DistM, d, ok)
		}
		delete(want, h.Edge)
		if i > 0 && (hits[i-1].DistM > h.DistM || hits[i-1].DistM == h.DistM && hits[i-1].Edge >= h.Edge) {
			t.Fatalf("%v radius %v: hits %d and %d are out of order", p, radius, i-1, i)
		}
		// The hit's place is where At finds its offset, to the rounding of a centimetre, in the same direction.
		place, _ := g.At(h.Edge, h.AlongCM)
		if off := roadnet.Distance(place, h.Point); off > 0.02 {
			t.Fatalf("%v: edge %d offset %d is %v m from the hit", p, h.Edge, h.AlongCM, off)
		}
		if h.AlongCM < 0 || h.AlongCM > g.Edge(h.Edge).LengthCM || !(h.Bearing >= 0 && h.Bearing < 360) {
			t.Fatalf("%v: %+v", p, h)
		}
	}
	for e, d := range want {
		if d < radius-1e-6 {
			t.Fatalf("%v radius %v: edge %d at %v was not found", p, radius, e, d)
		}
	}
}

// Positions that are none find nothing, and what dst holds stays (M24, M25).
func TestNearBadPositions(t *testing.T) {
	m := roadnettest.Parse(t, `A(0,0)-B(100,0)`)
	nan, inf := math.NaN(), math.Inf(1)
	held := []roadnet.Hit{{Edge: 77}}
	for _, p := range []roadnet.Point{{Lon: nan, Lat: 48}, {Lon: 9, Lat: nan}, {Lon: inf, Lat: 48}, {Lon: 9, Lat: -inf}, {Lon: 9, Lat: 91}, {Lon: 181, Lat: 48}, {}, {Lon: 48, Lat: 9}, {Lon: 9, Lat: 89.9999}, {Lon: 0, Lat: 90}, {Lon: 180, Lat: -90}} {
		if diff := cmp.Diff(held, m.Graph.Near(held, p, 100)); diff != "" {
			t.Errorf("%v: %s", p, diff)
		}
	}
	for _, r := range []float64{0, -1, nan} {
		if got := m.Graph.Near(nil, m.Point(50, 0), r); len(got) != 0 {
			t.Errorf("radius %v found %v", r, got)
		}
	}
	if got := m.Graph.Near(nil, m.Point(50, 0), 1e9); len(got) != 2 {
		t.Errorf("a radius larger than the globe found %d edges, want 2", len(got))
	}
}

// A point at a crossing has all its edges, each once, in a stable order, also when it is a little beside (M39).
func TestNearAtCrossing(t *testing.T) {
	m := roadnettest.Parse(t, `A(-100,0)-J(0,0)-B(100,0); C(0,-100)-J-D(0,100)`)
	hits := m.Graph.Near(nil, m.Point(0, 0), 35)
	seen := map[roadnet.EdgeIndex]bool{}
	for _, h := range hits {
		seen[h.Edge] = true
		if h.DistM > 0.01 {
			t.Errorf("edge %s at %v m", m.EdgeName(h.Edge), h.DistM)
		}
	}
	if len(hits) != 8 || len(seen) != 8 {
		t.Errorf("%d hits of %d edges, want 8 of 8", len(hits), len(seen))
	}
	p := m.Point(0, 0)
	p.Lon += 1e-7
	if n := len(m.Graph.Near(nil, p, 35)); n != 8 {
		t.Errorf("%d hits a hair beside, want 8", n)
	}
}

// The tangent of a hit follows the geometry, in driving direction (M40, M41).
func TestNearBearing(t *testing.T) {
	m := roadnettest.Parse(t, `A(0,0)-V(100,0)-B(100,100)`)
	want := map[string]float64{"A>B": 90, "B>A": 270}
	for _, h := range m.Graph.Near(nil, m.Point(50, 3), 35) {
		if math.Abs(h.Bearing-want[m.EdgeName(h.Edge)]) > 0.1 {
			t.Errorf("%s: bearing %v, want %v", m.EdgeName(h.Edge), h.Bearing, want[m.EdgeName(h.Edge)])
		}
	}
	want = map[string]float64{"A>B": 0, "B>A": 180}
	for _, h := range m.Graph.Near(nil, m.Point(103, 50), 35) {
		if math.Abs(h.Bearing-want[m.EdgeName(h.Edge)]) > 0.1 {
			t.Errorf("%s: bearing %v, want %v", m.EdgeName(h.Edge), h.Bearing, want[m.EdgeName(h.Edge)])
		}
	}
}
