package offline_test

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/paulmach/orb/encoding/wkt"
	"github.com/twpayne/go-polyline"

	"milepost/internal/fleet"
	"milepost/internal/fleet/catalog"
	"milepost/internal/fleet/offline"
	"milepost/internal/roadnet"
	"milepost/internal/roadnet/roadnettest"
	"milepost/internal/tracefile"
	"milepost/test/goldentest"
)

// town has a private drive, a one-way street, a banned turn and an island.
const town = `A(0,0)-B(600,0)-C(1200,0); B-D(600,500); D-E(600,900) access=private; C>F(1200,500); S(0,-4000)-T(2000,-4000)`

// drives are two vehicles among one another: one turns into the private drive, stands, jitters and leaves the map; the other turns back in
// mid-block, has an outlier and goes on, after a gap, on the island.
func drives(m *roadnettest.Map) string {
	a := strings.SplitAfter(rows(m, "truck 17", 0,
		[2]float64{50, 4}, [2]float64{250, -3}, [2]float64{450, 2}, [2]float64{603, 150}, [2]float64{598, 350}, [2]float64{602, 550}, [2]float64{601, 553},
		[2]float64{600, 556}, [2]float64{604, 750}), "\n")
	b := strings.SplitAfter(rows(m, "bus;4", 0,
		[2]float64{1150, 3}, [2]float64{950, -3}, [2]float64{750, 4}, [2]float64{900, 2}, [2]float64{1100, -2}, [2]float64{1100, 3500}, [2]float64{1198, 60})+
		rows(m, "bus;4", 600, [2]float64{100, -4003}, [2]float64{300, -3997}), "\n")
	out := header
	for i := range 9 {
		out += a[i] + b[i]
	}
	return out + rows(m, "truck 17", 300, [2]float64{0, 90_000})
}

