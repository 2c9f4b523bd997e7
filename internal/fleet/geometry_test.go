package fleet_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"milepost/internal/fleet"
)

// Issue 6: events have the lines of their spans as the configuration says, and nothing else of them changes: decoded without lines they are
// the same, whatever the way to write one, and encoding what was decoded gives the same bytes (drive.commit checks that).
func TestEventGeometry(t *testing.T) {
	events := map[fleet.Geometry][]fleet.Event{}
	lines := map[fleet.Geometry][]string{}
	all := []fleet.Geometry{"", fleet.Coordinates, fleet.Polyline6, fleet.WKT, fleet.NoGeometry}
	for _, g := range all {
		cfg := config()
		cfg.Geometry = g
		d := newDrive(t, cfg)
		for i := range 12 {
			e := d.at(float64(10*i), float64(100+150*i), 3)
			lines[g] = append(lines[g], takeLines(&e)...)
			events[g] = append(events[g], e)
		}
	}
	for _, g := range all[1:] {
		if diff := cmp.Diff(events[""], events[g]); diff != "" {
			t.Errorf("%s: %s", g, diff)
		}
	}
	if n := len(lines[""]); n < 10 || cmp.Diff(lines[""], lines[fleet.Coordinates]) != "" {
		t.Errorf("%d lines by default, %v", n, lines[fleet.Coordinates])
	}
	for i, want := range lines[""] {
		if got := lines[fleet.WKT][i]; got != want || !strings.HasPrefix(got, "LINESTRING(9.0") {
			t.Errorf("line %d is %s as WKT, want %s", i, got, want)
		}
		if got := lines[fleet.Polyline6][i]; got == "" || strings.HasPrefix(got, "L") || lines[fleet.NoGeometry][i] != "" {
			t.Errorf("line %d is %q as a polyline, and %q where none is asked for", i, got, lines[fleet.NoGeometry][i])
		}
	}
	cfg := config()
	cfg.Geometry = "kml"
	if err := cfg.Validate(); err == nil || !strings.Contains(err.Error(), `"kml" is none of geojson, polyline6, wkt, none`) {
		t.Errorf("an unknown way: %v", err)
	}
}

// takeLines takes the lines off an event's spans; a list of coordinates as WKT.
func takeLines(e *fleet.Event) (lines []string) {
	paths := [][]fleet.Span{e.Path}
	for _, f := range []*fleet.Final{e.Closed, e.Final} {
		if f != nil {
			paths = append(paths, f.Path)
		}
	}
	for _, path := range paths {
		for i := range path {
			s := &path[i]
			line := s.Polyline6 + s.WKT
			if s.Geometry != nil {
				line += fleet.EncodeWKT(s.Geometry)
			}
			lines = append(lines, line)
			s.Geometry, s.Polyline6, s.WKT = nil, "", ""
		}
	}
	return lines
}
