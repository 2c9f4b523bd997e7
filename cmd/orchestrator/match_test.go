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
	got = orchestrator(t, trip, "match", "--map", m, "--input", "csv", "--format", "svg", "-")
	if got.code != exitUsage {
		t.Errorf("an unknown format: %+v", got)
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
