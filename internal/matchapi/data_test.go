package matchapi_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"milepost/internal/fleet"
	"milepost/internal/fleet/offline"
	"milepost/internal/mapmatch"
	"milepost/internal/matchapi"
	"milepost/internal/roadnet"
	"milepost/internal/tracefile"
)

// onMap is the interface over a map of the data set.
func onMap(tb testing.TB, file string) (http.HandlerFunc, *roadnet.Graph) {
	tb.Helper()
	tb.Helper()
	root := os.Getenv("MILEPOST_DATA")
	if root == "" {
		tb.Skip("MILEPOST_DATA is not set: make it the folder of maps and traces that docs/matcher.md describes")
	}
	f, err := os.Open(filepath.Join(root, "maps", file))
	if err != nil {
		tb.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	g, err := roadnet.Import(tb.Context(), f, file, roadnet.ImportOptions{Contraflow: true})
	if err != nil {
		tb.Fatal(err)
	}
	api, err := matchapi.New(func() offline.World { return world(g) }, matchapi.DefaultConfig(), prometheus.NewRegistry(), slog.New(slog.DiscardHandler))
	if err != nil {
		tb.Fatal(err)
	}
	return api.Routes()[matchapi.MatchPath], g
}

// traces reads a trace file, by vehicle.
func traces(tb testing.TB, file string) map[string][]tracefile.Fix {
	tb.Helper()
	f, err := os.Open(filepath.Join(os.Getenv("MILEPOST_DATA"), file))
	if err != nil {
		tb.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	out := map[string][]tracefile.Fix{}
	for fix, err := range tracefile.Read(f, file, tracefile.Options{}) {
		if err != nil {
			tb.Fatal(err)
		}
		out[fix.Vehicle] = append(out[fix.Vehicle], fix)
	}
	return out
}

func requestOf(fixes []tracefile.Fix) string {
	var points []string
	for _, f := range fixes {
		p := fmt.Sprintf(`"lat":%v,"lon":%v`, f.Lat, f.Lon)
		if f.HasTime() {
			p += fmt.Sprintf(`,"time":%v`, float64(f.Time.UnixMicro())/1e6)
		}
		for name, v := range map[string]float64{"accuracy": f.AccuracyM, "speed": f.SpeedMPS, "heading": f.HeadingDeg} {
			if !math.IsNaN(v) {
				p += fmt.Sprintf(`,%q:%v`, name, v)
			}
		}
		points = append(points, "{"+p+"}")
	}
	return `{"shape":[` + strings.Join(points, ",") + `]}`
}

func send(t *testing.T, handler http.HandlerFunc, body string) matchapi.Answer {
	t.Helper()
	w := httptest.NewRecorder()
	req := httptest.NewRequestWithContext(t.Context(), http.MethodPost, matchapi.MatchPath, strings.NewReader(body))
	req.RemoteAddr, req.Host = "127.0.0.1:1", "localhost"
	handler(w, req)
	var a matchapi.Answer
	if err := json.Unmarshal(w.Body.Bytes(), &a); err != nil || w.Code != http.StatusOK {
		t.Fatalf("%d, %v: %s", w.Code, err, w.Body.Bytes())
	}
	return a
}

// ways are the ways of the answer's edges, each once in a row.
func ways(a *matchapi.Answer) []int64 {
	var out []int64
	for _, e := range a.Edges {
		if n := len(out); n == 0 || out[n-1] != *e.WayID {
			out = append(out, *e.WayID)
		}
	}
	return out
}

// The traces that GraphHopper tests with, without times or with hardly any, give the ways and lengths that Valhalla gives of them.
func TestTracesOfOthers(t *testing.T) {
	for _, c := range []struct {
		osm, trace string
		ways       []int64
		metres     float64 // 0: not given
	}{
		{"gh-andorra.osm.pbf", "andorra_for_map_matching.gpx", []int64{177526454, 23857247}, 671},
		{"gh-issue-70.osm.gz", "issue-70.gpx", []int64{263190269, 115389243, 190958702}, 893.6},
	} {
		t.Run(c.trace, func(t *testing.T) {
			handler, _ := onMap(t, c.osm)
			for _, fixes := range traces(t, "traces/graphhopper/"+c.trace) {
				a := send(t, handler, requestOf(fixes))
				if d := cmp.Diff(c.ways, ways(&a)); d != "" || len(a.Segments) != 1 || math.Abs(1000*a.Segments[0].Length-c.metres) > 0.05*c.metres {
					t.Errorf("%s, %d segments, %.3f km", d, len(a.Segments), a.Segments[0].Length)
				}
			}
		})
	}
}

// The interface decides as match does of the same trace: the same pairs of nodes, driven in the same order, and every edge is known.
func TestAsMatchDoes(t *testing.T) {
	handler, g := onMap(t, "delaware-newark-2016.osm.pbf")
	n := 0
	for vehicle, fixes := range traces(t, "synthetic/newark_5s.csv") {
		if n++; n > 10 {
			break
		}
		run, err := offline.New(g, offline.Options{Fleet: fleet.DefaultConfig(), Matcher: mapmatch.DefaultConfig()})
		if err != nil {
			t.Fatal(err)
		}
		var events bytes.Buffer
		run.AddSink(offline.NewJSON(&events, fleet.Coordinates))
		for i := range fixes {
			if err := run.Add(&fixes[i]); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := run.Close(); err != nil {
			t.Fatal(err)
		}
		track := fleet.Track{}
		for line := range bytes.Lines(events.Bytes()) {
			e, err := fleet.DecodeEvent(line)
			if err != nil {
				t.Fatal(err)
			}
			track.Apply(&e)
		}
		want, length := []int64(nil), 0.0
		for _, s := range track.Segments {
			for _, p := range s.Path {
				length += p.ToM - p.FromM
				if k := len(want); k == 0 || want[k-1] != p.Way {
					want = append(want, p.Way)
				}
			}
		}
		a := send(t, handler, requestOf(fixes))
		got := 0.0
		for i, e := range a.Edges {
			got += 1000 * *e.Length
			if e.Speed == nil || e.RoadClass == "" || e.BeginHeading == nil {
				t.Errorf("vehicle %s: edge %d is not on the map: %+v", vehicle, i, e)
			}
		}
		if d := cmp.Diff(want, ways(&a)); d != "" || math.Abs(got-length) > float64(len(a.Edges)) {
			t.Errorf("vehicle %s: %.0f m, want %.0f: %s", vehicle, got, length, d)
		}
	}
}

// BenchmarkMatch answers requests of all drives of the data set's Newark, from body to body.
func BenchmarkMatch(b *testing.B) {
	handler, _ := onMap(b, "delaware-newark-2016.osm.pbf")
	points := 0
	var bodies []string
	for _, fixes := range traces(b, "synthetic/newark_5s.csv") {
		bodies, points = append(bodies, requestOf(fixes)), points+len(fixes)
	}
	b.ReportAllocs()
	for b.Loop() {
		for _, body := range bodies {
			w := httptest.NewRecorder()
			req := httptest.NewRequestWithContext(b.Context(), http.MethodPost, matchapi.MatchPath, strings.NewReader(body))
			req.RemoteAddr, req.Host = "127.0.0.1:1", "localhost"
			if handler(w, req); w.Code != http.StatusOK {
				b.Fatalf("%d: %s", w.Code, w.Body.Bytes())
			}
		}
	}
	b.ReportMetric(float64(points)*float64(b.N)/b.Elapsed().Seconds(), "points/s")
}
