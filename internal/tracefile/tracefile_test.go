package tracefile_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"math"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"milepost/internal/tracefile"
)

// show writes what a file gave, a line a row.
func show(in io.Reader, name string, opts tracefile.Options) []string {
	var out []string
	for fix, err := range tracefile.Read(in, name, opts) {
		var row *tracefile.RowError
		switch {
		case errors.As(err, &row):
			s := err.Error()
			if row.Fatal {
				s += " (end)"
			}
			out = append(out, s)
		case err != nil:
			out = append(out, "not a row error: "+err.Error())
		default:
			s := fmt.Sprintf("%d %s %v %v", fix.Line, fix.Vehicle, fix.Lon, fix.Lat)
			if fix.HasTime() {
				s += " " + fix.Time.Format(time.RFC3339Nano)
			}
			for _, o := range []struct {
				name string
				v    float64
			}{{"speed", fix.SpeedMPS}, {"heading", fix.HeadingDeg}, {"accuracy", fix.AccuracyM}} {
				if !math.IsNaN(o.v) {
					s += fmt.Sprintf(" %s=%v", o.name, o.v)
				}
			}
			out = append(out, s)
		}
	}
	return out
}

type readCase struct {
	name, file, text, columns string
	want                      []string
}

func run(t *testing.T, cases []readCase) {
	t.Helper()
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			columns, err := tracefile.ParseColumns(c.columns)
			if err != nil {
				t.Fatal(err)
			}
			got := show(strings.NewReader(c.text), "/some/where/"+c.file, tracefile.Options{Columns: columns, MaxRow: 1000})
			if d := cmp.Diff(c.want, got); d != "" {
				t.Error(d)
			}
		})
	}
}

// Issue 3, "Must hold": a wrong column, NaN, swapped and out-of-range coordinates: each a clear error that names file, line and reason, and the
// good rows still go in.
func TestCSV(t *testing.T) {
	run(t, []readCase{
		{
			"all columns, others ignored", "a.csv",
			"\ufeffvehicle,kind,t_ms,lon,lat,speed_mps,heading_deg,accuracy_m\r\nv1,ok,1500,7.1,50.2,3,90,5\r\n\r\n\"v,\"\"2\", stop ,0,-7,-50,,-1,nan\r\n", "",
			[]string{
				"2 v1 7.1 50.2 1970-01-01T00:00:01.5Z speed=3 heading=90 accuracy=5",
				`4 v,"2 -7 -50 1970-01-01T00:00:00Z`,
			},
		},
		{
			"bad rows", "bad.csv",
			"lon,lat,time\n7,50,2026-01-01T00:00:00Z\nNaN,50,\n7,inf,\n7,,\n7,x,\n39.7,-100.5,\n-200,50,\n179,99,\n0,0,\n7\n7,50,yesterday\n\"7,50\n7,\"50\"x\n8,51,\n", "",
			[]string{
				"2 bad 7 50 2026-01-01T00:00:00Z",
				`bad.csv:3: column "lon": lon is not a finite number`,
				`bad.csv:4: column "lat": lat is not a finite number`,
				`bad.csv:5: column "lat": lat is empty`,
				`bad.csv:6: column "lat": lat is not a number`,
				`bad.csv:7: column "lat": lat -100.5 is out of range; are lon and lat swapped?`,
				`bad.csv:8: column "lon": lon -200 is out of range`,
				`bad.csv:9: column "lat": lat 99 is out of range`,
				`bad.csv:10: column "lon": lon and lat are both 0: no position`,
				`bad.csv:11: column "lat": the row has 1 fields only`,
				`bad.csv:12: column "time": not a time: want RFC 3339, such as 2026-01-31T08:15:30Z`,
				"bad.csv:13: a quote is not closed on its line",
				"bad.csv:14: text stands between a closing quote and the next field",
				"15 bad 8 51",
			},
		},
		{
			"milliseconds of microseconds", "m.csv", "t_ms,lon,lat\n1615703474876000,7,50\n1.5,7,50\n", "",
			[]string{
				`m.csv:2: column "t_ms": the time is outside the years 1 to 9999; is the unit right?`,
				`m.csv:3: column "t_ms": not a whole number of milliseconds`,
			},
		},
		{
			"wrong column", "w.csv", "vehicle,latitude,lon\nv,1,2\n", "",
			[]string{`w.csv:1: column "lat": the column is missing; the file has vehicle, latitude, lon; map another name with lat=NAME (end)`},
		},
		{
			"mapped to a wrong column", "w.csv", "latitude,lon\n1,2\n", "lat=breite",
			[]string{`w.csv:1: column "breite": there is no such column; the file has latitude, lon (end)`},
		},
		{"twice", "w.csv", "lat,lon,lat\n1,2,3\n", "", []string{`w.csv:1: column "lat": the column is there twice (end)`}},
		{"empty", "e.csv", " \n\n", "", []string{"e.csv: the file is empty: a CSV file begins with a header (end)"}},
		{
			"semicolons, WKT, two time columns", "x.txt", "id;day;clock;where\n3;17-Jan-2009;20:27:37;POINT (7.5 50.25)\n4;x;y;LINE(1 2)\n",
			"vehicle=id, point=where, time=day+clock",
			[]string{"2 3 7.5 50.25 2009-01-17T20:27:37Z", `x.txt:3: column "where": not a WKT point: want POINT(lon lat)`},
		},
		{"tabs and seconds", "x.tsv", "lon\tlat\tt_s\n1\t2\t0.25\n", "", []string{"2 x 1 2 1970-01-01T00:00:00.25Z"}},
		{
			"long lines", "l.csv", "lon,lat\n1,2\n" + strings.Repeat("9", 1001) + "\n3,4\n" + strings.Repeat("9", 100_000), "",
			[]string{"2 l 1 2", "l.csv:3: the line is longer than 1000 bytes: skipped", "4 l 3 4", "l.csv:5: the line is longer than 1000 bytes: skipped"},
		},
		{"long header", "l.csv", strings.Repeat("h", 2000) + "\n1,2\n", "", []string{"l.csv:1: the header is longer than 1000 bytes: skipped (end)"}},
		{"unknown format", "x.shp", "", "", []string{`x.shp: unknown format ".shp": want gpx, csv, jsonl, geojson or fmm (end)`}},
	})
}

