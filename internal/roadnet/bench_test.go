package roadnet_test

import (
	"math/rand/v2"
	"testing"

	"milepost/internal/roadnet"
)

func delaware(b *testing.B) *roadnet.Graph {
	b.Helper()
	return load(b, moduleMap(b, "delaware-latest.osm.pbf"), roadnet.ImportOptions{})
}

func BenchmarkNear(b *testing.B) {
	g := delaware(b)
	rnd := rand.New(rand.NewPCG(1, 1))
	points := make([]roadnet.Point, 4096)
	for i := range points {
		e := roadnet.EdgeIndex(rnd.IntN(g.Edges()))
		p, _ := g.At(e, rnd.Int32N(g.Edge(e).LengthCM+1))
		points[i] = roadnet.Point{Lon: p.Lon + (rnd.Float64()-.5)*2e-4, Lat: p.Lat + (rnd.Float64()-.5)*2e-4}
	}
	var hits []roadnet.Hit
	found, i := 0, 0
	b.ReportAllocs()
	for b.Loop() {
		hits = g.Near(hits[:0], points[i&4095], 35)
		found += len(hits)
		i++
	}
	b.ReportMetric(float64(found)/float64(i), "hits/op")
}

// The search between the candidates of two observations: limits as at 1 s, 15 s and 60 s.
func BenchmarkSearch(b *testing.B) {
	g := delaware(b)
	for name, limit := range map[string]int32{"355m": 35_500, "1125m": 112_500, "3600m": 360_000} {
		b.Run(name, func(b *testing.B) {
			rnd := rand.New(rand.NewPCG(2, 2))
			s := roadnet.NewSearch(g)
			b.ReportAllocs()
			for b.Loop() {
				s.From(roadnet.EdgeIndex(rnd.IntN(g.Edges())), limit, roadnet.Penalties{UTurnCM: 4000, BanCM: 15000, PrivateCM: 3000})
				s.To(0) // hardly ever within reach: the whole of it is searched
			}
		})
	}
}

func BenchmarkRoute(b *testing.B) {
	g := delaware(b)
	rnd := rand.New(rand.NewPCG(3, 3))
	r := roadnet.NewRouter(g)
	var path []roadnet.EdgeIndex
	b.ReportAllocs()
	for b.Loop() {
		path, _, _ = r.Route(path[:0], roadnet.EdgeIndex(rnd.IntN(g.Edges())), roadnet.EdgeIndex(rnd.IntN(g.Edges())))
	}
}