// run matches a text with one sink and gives what it wrote.
func run(t *testing.T, g *roadnet.Graph, opts offline.Options, text string, sink func(io.Writer, *offline.Run) offline.Sink) string {
	t.Helper()
	r, err := offline.New(g, opts)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	r.AddSink(sink(&out, r))
	if err := r.File(strings.NewReader(text), "t.csv", tracefile.Options{}, func(e *tracefile.RowError) { t.Error(e) }); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Close(); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// sinks are all forms of output.
func sinks(g *roadnet.Graph) map[string]func(io.Writer, *offline.Run) offline.Sink {
	loc := func() *offline.Locator { return offline.NewLocator(roadnet.Car, g) }
	fields, err := offline.ParseFMMFields("all")
	if err != nil {
		panic(err)
	}
	return map[string]func(io.Writer, *offline.Run) offline.Sink{
		"events.jsonl":           func(w io.Writer, _ *offline.Run) offline.Sink { return offline.NewJSON(w, fleet.Coordinates) },
		"events-polyline6.jsonl": func(w io.Writer, _ *offline.Run) offline.Sink { return offline.NewJSON(w, fleet.Polyline6) },
		"events-wkt.jsonl":       func(w io.Writer, _ *offline.Run) offline.Sink { return offline.NewJSON(w, fleet.WKT) },
		"events-none.jsonl":      func(w io.Writer, _ *offline.Run) offline.Sink { return offline.NewJSON(w, fleet.NoGeometry) },
		"table.csv":              func(w io.Writer, r *offline.Run) offline.Sink { return offline.NewTable(w, loc(), r.Settle) },
		"route.csv":              func(w io.Writer, _ *offline.Run) offline.Sink { return offline.NewRoute(w) },
		"paths.geojson":          func(w io.Writer, r *offline.Run) offline.Sink { return offline.NewGeoJSON(w, r.Settle) },
		"driven.gpx":             func(w io.Writer, r *offline.Run) offline.Sink { return offline.NewGPX(w, r.Settle) },
		"fmm.csv": func(w io.Writer, r *offline.Run) offline.Sink {
			return offline.NewFMM(w, fields, fleet.WKT, loc(), r.Settle)
		},
		"fmm-polyline6.csv": func(w io.Writer, r *offline.Run) offline.Sink {
			return offline.NewFMM(w, []string{"cpath", "mgeom"}, fleet.Polyline6, loc(), r.Settle)
		},
		"explain.txt":   offline.NewExplainText,
		"explain.jsonl": offline.NewExplainJSON,
	}
}

// Issue 6, match: every form of output of one input with two vehicles, a U-turn, a private road, an outlier, a gap and a place off the map.
func TestGoldenFormats(t *testing.T) {
	m := roadnettest.Parse(t, town)
	opts := options()
	opts.Explain = true
	for name, sink := range sinks(m.Graph) {
		golden(t, name, run(t, m.Graph, opts, drives(m), sink))
	}
}

// Every form of output of no input is well formed.
func TestEmptyFormats(t *testing.T) {
	m := roadnettest.Parse(t, town)
	for name, sink := range sinks(m.Graph) {
		got := run(t, m.Graph, options(), header, sink)
		switch filepath.Ext(name) {
		case ".gpx":
			if err := xml.Unmarshal([]byte(got), new(struct{})); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		case ".geojson":
			if !json.Valid([]byte(got)) {
				t.Errorf("%s: %q", name, got)
			}
		case ".csv":
			if strings.Count(got, "\n") != 1 {
				t.Errorf("%s: %q, want a header", name, got)
			}
		default:
			if got != "" {
				t.Errorf("%s: %q, want nothing", name, got)
			}
		}
	}
}

// Issue 6: the three ways to write a line are one line, to the precision that each has; the event without a line is the same but for it.
func TestGeometries(t *testing.T) {
	m := roadnettest.Parse(t, town)
	type span struct {
		Geometry  [][2]float64 `json:"geometry"`
		Polyline6 string       `json:"polyline6"`
		WKT       string       `json:"wkt"`
	}
	read := func(g fleet.Geometry) (spans []span, rest []string) {
		out := run(t, m.Graph, options(), drives(m), func(w io.Writer, _ *offline.Run) offline.Sink { return offline.NewJSON(w, g) })
		for line := range strings.Lines(out) {
			var e struct {
				Path  []span
				Final struct{ Path []span }
			}
			if err := json.Unmarshal([]byte(line), &e); err != nil {
				t.Fatalf("%s: %v: %s", g, err, line)
			}
			spans = append(append(spans, e.Path...), e.Final.Path...)
			ev, err := fleet.DecodeEvent([]byte(line))
			if err != nil {
				t.Fatal(err)
			}
			strip(&ev)
			rest = append(rest, string(ev.AppendJSON(nil)))
		}
		return spans, rest
	}
	want, rest := read(fleet.Coordinates)
	for _, g := range []fleet.Geometry{fleet.Polyline6, fleet.WKT, fleet.NoGeometry} {
		got, others := read(g)
		if d := cmp.Diff(rest, others); d != "" {
			t.Fatalf("%s: the events differ besides their lines: %s", g, d)
		}
		for i := range got {
			var line [][2]float64
			switch g {
			case fleet.Polyline6:
				points, left, err := (&polyline.Codec{Dim: 2, Scale: 1e6}).DecodeCoords([]byte(got[i].Polyline6))
				if err != nil || len(left) > 0 {
					t.Fatal(err, left)
				}
				for _, p := range points {
					line = append(line, [2]float64{p[1], p[0]})
				}
			case fleet.WKT:
				l, err := wkt.UnmarshalLineString(got[i].WKT)
				if err != nil {
					t.Fatal(err)
				}
				for _, p := range l {
					line = append(line, p)
				}
			case fleet.NoGeometry, fleet.Coordinates:
				if got[i].Geometry != nil || got[i].Polyline6 != "" || got[i].WKT != "" {
					t.Fatalf("a line where none is asked for: %+v", got[i])
				}
				continue
			}
			if got[i].Geometry != nil || len(line) != len(want[i].Geometry) {
				t.Fatalf("%s: %v, want %v", g, line, want[i].Geometry)
			}
			for k := range line {
				if math.Abs(line[k][0]-want[i].Geometry[k][0]) > 5.1e-7 || math.Abs(line[k][1]-want[i].Geometry[k][1]) > 5.1e-7 {
					t.Fatalf("%s: %v, want %v", g, line, want[i].Geometry)
				}
			}
		}
	}
	if len(want) < 10 {
		t.Errorf("only %d spans were compared", len(want))
	}
}

// strip takes the lines off an event.
func strip(e *fleet.Event) {
	for i := range e.Path {
		e.Path[i].Geometry, e.Path[i].Polyline6, e.Path[i].WKT = nil, "", ""
	}
	for _, f := range []*fleet.Final{e.Final, e.Closed} {
		if f != nil {
			for i := range f.Path {
				f.Path[i].Geometry, f.Path[i].Polyline6, f.Path[i].WKT = nil, "", ""
			}
		}
	}
}

// A line of one point or none is still well-known text.
func TestWKTOfShortLines(t *testing.T) {
	for want, line := range map[string][][2]float64{
		"LINESTRING EMPTY": nil, "LINESTRING(9 48,9 48)": {{9, 48}}, "LINESTRING(9 48,9.0000001 48)": {{9, 48}, {9.0000001, 48}},
	} {
		got := fleet.EncodeWKT(line)
		if got != want {
			t.Errorf("%v: %s, want %s", line, got, want)
		}
		if _, err := wkt.UnmarshalLineString(got); err != nil {
			t.Errorf("%s: %v", got, err)
		}
	}
}

// Issue 6, GPX: what is written is read again by name, in order of time, one track a vehicle and one track segment a segment; no line crosses
// the break (M18), and the track passes where the observations were.
func TestGPXIsReadAgain(t *testing.T) {
	m := roadnettest.Parse(t, town)
	text := run(t, m.Graph, options(), drives(m), func(w io.Writer, r *offline.Run) offline.Sink { return offline.NewGPX(w, r.Settle) })
	last, points := map[string]time.Time{}, map[string]int{}
	for fix, err := range tracefile.Read(strings.NewReader(text), "driven.gpx", tracefile.Options{}) {
		if err != nil {
			t.Fatal(err)
		}
		if fix.Time.Before(last[fix.Vehicle]) {
			t.Errorf("%s: %v after %v", fix.Vehicle, fix.Time, last[fix.Vehicle])
		}
		last[fix.Vehicle] = fix.Time
		points[fix.Vehicle]++
	}
	if len(points) != 2 || points["truck 17"] < 4 || points["bus;4"] < 5 {
		t.Errorf("points %v", points)
	}
	var file struct {
		Tracks []struct {
			Segments []struct {
				Points []struct {
					Lat float64 `xml:"lat,attr"`
				} `xml:"trkpt"`
			} `xml:"trkseg"`
		} `xml:"trk"`
	}
	if err := xml.Unmarshal([]byte(text), &file); err != nil {
		t.Fatal(err)
	}
	if len(file.Tracks) != 2 || len(file.Tracks[0].Segments) != 1 || len(file.Tracks[1].Segments) != 2 {
		t.Fatalf("tracks: %+v", file)
	}
	for i, s := range file.Tracks[1].Segments {
		for _, p := range s.Points {
			if (p.Lat < m.Point(0, -2000).Lat) != (i == 1) {
				t.Errorf("segment %d crosses the break", i)
			}
		}
	}
}

// Issue 6, FMM: opath, error and offset have a value an observation, spdist, duration, speed and tpath one fewer; every edge of tpath is in
// cpath, in order; the driven length is that of mgeom.
func TestFMMTable(t *testing.T) {
	m := roadnettest.Parse(t, town)
	text := run(t, m.Graph, options(), drives(m), sinks(m.Graph)["fmm.csv"])
	r := csv.NewReader(strings.NewReader(text))
	r.Comma = ';'
	rows, err := r.ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	if len(rows) != 4 { // a header, the truck's trip and the bus's two segments
		t.Fatalf("%d rows:\n%s", len(rows), text)
	}
	for _, row := range rows[1:] {
		cell := map[string]string{}
		for i, name := range rows[0] {
			cell[name] = row[i]
		}
		n := len(strings.Split(cell["timestamp"], ","))
		for name, want := range map[string]int{
			"opath": n, "error": n, "offset": n, "length": n, "disposition": n, "confidence": n, "spdist": n - 1, "duration": n - 1, "speed": n - 1,
		} {
			if got := len(strings.Split(cell[name], ",")); got != want {
				t.Errorf("%s %s: %d values, want %d: %s", cell["id"], name, got, want, cell[name])
			}
		}
		cpath := strings.Split(cell["cpath"], ",")
		if len(strings.Split(cell["edges"], ",")) != len(cpath) || !strings.HasPrefix(cell["edges"], cpath[0]+":") {
			t.Errorf("%s: edges %s of cpath %s", cell["id"], cell["edges"], cell["cpath"])
		}
		at := 0
		for part := range strings.SplitSeq(cell["tpath"], "|") {
			for edge := range strings.SplitSeq(part, ",") {
				for at < len(cpath) && cpath[at] != edge {
					at++
				}
			}
		}
		if at >= len(cpath) {
			t.Errorf("%s: tpath %s is not along cpath %s", cell["id"], cell["tpath"], cell["cpath"])
		}
		if g, err := wkt.UnmarshalLineString(cell["mgeom"]); err != nil || len(g) < 2 {
			t.Errorf("%s: mgeom %s: %v", cell["id"], cell["mgeom"], err)
		}
	}
	for text, say := range map[string]string{"opath,tp": "FMM's model", "nothing": "none of", "": "none of"} {
		if got, err := offline.ParseFMMFields(text); err == nil || !strings.Contains(err.Error(), say) {
			t.Errorf("fields %q: %v, %v", text, got, err)
		}
	}
	if got, err := offline.ParseFMMFields("mgeom, opath"); err != nil || cmp.Diff([]string{"opath", "mgeom"}, got) != "" {
		t.Errorf("fields in FMM's order: %v, %v", got, err)
	}
}

// Issue 6, --explain: of each observation the candidates, what each costs, which was best at the time and which was chosen in the end. Two
// roads part; what comes later decides, and the explanation says so.
func TestExplainSaysWhatCameLater(t *testing.T) {
	m := roadnettest.Parse(t, "A(0,0)-B(300,0); B-C(900,30); B-D(900,-30)")
	var places [][2]float64
	for x := 60.0; x <= 820; x += 40 {
		y := 0.0
		if x > 300 {
			y = (x - 300) / 20
			if x < 450 {
				y = -y - 4 // at first nearer the other road
			}
		}
		places = append(places, [2]float64{x, y})
	}
	opts := options()
	opts.Explain = true
	text := run(t, m.Graph, opts, header+rows(m, "v", 0, places...), offline.NewExplainJSON)
	changed, n := 0, 0
	for line := range strings.Lines(text) {
		var x offline.Explained
		if err := json.Unmarshal([]byte(line), &x); err != nil {
			t.Fatal(err)
		}
		n++
		best, chosen := 0, 0
		for _, c := range x.Candidates {
			if c.Best {
				best++
			}
			if c.Chosen {
				chosen++
			}
			if c.Chosen && !c.Best {
				changed++
			}
		}
		if x.Why == "" || x.Final == nil || best > 1 || chosen > 1 {
			t.Errorf("%s", line)
		}
	}
	if n != len(places) || changed == 0 {
		t.Errorf("%d observations, of which later ones changed %d; want %d and some", n, changed, len(places))
	}
}

// Spans of one edge are one traversal; a trip's observations lie on the traversals that they were driven on, the second one of an edge that was
// driven twice included.
func TestTrips(t *testing.T) {
	m := roadnettest.Parse(t, "A(0,0)-B(400,0)-C(400,300)-D(0,300)-A; A-E(-300,0)")
	places := [][2]float64{{-200, 2}, {100, 2}, {300, -2}, {402, 150}, {200, 302}, {-2, 150}, {150, 2}, {350, 2}, {352, 1}, {398, 200}}
	var trip *offline.Trip
	run(t, m.Graph, options(), header+rows(m, "v", 0, places...), func(_ io.Writer, r *offline.Run) offline.Sink {
		return offline.NewTrips(r.Settle, func(got *offline.Trip) error { trip = got; return nil })
	})
	if trip == nil || len(trip.Segments) != 1 || len(trip.Observations) != len(places) || trip.Share() != 1 {
		t.Fatalf("trip %+v", trip)
	}
	path := trip.Segments[0].Edges()
	for i := range path {
		if i > 0 && (path[i].From != path[i-1].To || path[i].FromM != 0) {
			t.Errorf("span %d begins at %v m of %d, the one before ends at %d", i, path[i].FromM, path[i].From, path[i-1].To)
		}
		if n := len(path[i].Nodes); n < 2 || path[i].Nodes[0] != path[i].From || path[i].Nodes[n-1] != path[i].To {
			t.Errorf("span %d from %d to %d has nodes %v", i, path[i].From, path[i].To, path[i].Nodes)
		}
	}
	var at []string
	on := offline.OnPath(path, trip.Observations)
	for i, k := range on {
		if k < 0 || i > 0 && k < on[i-1] {
			t.Fatalf("observation %d lies on %d of %v", i, k, on)
		}
		at = append(at, m.NodeName(path[k].From)+m.NodeName(path[k].To))
	}
	if d := cmp.Diff(strings.Fields("EA AC AC AC CD DA AC AC AC AC"), at); d != "" {
		t.Error(d)
	}
	if on[1] == on[6] {
		t.Errorf("the second round lies on the first: %v", on)
	}
}

// A7, M44: with a catalog a trace goes from map to map; what was driven on the first is final, the change is announced, and the second
// goes on where it was left.
func TestMatchOverRegions(t *testing.T) {
	world, m := regions(t)
	engine, err := offline.NewEngine(world, options().Matcher)
	if err != nil {
		t.Fatal(err)
	}
	var places [][2]float64
	for x := 9000.0; x <= 12000; x += 150 {
		places = append(places, [2]float64{x, 3})
	}
	for range 2 { // an engine serves run after run
		r, err := engine.NewRun(options())
		if err != nil {
			t.Fatal(err)
		}
		var trip *offline.Trip
		var table bytes.Buffer
		r.AddSink(offline.NewTrips(r.Settle, func(got *offline.Trip) error { trip = got; return nil }))
		r.AddSink(offline.NewTable(&table, offline.NewLocator(roadnet.Car, world.Graphs...), r.Settle))
		if err := r.File(strings.NewReader(header+rows(m, "v", 0, places...)), "t.csv", tracefile.Options{}, func(e *tracefile.RowError) { t.Error(e) }); err != nil {
			t.Fatal(err)
		}
		summary, err := r.Close()
		if err != nil {
			t.Fatal(err)
		}
		if summary.Segments != 2 || len(trip.Segments) != 2 || trip.Segments[1].Reset != fleet.ResetGraphChange || trip.Share() != 1 {
			t.Fatalf("summary %+v, trip %+v", summary, trip)
		}
		length := 0.0
		for _, s := range trip.Segments {
			for _, p := range s.Path {
				length += p.ToM - p.FromM
			}
		}
		if math.Abs(length-3000) > 20 {
			t.Errorf("%.0f m were driven, want 3000", length)
		}
		for i, row := range readCSV(t, table.Bytes()) {
			if row["from"] == "0" || row["from"] == "" {
				t.Errorf("row %d: %v", i, row)
			}
		}
	}
}

// Issue 6, --vehicle: a class that a map was not made for is refused by name.
func TestVehicleOfTheMap(t *testing.T) {
	m := roadnettest.Parse(t, town)
	cfg := options().Matcher
	cfg.Vehicle = roadnet.Bicycle
	if _, err := offline.NewEngine(offline.OneMap(m.Graph), cfg); err == nil || !strings.Contains(err.Error(), "no roads for a bicycle, only for car") {
		t.Errorf("a map of cars, for a bicycle: %v", err)
	}
	m = roadnettest.ParseFor(t, roadnet.ImportOptions{Vehicles: roadnet.AllVehicles()}, "A(0,0)-B(600,0) highway=cycleway; A-C(0,12); C-D(600,12)")
	for vehicle, way := range map[roadnet.Vehicle]string{roadnet.Car: "w3", roadnet.Bicycle: "w1"} {
		opts := options()
		opts.Matcher.Vehicle = vehicle
		out := run(t, m.Graph, opts, header+rows(m, "v", 0, [2]float64{50, 1}, [2]float64{250, 1}, [2]float64{450, 1}), func(w io.Writer, _ *offline.Run) offline.Sink { return offline.NewRoute(w) })
		if want := fmt.Sprintf("v,%d,", m.Way(way)); !strings.Contains(out, want) {
			t.Errorf("%v: %s, want way %s", vehicle, out, want)
		}
	}
}

// regions are two maps of one road of 27 km; the border of their cells is 10.5 km from its start.
func regions(t *testing.T) (offline.World, *roadnettest.Map) {
	t.Helper()
	const road = "A(0,0)-B(9000,0)-C(18000,0)-D(27000,0)"
	west := roadnettest.Parse(t, road)
	east := roadnettest.Parse(t, road+"; X(20000,500)-Y(21000,500)") // of another hash
	c, err := catalog.Parse("test.toml", []byte(`version = 1
[[region]]
id = "west"
graph = "g"
coverage = ["u0w3"]
[[region]]
id = "east"
graph = "g"
coverage = ["u0w9"]
`))
	if err != nil {
		t.Fatal(err)
	}
	graphs := []*roadnet.Graph{west.Graph, east.Graph}
	atlas, err := fleet.NewAtlas(c, []fleet.Map{fleet.MapOf(graphs[0]), fleet.MapOf(graphs[1])})
	if err != nil {
		t.Fatal(err)
	}
	return offline.World{Atlas: atlas, Graphs: graphs}, west
}

// golden compares with a file under testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	goldentest.Compare(t, filepath.Join("testdata", name), got)
}
