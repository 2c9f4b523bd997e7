package main

import (
	"path/filepath"
	"strings"
	"testing"
)

const crossroads = `<?xml version="1.0"?>
<osm version="0.6">
 <node id="1" lat="48.0" lon="9.0"/><node id="2" lat="48.0" lon="9.005"/><node id="3" lat="48.0" lon="9.01"/><node id="4" lat="48.005" lon="9.005"/>
 <way id="100"><nd ref="1"/><nd ref="2"/><nd ref="3"/><tag k="highway" v="residential"/></way>
 <way id="101"><nd ref="2"/><nd ref="4"/><tag k="highway" v="residential"/></way>
</osm>`

const trip = `vehicle,t_ms,lon,lat
a,1700000000000,9.0010,48.00002
a,1700000010000,9.0025,48.00001
a,1700000020000,9.0040,47.99999
a,1700000030000,9.0050,48.0007
a,1700000040000,9.0050,48.0020
`

func mapFile(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "crossroads.osm")
	write(t, path, crossroads)
	return path
}

// A20: the route is one row a pair of neighbouring nodes, in driving order.
func TestMatchRoute(t *testing.T) {
	got := orchestrator(t, trip, "match", "--map", mapFile(t), "--input", "csv", "--route", "-")
	want := "vehicle,way,from,to\na,100,1,2\na,101,2,4\n"
	if got.code != 0 || got.out != want {
		t.Errorf("route: %+v, want %q", got, want)
	}
}

// A20: one row an observation, in each format.
func TestMatchFormats(t *testing.T) {
	m := mapFile(t)
	got := orchestrator(t, trip, "match", "--map", m, "--input", "csv", "--format", "csv", "-")
	lines := strings.Split(strings.TrimSpace(got.out), "\n")
	if got.code != 0 || len(lines) != 6 || !strings.HasPrefix(lines[1], "a,0,2023-11-14T22:13:20Z,matched,100,1,2,") {
		t.Errorf("csv: %+v", got)
	}
	got = orchestrator(t, trip, "match", "--map", m, "--input", "csv", "--json", "-")
	if got.code != 0 || strings.Count(got.out, `"disposition":"matched"`) < 5 || strings.Count(got.out, "\n") != 6 {
		t.Errorf("json: %+v", got)
	}
	got = orchestrator(t, trip, "match", "--map", m, "--input", "csv", "--format", "geojson", "-")
	if got.code != 0 || !strings.HasPrefix(got.out, `{"type":"FeatureCollection"`) {
		t.Errorf("geojson: %+v", got)
	}
	got = orchestrator(t, trip, "match", "--map", m, "--input", "csv", "--format", "gpx", "-")
	if got.code != 0 || !strings.Contains(got.out, "<name>a</name>") || !strings.Contains(got.out, "<trkpt lat=") {
		t.Errorf("gpx: %+v", got)
	}
	got = orchestrator(t, trip, "match", "--map", m, "--input", "csv", "--format", "fmm", "--fields", "cpath,opath", "-")
	if want := "id;opath;cpath;segment\na;100,100,100,101,101;100,101;1\n"; got.code != 0 || got.out != want {
		t.Errorf("fmm: %+v, want %q", got, want)
	}
	got = orchestrator(t, trip, "match", "--map", m, "--input", "csv", "--geometry", "wkt", "-")
	if got.code != 0 || !strings.Contains(got.out, `"wkt":"LINESTRING(`) || strings.Contains(got.out, `"geometry"`) {
		t.Errorf("wkt: %+v", got)
	}
	got = orchestrator(t, trip, "match", "--map", m, "--input", "csv", "--explain", "-")
	if got.code != 0 || strings.Count(got.out, "in the end: way 10") != 5 || !strings.Contains(got.out, "<- best, and chosen") {
		t.Errorf("explain: %+v", got)
	}
	got = orchestrator(t, trip, "match", "--map", m, "--input", "csv", "--explain", "--json", "-")
	if got.code != 0 || strings.Count(got.out, `"chosen":true`) != 5 || strings.Count(got.out, "\n") != 5 {
		t.Errorf("explain as JSON: %+v", got)
	}
}

// V3: settings that are wrong, or that exclude each other, are named before a map is read.
func TestMatchUsage(t *testing.T) {
	for say, flags := range map[string][]string{
		"--map must be set (or MILEPOST_MAP)":     {},
		"--map and --catalog exclude each other":  {"--map", "m.osm", "--catalog", "c.toml"},
		`--format is "svg"`:                       {"--map", "m.osm", "--format", "svg"},
		`--vehicle is "tank", must be car, truck`: {"--map", "m.osm", "--vehicle", "tank"},
		`--geometry: "kml" is none of geojson`:    {"--map", "m.osm", "--geometry", "kml"},
		"--geometry goes with --format json":      {"--map", "m.osm", "--geometry", "wkt", "--format", "gpx"},
		`--fields: "x" is none of ogeom`:          {"--map", "m.osm", "--format", "fmm", "--fields", "x"},
		"--route and --explain go with neither":   {"--map", "m.osm", "--route", "--explain"},
		"--json goes with no other --format":      {"--map", "m.osm", "--json", "--format", "csv"},
	} {
		got := orchestrator(t, "", append(append([]string{"match"}, flags...), "x.gpx")...)
		if got.code != exitUsage || !strings.Contains(got.err, say) || got.out != "" {
			t.Errorf("%v: %+v, want exit code 2 and %q", flags, got, say)
		}
	}
}