// Issue 3, "Must hold": a truncated GPX gives its good points, then one error with the line. Tracks are vehicles.
func TestGPX(t *testing.T) {
	const head = "<?xml version=\"1.0\"?>\n<gpx xmlns=\"x\"><metadata><time>2026-01-01T00:00:00Z</time></metadata>\n"
	run(t, []readCase{
		{
			"tracks, extensions, routes", "g.gpx", head + `<wpt lat="1" lon="2"/><trk><trkseg><trkpt lat="50" lon="7"><ele>3</ele><time>2026-01-01T00:00:00.5Z</time>
<extensions><e:speed xmlns:e="e">4</e:speed><e:course xmlns:e="e">90</e:course></extensions></trkpt>
</trkseg></trk><trk><trkseg><trkpt lon="7" lat="51"/></trkseg></trk></gpx>`, "",
			[]string{"3 g 7 50 2026-01-01T00:00:00.5Z speed=4 heading=90", "5 g-2 7 51"},
		},
		{
			"truncated", "t.gpx", head + "<trk><trkseg><trkpt lat=\"50\" lon=\"7\"/>\n<trkpt lat=\"51\" lon=\"7\"/>\n<trkpt lat=\"52\" lo", "",
			[]string{"3 t 7 50", "4 t 7 51", "t.gpx:5: the file ends in the middle: it is truncated (end)"},
		},
		{
			"bad points", "b.gpx", head + `<trk><trkseg><trkpt lat="NaN" lon="7"/><trkpt lat="91" lon="7"/><trkpt lon="7"/><trkpt lat="50" lon="7"><time>noon</time></trkpt><trkpt lat="50" lon="8"/></trkseg></trk></gpx>`, "",
			[]string{
				`b.gpx:3: attribute lat of <trkpt>: lat is not a finite number`,
				`b.gpx:3: attribute lat of <trkpt>: lat 91 is out of range; are lon and lat swapped?`,
				`b.gpx:3: attribute lat of <trkpt>: lat is empty`,
				`b.gpx:3: element <time>: not a time: want RFC 3339, such as 2026-01-31T08:15:30Z`,
				"3 b 8 50",
			},
		},
		{"not XML", "n.gpx", "lon,lat\n", "", []string{"n.gpx: not a GPX file: it has no element (end)"}},
		{"other XML", "n.gpx", "<kml></kml>", "", []string{"n.gpx:1: not a GPX file: its first element is another one (end)"}},
		{"mismatched", "n.gpx", "<gpx></trk>", "", []string{"n.gpx:1: not XML: element <gpx> closed by </trk> (end)"}},
		{"only routes", "n.gpx", "<gpx><rte><rtept lat=\"1\" lon=\"2\"/></rte></gpx>", "", []string{"n.gpx: no track points; 1 route points or waypoints, which are no positions of a vehicle (end)"}},
		{"empty", "n.gpx", "", "", []string{"n.gpx: the file is empty (end)"}},
		{"huge element", "h.gpx", "<gpx><trk><name>" + strings.Repeat("n", 2000) + "</name></trk></gpx>", "", []string{"h.gpx:1: one element or text is longer than 1000 bytes (end)"}},
		{"nested", "h.gpx", "<gpx>" + strings.Repeat("<a>", 70), "", []string{"h.gpx:1: elements are nested deeper than 64 (end)"}},
		{
			"latin 1", "l.gpx", "<?xml version=\"1.0\" encoding=\"ISO-8859-1\"?><gpx><trk><name>M\xfcnchen</name><trkpt lat=\"48\" lon=\"11\"/></trk></gpx>", "",
			[]string{"1 München 11 48"},
		},
	})
}

