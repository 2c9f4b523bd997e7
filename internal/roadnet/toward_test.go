package roadnet_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"milepost/internal/roadnet"
)

// A search with a goal leaves out what leads away from it and nothing else: every way within the limit that ends in the goal is found, without
// prices the same one, with prices one that costs no more. Around the antimeridian and in the far north, too.
func TestSearchToward(t *testing.T) {
	const radius = 150_00
	for i, at := range []roadnet.Point{{Lon: 9, Lat: 48}, {Lon: 179.995, Lat: -17}, {Lon: 25, Lat: 78}} {
		g := randomCity(t, uint64(40+i), at, 12)
		rnd := rand.New(rand.NewPCG(uint64(i), 3))
		all, toward := roadnet.NewSearch(g), roadnet.NewSearch(g)
		asked, fewer := 0, 0
		for range 60 {
			start := roadnet.EdgeIndex(rnd.IntN(g.Edges()))
			goal := g.NodePoint(g.Edge(roadnet.EdgeIndex(rnd.IntN(g.Edges()))).To)
			limit := int32(20_000 + rnd.IntN(120_000))
			prices := roadnet.Penalties{}
			if rnd.IntN(2) == 0 {
				prices = roadnet.Penalties{UTurnCM: 5_000, BanCM: 15_000, PrivateCM: 3_000, SlowPM: 200}
			}
			all.From(start, limit, prices)
			toward.From(start, limit, prices)
			toward.Toward(goal, radius)
			for e := range roadnet.EdgeIndex(g.Edges()) {
				length, cost, ok := all.To(e)
				gotLength, gotCost, got := toward.To(e)
				edge := g.Edge(e)
				inside := roadnet.Distance(g.NodePoint(edge.To), goal)*100 <= radius
				switch {
				case !ok || !inside || length+edge.LengthCM > limit:
					if ok && !got {
						fewer++
					}
					continue
				case !got || gotCost > cost:
					t.Fatalf("city %d: from %d to %d within %d cm: %d, %d, %v with a goal, %d, %d without", i, start, e, limit, gotLength, gotCost, got, length, cost)
				case prices == roadnet.Penalties{} && (gotLength != length || !slices.Equal(toward.Path(nil, e), all.Path(nil, e))):
					t.Fatalf("city %d: from %d to %d: another way with a goal", i, start, e)
				}
				asked++
			}
		}
		if asked < 100 || fewer < 100 {
			t.Errorf("city %d: %d ways compared, %d left out: this proves little", i, asked, fewer)
		}
	}
}
