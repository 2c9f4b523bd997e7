package offline_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"milepost/internal/fleet"
	"milepost/internal/fleet/offline"
	"milepost/internal/roadnet"
	"milepost/internal/roadnet/roadnettest"
	"milepost/internal/tracefile"
)

// two roads that meet at B, and an island to the south.
const roads = `A(0,0)-B(1000,0)-C(2000,0); B-E(1000,1000); S(0,-4000)-T(2000,-4000)`

// outcome is what a run over one CSV text gave.
type outcome struct {
	table, route, events, geo string
	refused                   []string
	summary                   offline.Summary
}

func matchText(t *testing.T, m *roadnettest.Map, opts offline.Options, text string) outcome {
	t.Helper()
	run, err := offline.New(m.Graph, opts)
	if err != nil {
		t.Fatal(err)
	}
	var table, route, events, geo bytes.Buffer
	run.AddSink(offline.NewTable(&table, offline.NewLocator(roadnet.Car, m.Graph), run.Settle))
	run.AddSink(offline.NewRoute(&route))
	run.AddSink(offline.NewJSON(&events, fleet.Coordinates))
	run.AddSink(offline.NewGeoJSON(&geo, run.Settle))
	var out outcome
	err = run.File(strings.NewReader(text), "dir/t.csv", tracefile.Options{}, func(e *tracefile.RowError) { out.refused = append(out.refused, e.Error()) })
	if err != nil {
		t.Fatal(err)
	}
	if out.summary, err = run.Close(); err != nil {
		t.Fatal(err)
	}
	out.table, out.route, out.events, out.geo = table.String(), route.String(), events.String(), geo.String()
	return out
}

// rows writes CSV rows of places in metres, one every 10 s from the given second.
func rows(m *roadnettest.Map, vehicle string, from int, places ...[2]float64) string {
	var b strings.Builder
	for i, p := range places {
		at := m.Point(p[0], p[1])
		fmt.Fprintf(&b, "%s,%d,%.7f,%.7f,5\n", vehicle, (from+10*i)*1000, at.Lon, at.Lat)
	}
	return b.String()
}

const header = "vehicle,t_ms,lon,lat,accuracy_m\n"

// Issue 3, match: one row an observation in the input's order, with the pair of neighbouring OSM nodes; the route has one row a pair and
// traversal, grouped by vehicle, both ends included; a bad row is refused and the good ones go in. Two vehicles interleave.
func TestRowsAndRoute(t *testing.T) {
	m := roadnettest.Parse(t, roads)
	a := strings.SplitAfter(rows(m, "a", 0, [2]float64{100, 3}, [2]float64{400, 3}, [2]float64{700, -3}, [2]float64{1003, 300}, [2]float64{1003, 600}), "\n")
	b := strings.SplitAfter(rows(m, "b,1", 0, [2]float64{1900, 2}, [2]float64{1600, 2}, [2]float64{1300, 2}, [2]float64{900, 2}, [2]float64{600, 2}), "\n")
	text := header
	for i := range 5 {
		text += a[i] + strings.Replace(b[i], "b,1", `"b,1"`, 1)
		if i == 2 {
			text += "a,1,999,5,5\n"
		}
	}
	out := matchText(t, m, options(), text)
	if d := cmp.Diff([]string{`t.csv:8: column "lon": lon 999 is out of range`}, out.refused); d != "" {
		t.Error(d)
	}
	node := func(name string) string { return fmt.Sprint(m.Node(name)) }
	way := func(name string) string { return fmt.Sprint(m.Way(name)) }
	wantRoute := offline.RouteHeader + "\n" +
		"a," + way("w1") + "," + node("A") + "," + node("B") + "\n" +
		"a," + way("w2") + "," + node("B") + "," + node("E") + "\n" +
		`"b,1",` + way("w1") + "," + node("C") + "," + node("B") + "\n" +
		`"b,1",` + way("w1") + "," + node("B") + "," + node("A") + "\n"
	if d := cmp.Diff(wantRoute, out.route); d != "" {
		t.Error(d)
	}
	got := readCSV(t, []byte(out.table))
	if len(got) != 10 {
		t.Fatalf("%d rows, want 10:\n%s", len(got), out.table)
	}
	for i, row := range got {
		if want := []string{"a", "b,1"}[i%2]; row["vehicle"] != want || row["seq"] != fmt.Sprint(i/2) {
			t.Errorf("row %d is %s %s", i, row["vehicle"], row["seq"])
		}
	}
	want := map[string]string{
		"vehicle": "a", "seq": "3", "time": "1970-01-01T00:00:30Z", "disposition": fleet.Matched, "way": way("w2"), "from": node("B"), "to": node("E"),
		"segment": "1",
	}
	row := got[6]
	for name, v := range want {
		if row[name] != v {
			t.Errorf("%s is %q, want %q", name, row[name], v)
		}
	}
	if off := row["offset_m"]; off < "299" || off > "301" {
		t.Errorf("offset %s, want 300 from B", off)
	}
	if out.summary.Refused != 1 || out.summary.Observations != 10 || out.summary.Vehicles != 2 || out.summary.Segments != 2 {
		t.Errorf("summary %+v", out.summary)
	}
}