// Issue 6: a track's name is its vehicle's, whatever stands in it; only its own name, and tracks of one name are one vehicle's.
func TestGPXNames(t *testing.T) {
	const point = `<trkseg><trkpt lat="50" lon="7"/></trkseg>`
	run(t, []readCase{{
		"names", "g.gpx", `<gpx><metadata><name>file</name></metadata><wpt lat="1" lon="2"><name>pub</name></wpt>` +
			"<trk><name>\n truck <![CDATA[<17>]]> </name>" + point + "</trk><trk><name/>" + point + "</trk><trk>" + point + "</trk>" +
			`<trk><extensions><name>inner</name></extensions><name>bus</name><trkseg><trkpt lat="50" lon="7"><name>x</name></trkpt></trkseg></trk>` +
			"<trk><name>bus</name>" + point + "</trk><trk><name>" + strings.Repeat("n", 600) + "</name>" + point + "</trk></gpx>", "",
		[]string{"2 truck <17> 7 50", "2 g-2 7 50", "2 g-3 7 50", "2 bus 7 50", "2 bus 7 50", "2 g-6 7 50"},
	}})
}

// Issue 6: FMM's two tables are read as FMM reads them, by their header or by name; a point that is none costs that point, a row that is none
// that row.
func TestFMM(t *testing.T) {
	run(t, []readCase{
		{
			"trajectories with times", "trips.csv", "id;geom;timestamp\n1;LINESTRING(7 50,7.5 50.5);10,12.5\n2; linestring ( 7 51 3 , 8 51 ) ;0,1\n", "",
			[]string{
				"2 1 7 50 1970-01-01T00:00:10Z", "2 1 7.5 50.5 1970-01-01T00:00:12.5Z",
				"3 2 7 51 1970-01-01T00:00:00Z", "3 2 8 51 1970-01-01T00:00:01Z",
			},
		},
		{"without times, quoted commas", "trips.csv", "geom,id\n\"LINESTRING(7 50,7.5 50.5)\",a\n", "", []string{"2 a 7 50", "2 a 7.5 50.5"}},
		{
			"other names", "t.csv", "nr;wkt;clock\n4;LINESTRING(7 50);2026-01-01T00:00:00Z\n", "vehicle=nr,geom=wkt,time=clock",
			[]string{"2 4 7 50 2026-01-01T00:00:00Z"},
		},
		{
			"bad trajectories", "b.csv", "id;geom;timestamp\n1;LINESTRING(7 50,95 91,x,7 NaN,7 51);1,2,3,4,x\n2;POINT(7 50);1\n3;LINESTRING(7 50,8 50);1,2,3\n" +
				"4;LINESTRING EMPTY;\n5;LINESTRING();\n6\n7;LINESTRING(7 52);\n", "",
			[]string{
				"2 1 7 50 1970-01-01T00:00:01Z",
				`b.csv:2: column "geom": point 2: lat 91 is out of range`,
				`b.csv:2: column "geom": point 3 is not two numbers`,
				`b.csv:2: column "geom": point 4: lat is not a finite number`,
				`b.csv:2: column "timestamp": point 5: not a number of seconds since 1970`,
				`b.csv:3: column "geom": not a WKT line: want LINESTRING(lon lat,lon lat,…)`,
				`b.csv:4: column "timestamp": 3 times for 2 points`,
				`b.csv:5: column "geom": not a WKT line: want LINESTRING(lon lat,lon lat,…)`,
				`b.csv:6: column "geom": point 1 is not two numbers`,
				`b.csv:7: column "geom": the row has 1 fields only`,
				"8 7 7 52",
			},
		},
		{
			"points", "gps.csv", "id;x;y;timestamp\n1;7;50;3\n2;8;50;4.5\n", "",
			[]string{"2 1 7 50 1970-01-01T00:00:03Z", "3 2 8 50 1970-01-01T00:00:04.5Z"},
		},
		{"lon and lat go before a geometry", "p.csv", "id;geom;lon;lat\n1;LINESTRING(1 2);7;50\n", "vehicle=id", []string{"2 1 7 50"}},
		{
			"a long line", "l.csv", "id;geom\n1;LINESTRING(" + strings.Repeat("7 50,", 300) + "7 50)\n2;LINESTRING(7 51)\n", "",
			[]string{"l.csv:2: the line is longer than 1000 bytes: skipped", "3 2 7 51"},
		},
	})
	for name, text := range map[string]string{"points": "id;x;y\n1;7;50\n", "lines": "id;geom\n1;LINESTRING(7 50)\n"} {
		got := show(strings.NewReader(text), "-", tracefile.Options{Format: tracefile.FMM})
		if d := cmp.Diff([]string{"2 1 7 50"}, got); d != "" {
			t.Errorf("%s by the format's name: %s", name, d)
		}
	}
}