// Issue 6: FMM's trajectories go in as FMM has them, and come out as FMM writes them; without times they need a step.
func TestMatchFMM(t *testing.T) {
	m := mapFile(t)
	trips := filepath.Join(t.TempDir(), "trips.csv")
	write(t, trips, "id;geom\n7;LINESTRING(9.0010 48.00002,9.0025 48.00001,9.0040 47.99999,9.0050 48.0007,9.0050 48.0020)\n")
	got := orchestrator(t, "", "match", "--map", m, "--assume-step", "10s", "--format", "fmm", trips)
	if want := "id;cpath;mgeom;segment\n7;100,101;LINESTRING(9.0009999 48,9.005 48,9.005 48.002);1\n"; got.code != 0 || got.out != want {
		t.Errorf("got %+v, want %q", got, want)
	}
	got = orchestrator(t, "", "match", "--map", m, "--format", "fmm", trips)
	if got.code != exitFailed || strings.Count(got.err, "give --assume-step") != 5 {
		t.Errorf("without a step: %+v", got)
	}
}

// Issue 6, --vehicle: an extract is read for the class that is asked for.
func TestMatchVehicle(t *testing.T) {
	path := filepath.Join(t.TempDir(), "cycle.osm")
	write(t, path, strings.Replace(crossroads, `<way id="101"><nd ref="2"/><nd ref="4"/><tag k="highway" v="residential"/>`, `<way id="101"><nd ref="2"/><nd ref="4"/><tag k="highway" v="cycleway"/>`, 1))
	bicycle := orchestrator(t, trip, "match", "--map", path, "--vehicle", "bicycle", "--input", "csv", "--route", "-")
	car := orchestrator(t, trip, "match", "--map", path, "--input", "csv", "--route", "-")
	if !strings.Contains(bicycle.out, "a,101,2,4") || strings.Contains(car.out, "a,101") || bicycle.code+car.code != 0 {
		t.Errorf("bicycle %+v, car %+v", bicycle, car)
	}
	graph := filepath.Join(t.TempDir(), "cars.graph")
	if got := orchestrator(t, "", "graph", "build", path, "-o", graph); got.code != 0 {
		t.Fatalf("%+v", got)
	}
	got := orchestrator(t, trip, "match", "--map", graph, "--vehicle", "bicycle", "--input", "csv", "-")
	if got.code != exitUsage || !strings.Contains(got.err, "no roads for a bicycle, only for car") {
		t.Errorf("a graph file of cars: %+v", got)
	}
}

// A7: match works over a catalog's regions.
func TestMatchCatalog(t *testing.T) {
	m := mapFile(t)
	regions := filepath.Join(filepath.Dir(m), "regions.toml")
	write(t, regions, "version = 1\n[[region]]\nid = \"east\"\ngraph = \"crossroads.osm\"\ncoverage = [\"u0w3\"]\n")
	got := orchestrator(t, trip, "match", "--catalog", regions, "--input", "csv", "--route", "-")
	if want := "vehicle,way,from,to\na,100,1,2\na,101,2,4\n"; got.code != 0 || got.out != want {
		t.Errorf("route: %+v, want %q", got, want)
	}
	got = orchestrator(t, trip, "match", "--catalog", "nowhere.toml", "--input", "csv", "-")
	if got.code != exitFailed || !strings.Contains(got.err, "--catalog: ") {
		t.Errorf("no such catalog: %+v", got)
	}
}

// M24, M25, V3: bad rows are named by file, line and reason; the good ones go in; exit code 3. --strict stops at the first.
func TestMatchRefusesRows(t *testing.T) {
	bad := trip + "a,1700000050000,48.0,9.0e2\na,1700000060000,NaN,48\na,1700000070000,9.0050,48.0030\n"
	m := mapFile(t)
	got := orchestrator(t, bad, "match", "--map", m, "--input", "csv", "--format", "csv", "-")
	if got.code != exitRefused || strings.Count(got.out, "\n") != 7 || strings.Count(got.err, "refused:") != 2 ||
		!strings.Contains(got.err, "-:7:") || !strings.Contains(got.err, "2 rows were refused") {
		t.Errorf("bad rows: %+v", got)
	}
	got = orchestrator(t, bad, "match", "--map", m, "--input", "csv", "--format", "csv", "--strict", "-")
	if got.code != exitFailed || strings.Count(got.err, "refused:") != 1 {
		t.Errorf("strict: %+v", got)
	}
}

// A map or trace that cannot be read is named.
func TestMatchBadFiles(t *testing.T) {
	notOSM := filepath.Join(t.TempDir(), "not.osm.pbf")
	write(t, notOSM, "this is no map")
	for name, args := range map[string][]string{
		"nowhere.osm": {"match", "--map", "nowhere.osm", "x.gpx"},
		"not.osm.pbf": {"match", "--map", notOSM, "x.gpx"},
		"nowhere.gpx": {"match", "--map", mapFile(t), "nowhere.gpx"},
	} {
		if got := orchestrator(t, "", args...); got.code != exitFailed || !strings.Contains(got.err, name) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
