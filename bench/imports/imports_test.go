package main

import (
	"strings"
	"testing"
	"time"
)

// The page has a row a map and says of each that took more than a minute of a core that it did; a small map's figures are not scaled up.
func TestPage(t *testing.T) {
	rows := []built{
		{name: "town.osm", graph: graph{Edges: 500}, cpu: 20 * time.Millisecond, peakRSS: 20e6},
		{name: "country.osm.pbf", graph: graph{Edges: 4_000_000}, cpu: 61 * time.Second, peakRSS: 1200e6},
	}
	got := page(rows, "0 0 0")
	for _, want := range []string{"| town.osm | 0.0 MB | 500 | 0.02 | 20 MB | – |", "| 61.00 | 1200 MB | 15.2 s, 300 MB |", "Not met: more than a minute of a core for country.osm.pbf."} {
		if !strings.Contains(got, want) {
			t.Errorf("the page lacks %q:\n%s", want, got)
		}
	}
	if got := page(rows[:1], "0 0 0"); !strings.Contains(got, "each in under a minute") {
		t.Errorf("without a slow map:\n%s", got)
	}
}