// T3: a trajectory of two hundred thousand points is one row, and is read whole where nothing else is asked for.
func TestLongTrajectory(t *testing.T) {
	const points = 200_000
	text := "id;geom\n1;LINESTRING(7 50" + strings.Repeat(",7.0000001 50.0000001", points-1) + ")\n"
	n := 0
	for _, err := range tracefile.Read(strings.NewReader(text), "t.csv", tracefile.Options{}) {
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	if n != points {
		t.Errorf("%d points, want %d", n, points)
	}
}

// Issue 3: JSON lines, and what comes near: arrays of objects, GeoJSON points. One broken line costs one row.
func TestJSON(t *testing.T) {
	run(t, []readCase{
		{
			"lines", "j.jsonl", `{"vehicle":"a","t_ms":0,"lon":7,"lat":50,"speed_mps":2.5}
{"vehicle":7,"lon":7,"lat":50
{"lon":NaN,"lat":50}

[1]
{"lon":[7],"lat":50}
{"vehicle":7,"lon":"7","lat":51,"time":null}
` + `{"x":"` + strings.Repeat("x", 1000) + `"}
{"lon":1,"lat":95}`, "",
			[]string{
				"1 a 7 50 1970-01-01T00:00:00Z speed=2.5",
				"j.jsonl:2: not a JSON object",
				"j.jsonl:3: not a JSON object: NaN and Infinity are no JSON numbers",
				"j.jsonl:5: not a JSON object",
				`j.jsonl:6: field "lon": neither a number nor text`,
				"7 7 7 51",
				"j.jsonl:8: the line is longer than 1000 bytes: skipped",
				`j.jsonl:9: field "lat": lat 95 is out of range; are lon and lat swapped?`,
			},
		},
		{
			"array", "a.json", ` [ {"point":"POINT(7 50)","time":"2014-09-10 06:54:07+0200","id":"\\x01 [{"},
 5, "x", {"lon":1,"lat":2}, {"y":"` + strings.Repeat("y", 1000) + `"},
 {"lon":3,"lat":4}`, "vehicle=id",
			[]string{
				`1 \x01 [{ 7 50 2014-09-10T04:54:07Z`, "a.json:2: not a JSON object", "a.json:2: not a JSON object", "2 a 1 2",
				"a.json:2: the element is longer than 1000 bytes: skipped", "3 a 3 4", "a.json:3: the file ends in the middle: it is truncated (end)",
			},
		},
		{
			"geojson", "p.geojson", `{"type":"FeatureCollection","crs":{"features":[1]},"features" : [
{"type":"Feature","properties":{"id":4,"time":"2026-01-01T00:00:00Z"},"geometry":{"type":"Point","coordinates":[7,50,3]}},
{"type":"Feature","properties":null,"geometry":{"type":"LineString","coordinates":[[7,50]]}},
{"type":"Feature","properties":{},"geometry":{"type":"Point","coordinates":[7]}},
{"type":"Feature","geometry":null}],"x":1}`, "vehicle=id",
			[]string{
				"2 4 7 50 2026-01-01T00:00:00Z",
				`p.geojson:3: field "geometry": a LineString: only points are positions of a vehicle`,
				`p.geojson:4: field "geometry": the point has no two numbers`,
				`p.geojson:5: field "geometry": the feature has no geometry`,
			},
		},
		{"geojson without features", "p.geojson", `{"type":"LineString","coordinates":[[1,2]]}`, "", []string{"p.geojson:1: no array of features: want a GeoJSON FeatureCollection of points (end)"}},
		{"empty", "e.json", "\n ", "", []string{"e.json: the file is empty (end)"}},
	})
}

// T3: packed files are recognised by their content; a broken archive is a clear error.
func TestPacked(t *testing.T) {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := io.WriteString(z, "lon,lat\n1,2\n3,4\n"); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		b    []byte
		want []string
	}{
		{"p.csv.gz", b.Bytes(), []string{"2 p 1 2", "3 p 3 4"}},
		{"p.csv", b.Bytes(), []string{"2 p 1 2", "3 p 3 4"}},
		{"cut.csv.gz", b.Bytes()[:b.Len()-9], []string{"2 cut 1 2", "3 cut 3 4", "cut.csv.gz:4: the file ends in the middle: it is truncated (end)"}},
		{"bad.csv.gz", []byte{0x1f, 0x8b, 0xff, 0xff}, []string{"bad.csv.gz: the file ends in the middle: it is truncated (end)"}},
	} {
		if d := cmp.Diff(c.want, show(bytes.NewReader(c.b), c.name, tracefile.Options{})); d != "" {
			t.Errorf("%s: %s", c.name, d)
		}
	}
}

