package mapmatch_test

import (
	"path/filepath"
	"testing"

	"milepost/internal/mapmatch"
)

// BenchmarkPush measures observations a second on simulated drives; set MILEPOST_DATA.
func BenchmarkPush(b *testing.B) {
	dir := dataDir(b)
	for _, set := range []struct{ name, file string }{
		{"dover_1s", "delaware-dover-2016.osm.pbf"},
		{"newark_5s", "delaware-newark-2016.osm.pbf"},
		{"andorra_10s", "paulmach-andorra-2018.osm.pbf"},
		{"dover_30s", "delaware-dover-2016.osm.pbf"},
	} {
		b.Run(set.name, func(b *testing.B) {
			m, err := mapmatch.New(readGraph(b, filepath.Join(dir, "maps", set.file)), mapmatch.DefaultConfig())
			if err != nil {
				b.Fatal(err)
			}
			trips := synthetic(b, dir, set.name)
			b.ReportAllocs()
			b.ResetTimer()
			var state, old []byte
			var r mapmatch.Result
			trip, i := 0, 0
			for range b.N {
				next, err := m.PushInto(old[:0], &r, state, trips[trip].obs[i])
				if err != nil {
					b.Fatal(err)
				}
				old, state = state, next
				if i++; i == len(trips[trip].obs) {
					trip, i, state = (trip+1)%len(trips), 0, nil
				}
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "points/s")
		})
	}
}