// M15, M16, M17, M18, M47: an outlier's and an off-road row's place is absent; two islands are two segments, and no line crosses the break; the
// table's rows of one vehicle with a break keep their places.
func TestBreaks(t *testing.T) {
	m := roadnettest.Parse(t, roads)
	text := header + rows(m, "v", 0,
		[2]float64{100, 3}, [2]float64{300, 3}, [2]float64{500, -2500}, [2]float64{700, 3}, [2]float64{900, 3}) +
		rows(m, "v", 400, [2]float64{100, -4003}, [2]float64{300, -4003}, [2]float64{500, -4003}) +
		rows(m, "v", 420, [2]float64{500, -4003}) + rows(m, "v", 430, [2]float64{0, 90_000})
	out := matchText(t, m, options(), text)
	var dispositions, segments []string
	for i, row := range readCSV(t, []byte(out.table)) {
		dispositions, segments = append(dispositions, row["disposition"]), append(segments, row["segment"])
		if (row["way"] != "") != (row["disposition"] == fleet.Matched) || (row["lon"] != "") != (row["way"] != "") {
			t.Errorf("row %d: %v", i, row)
		}
	}
	want := []string{"matched", "matched", "outlier", "matched", "matched", "matched", "matched", "matched", "timestamp_regression", "unsupported_coverage"}
	if d := cmp.Diff(want, dispositions); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff(strings.Split("1111122222", ""), segments); d != "" {
		t.Error(d)
	}
	var collection struct {
		Type     string
		Features []struct {
			Properties struct {
				Reset        string
				Segment      int
				Observations int
				Dispositions map[string]int
			}
			Geometry struct {
				Type        string
				Coordinates json.RawMessage
			}
		}
	}
	if err := json.Unmarshal([]byte(out.geo), &collection); err != nil {
		t.Fatal(err)
	}
	points := 0
	for _, f := range collection.Features {
		if f.Geometry.Type == "Point" {
			points++
			continue
		}
		i, south := f.Properties.Segment-1, f.Properties.Segment == 2
		var line [][2]float64
		if err := json.Unmarshal(f.Geometry.Coordinates, &line); err != nil || len(line) < 2 {
			t.Fatalf("segment %d: %s, %v", i+1, f.Geometry.Coordinates, err)
		}
		if p := f.Properties; south && (p.Reset != fleet.ResetGap || p.Observations != 5 || p.Dispositions["matched"] != 3) {
			t.Errorf("second segment: %+v", p)
		}
		for _, c := range line {
			if (c[1] < m.Point(0, -2000).Lat) != south {
				t.Errorf("segment %d's line crosses the break: %v", i+1, c)
			}
		}
	}
	if points != 10 || len(collection.Features) != 12 {
		t.Errorf("%d points of %d features, want one an observation and one line a segment", points, len(collection.Features))
	}
}

// Issue 3: traces without times go through with an assumed step, and are refused without one, row by row.
func TestAssumeStep(t *testing.T) {
	m := roadnettest.Parse(t, roads)
	text := "lon,lat\n"
	for x := range 5 {
		p := m.Point(100+20*float64(x), 0)
		text += fmt.Sprintf("%.7f,%.7f\n", p.Lon, p.Lat)
	}
	out := matchText(t, m, options(), text)
	if len(out.refused) != 5 || !strings.HasPrefix(out.refused[0], "t.csv:2: the fix has no time; give --assume-step") || out.summary.Observations != 0 {
		t.Errorf("without a step: %v, %+v", out.refused, out.summary)
	}
	if out.table != offline.Header+"\n" || out.route != offline.RouteHeader+"\n" || !json.Valid([]byte(out.geo)) {
		t.Errorf("empty outputs: %q %q %q", out.table, out.route, out.geo)
	}
	opts := options()
	opts.AssumeStep = 2 * time.Second
	out = matchText(t, m, opts, text)
	rows := readCSV(t, []byte(out.table))
	if len(rows) != 5 || rows[4]["time"] != "1970-01-01T00:00:08Z" || rows[4]["disposition"] != fleet.Matched || rows[4]["vehicle"] != "t" {
		t.Errorf("with a step: %v", rows)
	}
}

// I16: the same input gives the same bytes, in every form.
func TestDeterministic(t *testing.T) {
	m := roadnettest.Parse(t, roads)
	text := header
	for i := range 30 {
		text += rows(m, fmt.Sprintf("v%d", i%7), i*10, [2]float64{float64(i * 60), float64(i%5 - 2)})
	}
	a, b := matchText(t, m, options(), text), matchText(t, m, options(), text)
	if d := cmp.Diff(a, b, cmp.AllowUnexported(outcome{})); d != "" {
		t.Error(d)
	}
}