// nulls fills a read.
var nulls = make([]byte, 64<<10)

// endless gives n bytes of one line, then the rest.
type endless struct {
	n    int64
	rest string
}

func (e *endless) Read(p []byte) (int, error) {
	if e.n > 0 {
		k := copy(p[:min(int64(len(p)), e.n)], nulls)
		e.n -= int64(k)
		return k, nil
	}
	k := copy(p, e.rest)
	if e.rest = e.rest[k:]; k == 0 {
		return 0, io.EOF
	}
	return k, nil
}

// Issue 3, "Must hold": a line of 2 GB is one error with file, line and reason, is not held in memory, and the rest of the file goes on.
func TestTwoGigabyteLine(t *testing.T) {
	size := int64(2 << 30)
	if testing.Short() {
		size = 64 << 20
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	in := io.MultiReader(strings.NewReader("lon,lat\n1,2\n"), &endless{n: size, rest: "\n3,4\n"})
	got := show(in, "huge.csv", tracefile.Options{})
	runtime.ReadMemStats(&after)
	want := []string{"2 huge 1 2", "huge.csv:3: the line is longer than 1048576 bytes: skipped", "4 huge 3 4"}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if used := after.TotalAlloc - before.TotalAlloc; used > 16<<20 {
		t.Errorf("%d bytes were allocated", used)
	}
}

// T1: the reader may stop at any row.
func TestStop(t *testing.T) {
	for _, c := range []struct{ file, text string }{
		{"a.csv", "lon,lat\n1,2\nx,y\n3,4\n"},
		{"a.gpx", `<gpx><trk><trkpt lat="1" lon="2"/><trkpt lat="x"/></trk></gpx>`},
		{"a.jsonl", "{\"lon\":1,\"lat\":2}\n{}\n"},
		{"a.json", `[{"lon":1,"lat":2},{}]`},
		{"t.csv", "id;geom\n1;LINESTRING(1 2,x,3 4)\n"},
	} {
		for stop := 1; stop <= 2; stop++ {
			n := 0
			for fix, err := range tracefile.Read(strings.NewReader(c.text), c.file, tracefile.Options{}) {
				if n++; (err == nil) != (fix.Line > 0) {
					t.Errorf("%s: row %d is %+v and %v", c.file, n, fix, err)
				}
				if n == stop {
					break
				}
			}
			if n != stop {
				t.Errorf("%s: %d rows, stopped at %d", c.file, n, stop)
			}
		}
	}
}

// The mapping's own errors name what is wrong in it.
func TestParseColumns(t *testing.T) {
	for _, bad := range []string{"lat", "lat=", "breite=lat", "lat=a,lat=b", ","} {
		if c, err := tracefile.ParseColumns(bad); err == nil {
			t.Errorf("%q: got %v, want an error", bad, c)
		}
	}
}

// T2, T4: no input panics; every fix is sane, every error is a short row error, a fatal one the last.
func FuzzRead(f *testing.F) {
	for _, s := range []struct{ format, text string }{
		{"csv", "vehicle,time,lon,lat\nv,2026-01-01T00:00:00Z,1,2\n\"a\"\"b\",,3,4\n"},
		{"csv", "a;point\n1;POINT(1 2)\n"},
		{"fmm", "id;geom;timestamp\n1;LINESTRING(1 2,3 4);1,2\n2;LINESTRING(1 x);\n"},
		{"fmm", "id;x;y;timestamp\n1;1;2;3\n"},
		{"gpx", `<gpx><trk><trkseg><trkpt lat="1" lon="2"><time>2026-01-01T00:00:00Z</time></trkpt></trkseg></trk></gpx>`},
		{"jsonl", "{\"lon\":1,\"lat\":2,\"t_s\":1.5}\n[{}]"},
		{"jsonl", `[{"lon":1,"lat":2},"\"]",{`},
		{"geojson", `{"a":[1],"features":[{"type":"Feature","properties":{},"geometry":{"type":"Point","coordinates":[1,2]}}]}`},
	} {
		f.Add(s.format, []byte(s.text))
	}
	f.Fuzz(func(t *testing.T, format string, b []byte) {
		ended := false
		for fix, err := range tracefile.Read(bytes.NewReader(b), "f", tracefile.Options{Format: tracefile.Format(format), MaxRow: 500}) {
			if ended {
				t.Fatal("a row came after a fatal error")
			}
			if err == nil {
				if !(math.Abs(fix.Lat) <= 90 && math.Abs(fix.Lon) <= 180) || fix.Vehicle == "" || fix.SpeedMPS < 0 || fix.Line < 1 {
					t.Fatalf("got %+v", fix)
				}
				continue
			}
			var row *tracefile.RowError
			if !errors.As(err, &row) || len(err.Error()) > 1000 {
				t.Fatalf("got %v", err)
			}
			ended = row.Fatal
		}
	})
}
