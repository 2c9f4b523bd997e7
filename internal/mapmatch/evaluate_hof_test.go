package mapmatch_test

import (
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"milepost/internal/mapmatch"
	"milepost/internal/mapmatch/matchtest"
	"milepost/internal/roadnet"
)

// hof reads real floating-car tracks with their hand-checked routes. No map belongs to them: the network is the union of all routes, so that
// what is judged is to find each drive among the streets that any of them took. Its stretches are open both ways, the two sides of divided
// roads, too; or, with oneway, only as somebody drove them.
func hof(tb testing.TB, dir string, oneway bool) (*roadnet.Graph, []trip) {
	tb.Helper()
	b := roadnet.NewBuilder(nil)
	nodes := make(map[[2]int64]int64)
	ways := make(map[[2]int64]int64)
	driven := make(map[[2]int64]bool)
	truths := make(map[string][]mapmatch.Pair)
	var order []string
	var places [][2]int64
	readCSV(tb, filepath.Join(dir, "traces", "fcd-hof", "ground_truth.csv"), func(get func(string) string) {
		id := get("id")
		order = append(order, id)
		last := int64(0)
		for place := range strings.SplitSeq(strings.TrimPrefix(get("WKT"), "MULTILINESTRING"), ",") {
			if strings.HasPrefix(strings.TrimSpace(place), "(") {
				last = 0 // the next line
			}
			place = strings.Trim(place, " ()")
			var lon, lat float64
			if _, err := fmt.Sscan(place, &lon, &lat); err != nil {
				tb.Fatalf("track %s: %q: %v", id, place, err)
			}
			k := [2]int64{int64(math.Round(lon * 1e7)), int64(math.Round(lat * 1e7))}
			n, ok := nodes[k]
			if !ok {
				n = int64(len(nodes) + 1)
				nodes[k] = n
				places = append(places, k)
			}
			if last != 0 && last != n {
				pair := [2]int64{min(last, n), max(last, n)}
				if ways[pair] == 0 {
					ways[pair] = int64(len(ways) + 1)
				}
				driven[[2]int64{last, n}] = true
				truths[id] = append(truths[id], mapmatch.Pair{Way: ways[pair], From: last, To: n})
			}
			last = n
		}
	})
	for pair, way := range ways {
		tags := roadnet.Tags{{Key: "highway", Value: "residential"}}
		back := [2]int64{pair[1], pair[0]}
		if oneway && !driven[back] {
			tags = append(tags, roadnet.Tag{Key: "oneway", Value: "yes"})
		} else if oneway && !driven[pair] {
			tags = append(tags, roadnet.Tag{Key: "oneway", Value: "-1"})
		}
		b.AddWay(way, pair[:], tags)
	}
	for i, p := range places {
		b.AddNode(int64(i+1), p[0], p[1], nil)
	}
	g, err := b.Build()
	if err != nil {
		tb.Fatal(err)
	}
	tracks := make(map[string][]mapmatch.Observation)
	readCSV(tb, filepath.Join(dir, "traces", "fcd-hof", "points.csv"), func(get func(string) string) {
		at, err := time.Parse("2006-01-02 15:04:05-07:00", get("time"))
		if err != nil {
			tb.Fatal(err)
		}
		var p roadnet.Point
		if _, err := fmt.Sscanf(get("geometry"), "POINT (%f %f)", &p.Lon, &p.Lat); err != nil {
			tb.Fatal(err)
		}
		tracks[get("id")] = append(tracks[get("id")], mapmatch.Observation{Time: at, Point: p, AccuracyM: math.NaN(), SpeedMPS: math.NaN(), Heading: math.NaN()})
	})
	var out []trip
	for _, id := range order {
		slices.SortStableFunc(tracks[id], func(a, b mapmatch.Observation) int { return a.Time.Compare(b.Time) })
		out = append(out, trip{id: id, obs: tracks[id], truth: truths[id]})
	}
	return g, out
}

// TestEvaluateHof scores 175 floating-car tracks, steps of 5 to 15 s, repeated times (M20) and pauses, by the share of the routes that was
// found and by what was added.
func TestEvaluateHof(t *testing.T) {
	dir := dataDir(t)
	for _, c := range []struct {
		name   string
		oneway bool
		floor  float64 // per cent of the length
	}{{"open both ways", false, 96}, {"open as driven", true, 98.5}} {
		g, trips := hof(t, dir, c.oneway)
		m, err := mapmatch.New(g, mapmatch.DefaultConfig())
		if err != nil {
			t.Fatal(err)
		}
		o := outcome{lines: matchtest.NewDrawn(g)}
		lengths := matchtest.Lengths(g)
		for i := range trips {
			if len(trips[i].truth) > 2 {
				o.match(t, m, &trips[i], lengths)
			}
		}
		correct := 100 * (1 - o.MissedM/o.TrueM)
		t.Logf("hof, %s: correct %.2f %% of the length, added %.2f %%, drawn: correct %.2f %%, added %.2f %%: %v", c.name, correct, 100*o.AddedM/o.TrueM,
			100*(1-o.drawn.MissedM/o.drawn.TrueM), 100*o.drawn.AddedM/o.drawn.TrueM, &o)
		if correct < c.floor {
			t.Errorf("%s: %.2f %% of the length was found, want %g %%", c.name, correct, c.floor)
		}
	}
}
