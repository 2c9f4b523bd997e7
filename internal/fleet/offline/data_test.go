package offline_test

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"milepost/internal/fleet"
	"milepost/internal/fleet/offline"
	"milepost/internal/mapmatch"
	"milepost/internal/mapmatch/matchtest"
	"milepost/internal/roadnet"
	"milepost/internal/tracefile"
)

func dataDir(tb testing.TB) string {
	tb.Helper()
	root := os.Getenv("MILEPOST_DATA")
	if root == "" {
		tb.Skip("MILEPOST_DATA is not set: make it the folder of maps and traces that docs/matcher.md describes")
	}
	return root
}

func loadMap(tb testing.TB, file string) *roadnet.Graph {
	tb.Helper()
	f, err := os.Open(filepath.Join(dataDir(tb), "maps", file))
	if err != nil {
		tb.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	g, err := roadnet.Import(tb.Context(), f, file, roadnet.ImportOptions{})
	if err != nil {
		tb.Fatal(err)
	}
	return g
}

func options() offline.Options {
	return offline.Options{Fleet: fleet.DefaultConfig(), Matcher: mapmatch.DefaultConfig()}
}

// outputs are the run's three forms and its figures.
type outputs struct {
	events, table, route, geo bytes.Buffer
	summary                   offline.Summary
}

func match(tb testing.TB, g *roadnet.Graph, file string) *outputs {
	tb.Helper()
	f, err := os.Open(filepath.Join(dataDir(tb), file))
	if err != nil {
		tb.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	run, err := offline.New(g, options())
	if err != nil {
		tb.Fatal(err)
	}
	out := &outputs{}
	run.AddSink(offline.NewJSON(&out.events, fleet.Coordinates))
	run.AddSink(offline.NewTable(&out.table, offline.NewLocator(roadnet.Car, g), run.Settle))
	run.AddSink(offline.NewRoute(&out.route))
	run.AddSink(offline.NewGeoJSON(&out.geo, run.Settle))
	if err := run.File(f, file, tracefile.Options{}, func(e *tracefile.RowError) { tb.Errorf("refused: %v", e) }); err != nil {
		tb.Fatal(err)
	}
	if out.summary, err = run.Close(); err != nil {
		tb.Fatal(err)
	}
	return out
}

func readCSV(tb testing.TB, b []byte) []map[string]string {
	tb.Helper()
	rows, err := csv.NewReader(bytes.NewReader(b)).ReadAll()
	if err != nil {
		tb.Fatal(err)
	}
	out := make([]map[string]string, 0, len(rows)-1)
	for _, row := range rows[1:] {
		m := map[string]string{}
		for i, name := range rows[0] {
			m[name] = row[i]
		}
		out = append(out, m)
	}
	return out
}

func routes(tb testing.TB, b []byte) map[string][]mapmatch.Pair {
	tb.Helper()
	out := map[string][]mapmatch.Pair{}
	for _, row := range readCSV(tb, b) {
		var n [3]int64
		for i, name := range []string{"way", "from", "to"} {
			v, err := strconv.ParseInt(row[name], 10, 64)
			if err != nil {
				tb.Fatal(err)
			}
			n[i] = v
		}
		out[row["vehicle"]] = append(out[row["vehicle"]], mapmatch.Pair{Way: n[0], From: n[1], To: n[2]})
	}
	return out
}

// TestSynthetic matches the simulated drives through the whole of the workload and judges every form of output against the truth: the
// route by the mismatch fraction of the "Must hold", the rows by the true way and pair of nodes, the events by what a consumer
// rebuilds of them, which must be the route (I9: what was final stays; A11: no segment changes without a reset).
func TestSynthetic(t *testing.T) {
	for _, c := range []struct {
		file, osm string
		mismatch  float64 // at most
		pairs     float64 // rows on the true pair of nodes, at least
	}{
		{"newark_5s", "delaware-newark-2016.osm.pbf", 0.05, 0.80},
		{"dover_1s", "delaware-dover-2016.osm.pbf", 0.05, 0.80},
		{"dover_30s", "delaware-dover-2016.osm.pbf", 0.08, 0.75},
		{"andorra_10s", "paulmach-andorra-2018.osm.pbf", 0.05, 0.70},
	} {
		t.Run(c.file, func(t *testing.T) {
			g := loadMap(t, c.osm)
			out := match(t, g, "synthetic/"+c.file+".csv")
			truth, err := os.ReadFile(filepath.Join(dataDir(t), "synthetic", c.file+".route.csv"))
			if err != nil {
				t.Fatal(err)
			}
			got := routes(t, out.route.Bytes())
			lengths := matchtest.Lengths(g)
			var score matchtest.Score
			for vehicle, want := range routes(t, truth) {
				score.Add(matchtest.RouteMismatch(want, got[vehicle], lengths))
			}
			input, err := os.ReadFile(filepath.Join(dataDir(t), "synthetic", c.file+".csv"))
			if err != nil {
				t.Fatal(err)
			}
			ways, pairs := rowsRight(t, readCSV(t, input), readCSV(t, out.table.Bytes()))
			checkEvents(t, out.events.Bytes(), got)
			var collection struct{ Features []json.RawMessage }
			if err := json.Unmarshal(out.geo.Bytes(), &collection); err != nil {
				t.Fatal(err)
			}
			if got, want := len(collection.Features), int(out.summary.Segments+out.summary.Observations); got != want {
				t.Errorf("%d features, want one a segment and one an observation: %d", got, want)
			}
			t.Logf("%s: mismatch %.2f %%, rows on the true way %.1f %%, on the true pair %.1f %%, %v, %d segments",
				c.file, 100*score.Mismatch(), 100*ways, 100*pairs, out.summary.Dispositions, out.summary.Segments)
			if score.Mismatch() > c.mismatch {
				t.Errorf("route mismatch %.4f, want at most %.4f", score.Mismatch(), c.mismatch)
			}
			if pairs < c.pairs {
				t.Errorf("%.3f of the rows are on the true pair of nodes, want at least %.3f", pairs, c.pairs)
			}
		})
	}
}

// rowsRight compares rows one to one and gives the fractions on the true way and on the true pair of nodes.
func rowsRight(t *testing.T, input, rows []map[string]string) (ways, pairs float64) {
	t.Helper()
	if len(rows) != len(input) {
		t.Fatalf("%d rows for %d observations", len(rows), len(input))
	}
	n := 0.0
	for i, row := range rows {
		in := input[i]
		if row["vehicle"] != in["vehicle"] || row["seq"] != in["seq"] {
			t.Fatalf("row %d is %s/%s, want %s/%s", i, row["vehicle"], row["seq"], in["vehicle"], in["seq"])
		}
		// An outlier among driven points has the place between them; one that nothing could be made of has none.
		if row["way"] == "" && row["disposition"] != fleet.OffRoad && row["disposition"] != fleet.Outlier {
			t.Errorf("row %d: %s with way %q", i, row["disposition"], row["way"])
		}
		if in["kind"] == "outlier" {
			continue
		}
		n++
		if row["way"] == in["true_way"] {
			ways++
			if row["from"] == in["true_from"] && row["to"] == in["true_to"] {
				pairs++
			}
		}
	}
	return ways / n, pairs / n
}

// checkEvents rebuilds the routes from the events alone.
func checkEvents(t *testing.T, events []byte, want map[string][]mapmatch.Pair) {
	t.Helper()
	tracks := map[string]*fleet.Track{}
	segments := map[string]int64{}
	for line := range bytes.Lines(events) {
		e, err := fleet.DecodeEvent(line)
		if err != nil {
			t.Fatal(err)
		}
		if tracks[e.Vehicle] == nil {
			tracks[e.Vehicle], segments[e.Vehicle] = &fleet.Track{}, 1
		}
		if before := segments[e.Vehicle]; e.Segment != before && (e.Reset == nil || e.Reset.PreviousSegment != before || e.Segment != before+1) {
			t.Errorf("vehicle %s: segment %d after %d, reset %v", e.Vehicle, e.Segment, before, e.Reset)
		}
		segments[e.Vehicle] = e.Segment
		tracks[e.Vehicle].Apply(&e)
	}
	if len(tracks) != len(want) {
		t.Errorf("%d vehicles in the events, %d in the route", len(tracks), len(want))
	}
	for vehicle, track := range tracks {
		got := track.Pairs()
		if len(got) != len(want[vehicle]) {
			t.Errorf("vehicle %s: %d pairs from the events, %d in the route", vehicle, len(got), len(want[vehicle]))
			continue
		}
		for i := range got {
			if got[i] != want[vehicle][i] {
				t.Errorf("vehicle %s: pair %d is %v in the events, %v in the route", vehicle, i, got[i], want[vehicle][i])
				break
			}
		}
	}
}
