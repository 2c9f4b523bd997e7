package roadnet_test

import (
	"math/rand/v2"
	"testing"

	"milepost/internal/roadnet"
)

// randomCity makes a bent street grid around a place: one-way streets, gaps, private yards, curved streets, diagonals and turn rules of
// all kinds. The same seed makes the same city.
func randomCity(tb testing.TB, seed uint64, at roadnet.Point, size int) *roadnet.Graph {
	tb.Helper()
	rnd := rand.New(rand.NewPCG(seed, 7))
	b := roadnet.NewBuilder(nil)
	id := func(x, y int) int64 { return int64(1 + y*size + x) }
	extra := int64(1_000_000)
	type place struct{ lon, lat int64 }
	places := map[int64]place{}
	wrap := func(lon int64) int64 {
		if lon > 1_800_000_000 {
			return lon - 3_600_000_000
		}
		return lon
	}
	for y := range size {
		for x := range size {
			places[id(x, y)] = place{
				wrap(int64(at.Lon*1e7) + int64(x)*12_000 + rnd.Int64N(6_000)), int64(at.Lat*1e7) + int64(y)*9_000 + rnd.Int64N(4_000),
			}
		}
	}
	way := int64(1)
	touching := map[int64][]int64{} // of each crossing: its ways
	street := func(a, c int64) {
		if rnd.IntN(10) == 0 {
			return
		}
		tags := roadnet.Tags{{Key: "highway", Value: "residential"}}
		switch rnd.IntN(8) {
		case 0:
			tags = append(tags, roadnet.Tag{Key: "oneway", Value: "yes"})
		case 1:
			tags = append(tags, roadnet.Tag{Key: "oneway", Value: "-1"})
		case 2:
			tags = append(tags, roadnet.Tag{Key: "access", Value: "private"})
		}
		refs := []int64{a}
		for range rnd.IntN(3) {
			extra++
			places[extra] = place{wrap(places[a].lon + rnd.Int64N(9_000)), places[a].lat + rnd.Int64N(9_000)}
			refs = append(refs, extra)
		}
		b.AddWay(way, append(refs, c), tags)
		touching[a], touching[c] = append(touching[a], way), append(touching[c], way)
		way++
	}
	for y := range size {
		for x := range size {
			if x+1 < size {
				street(id(x, y), id(x+1, y))
			}
			if y+1 < size {
				street(id(x, y), id(x, y+1))
			}
			if x+1 < size && y+1 < size && rnd.IntN(6) == 0 {
				street(id(x, y), id(x+1, y+1))
			}
		}
	}
	kinds := [...]string{"no_left_turn", "no_u_turn", "only_straight_on", "no_entry"}
	for r := range way / 3 {
		via := 1 + rnd.Int64N(int64(size*size))
		ways := touching[via]
		if len(ways) == 0 {
			continue
		}
		b.AddRelation(r+1, []roadnet.Member{
			{Kind: roadnet.MemberWay, Ref: ways[rnd.IntN(len(ways))], Role: "from"},
			{Kind: roadnet.MemberWay, Ref: ways[rnd.IntN(len(ways))], Role: "to"},
			{Kind: roadnet.MemberNode, Ref: via, Role: "via"},
		}, roadnet.Tags{{Key: "type", Value: "restriction"}, {Key: "restriction", Value: kinds[rnd.IntN(len(kinds))]}})
	}
	for n, p := range places {
		b.AddNode(n, p.lon, p.lat, nil)
	}
	g, err := b.Build()
	if err != nil {
		tb.Fatal(err)
	}
	if g.Stats().Bans < size/2 {
		tb.Fatalf("a city with %d bans proves nothing about them", g.Stats().Bans)
	}
	return g
}