// brokenWriter fails after n bytes.
type brokenWriter struct{ n int }

var errFull = errors.New("disk full")

func (w *brokenWriter) Write(p []byte) (int, error) {
	if w.n -= len(p); w.n < 0 {
		return 0, errFull
	}
	return len(p), nil
}

// A sink's error ends the run, and is told.
func TestSinkErrors(t *testing.T) {
	m := roadnettest.Parse(t, roads)
	text := header + rows(m, "v", 0, [2]float64{100, 3}, [2]float64{300, 3}, [2]float64{500, 3})
	for name, sink := range map[string]func(*offline.Run) offline.Sink{
		"table": func(r *offline.Run) offline.Sink {
			return offline.NewTable(&brokenWriter{}, offline.NewLocator(roadnet.Car, m.Graph), r.Settle)
		},
		"route":   func(*offline.Run) offline.Sink { return offline.NewRoute(&brokenWriter{}) },
		"events":  func(*offline.Run) offline.Sink { return offline.NewJSON(&brokenWriter{}, fleet.Coordinates) },
		"geojson": func(r *offline.Run) offline.Sink { return offline.NewGeoJSON(&brokenWriter{}, r.Settle) },
	} {
		run, err := offline.New(m.Graph, options())
		if err != nil {
			t.Fatal(err)
		}
		run.AddSink(sink(run))
		err = run.File(strings.NewReader(text), "t.csv", tracefile.Options{}, func(e *tracefile.RowError) { t.Error(e) })
		if err == nil {
			_, err = run.Close()
		}
		if !errors.Is(err, errFull) {
			t.Errorf("%s: got %v, want the writer's error", name, err)
		}
	}
}

// The locator finds the neighbouring nodes within an edge, and of two arcs with one key the one that the place is on.
func TestLocator(t *testing.T) {
	m := roadnettest.Parse(t, "A(0,0)-B(100,0)-X(200,100)-C(100,200)-A; C-Z(100,400); A-Y(-100,0); "+
		"P(1000,0)-Q(1100,50)-R(1200,0)-U(1100,-50)-P; R-K(1400,0); P-L(900,0)")
	l := offline.NewLocator(roadnet.Car, m.Graph)
	for _, c := range []struct {
		x, y     float64
		from, to string
	}{{50, 0, "A", "B"}, {150, 50, "B", "X"}, {1050, 25, "P", "Q"}, {1050, -25, "P", "U"}} {
		found := false
		for _, h := range m.Graph.Near(nil, m.Point(c.x, c.y), 5) {
			k := m.Graph.Key(h.Edge)
			p := &fleet.Place{Way: k.Way, From: k.From, To: k.To, OffsetM: float64(h.AlongCM) / 100, Lon: h.Point.Lon, Lat: h.Point.Lat}
			from, to, off := l.Locate(p)
			if from == m.Node(c.from) && to == m.Node(c.to) {
				found = true
				if off < 40 || off > 80 {
					t.Errorf("(%v,%v): %v m from %s", c.x, c.y, off, c.from)
				}
			} else if from != m.Node(c.to) || to != m.Node(c.from) {
				t.Errorf("(%v,%v) is between %s and %s, want %s and %s", c.x, c.y, m.NodeName(from), m.NodeName(to), c.from, c.to)
			}
		}
		if !found {
			t.Errorf("(%v,%v): no edge from %s to %s", c.x, c.y, c.from, c.to)
		}
	}
	if from, to, _ := l.Locate(&fleet.Place{Way: 1, From: 2, To: 3}); from != 0 || to != 0 {
		t.Errorf("an unknown edge is between %d and %d", from, to)
	}
}

// A trace of one vehicle that ends early does not hold the rows of a long file: beyond the bound its rows take the best places known (O2).
func TestWaitingRowsAreBounded(t *testing.T) {
	m := roadnettest.Parse(t, roads)
	text := header + rows(m, "early", 0, [2]float64{100, 3}, [2]float64{300, 3}, [2]float64{500, 3})
	for i := range 60 {
		text += rows(m, "late", i*10, [2]float64{float64(100 + 10*i), 3})
	}
	unbounded := matchText(t, m, options(), text)
	run, err := offline.New(m.Graph, options())
	if err != nil {
		t.Fatal(err)
	}
	var table bytes.Buffer
	run.AddSink(offline.NewBoundedTable(&table, offline.NewLocator(roadnet.Car, m.Graph), run.Settle, 10))
	if err := run.File(strings.NewReader(text), "t.csv", tracefile.Options{}, func(e *tracefile.RowError) { t.Error(e) }); err != nil {
		t.Fatal(err)
	}
	if _, err := run.Close(); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(unbounded.table, table.String()); d != "" {
		t.Errorf("rows differ with the bound: %s", d)
	}
}
