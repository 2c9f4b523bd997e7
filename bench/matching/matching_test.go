package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"milepost/internal/mapmatch"
	"milepost/internal/mapmatch/matchtest"
	"milepost/internal/roadnet"
)

// TestMain lets the test binary stand in for the program where it starts itself as a server.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == "serve" {
		if err := command(context.Background(), os.Args[1:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// street is a one-way street of n stretches of some 110 m, with a two-way side street, and a drive along it.
func street(n int) (*network, drive) {
	net := newNetwork()
	d := drive{id: "one"}
	begin := time.Date(2026, 3, 1, 8, 0, 0, 0, time.UTC)
	for i := range n + 1 {
		id := int64(i + 1)
		p := roadnet.Point{Lon: 9 + 0.0015*float64(i), Lat: 48}
		net.nodes[id] = p
		if i == 0 {
			continue
		}
		net.ways[id] = way{refs: []int64{id - 1, id}, tags: [][2]string{{"highway", "residential"}, {"oneway", "yes"}}}
		d.truth = append(d.truth, mapmatch.Pair{Way: id, From: id - 1, To: id})
		for k := range 10 {
			d.obs = append(d.obs, bare(begin.Add(time.Duration(10*i+k)*time.Second), roadnet.Point{Lon: p.Lon - 0.0015 + 0.00015*float64(k), Lat: 48.00002}))
		}
	}
	net.nodes[1_000_000] = roadnet.Point{Lon: 9.003, Lat: 48.002}
	net.ways[1_000_000] = way{refs: []int64{3, 1_000_000}, tags: [][2]string{{"highway", "residential"}}}
	return net, d
}

// A map that was written as PBF is the map that was meant: peers get the same roads as the scorer.
func TestMapReadsBack(t *testing.T) {
	net, _ := street(9000) // more than a block of nodes
	want, err := net.graph()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "street.osm.pbf")
	if err := net.write(path); err != nil {
		t.Fatal(err)
	}
	got, err := importMap(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	a, b := matchtest.Lengths(want), matchtest.Lengths(got)
	for pair, l := range a {
		if math.Abs(b[pair]-l) > 0.02 {
			t.Fatalf("pair %v has %.2f m, read back %.2f m", pair, l, b[pair])
		}
	}
	if len(a) != 18_002 { // both directions of every stretch and of the side street: against the one-way street, too
		t.Errorf("%d pairs, want 18002", len(a))
	}
}

// An encoded line of millionths decodes to its places, and one that is cut is an error.
func TestPolyline6(t *testing.T) {
	const line = "_izlhA~rlgdF_{geC~ywl@_kwzCn`{nI"
	got, err := polyline6(line)
	if err != nil {
		t.Fatal(err)
	}
	want := []roadnet.Point{{Lat: 38.5, Lon: -120.2}, {Lat: 40.7, Lon: -120.95}, {Lat: 43.252, Lon: -126.453}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for _, n := range []int{1, 7, len(line) - 1} {
		if _, err := polyline6(line[:n]); err == nil {
			t.Errorf("cut after %d bytes: no error", n)
		}
	}
}

// A whole run over a small map: ours finds the drive and says how long each place took to become final; an engine that is not to be
// had is named with the reason and leaves the rest alone.
func TestRun(t *testing.T) {
	dir := t.TempDir()
	net, d := street(12)
	g, err := net.graph()
	if err != nil {
		t.Fatal(err)
	}
	d.net = newYardstick(g)
	s := &set{name: "street", title: "A street", mapFile: filepath.Join(dir, "street.osm.pbf"), batches: thinned([]drive{d}, 1, 5), goals: []goal{{1, 1}}}
	if err := net.write(s.mapFile); err != nil {
		t.Fatal(err)
	}
	b := &bench{peers: peers(dir), work: dir, engines: []string{"ours", "nobody"}, rounds: 3, log: io.Discard}
	f, err := b.set(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	if len(f.Engines) != 2 || f.Engines[0].Missing != "" || !strings.Contains(f.Engines[1].Missing, "no engine") {
		t.Errorf("engines: %+v", f.Engines)
	}
	if len(f.Rows) != 2 {
		t.Fatalf("%d rows, want one for each of two steps", len(f.Rows))
	}
	for _, r := range f.Rows {
		if r.MismatchPct != 0 || r.CorrectPct != 100 || r.Failed != 0 || r.Pieces != 1 || r.Rounds != 3 {
			t.Errorf("step %g: %+v", r.StepS, r)
		}
		if r.PointsPerCore <= 0 || r.Lag == nil || r.Lag.Breaks != 0 {
			t.Errorf("step %g: %+v", r.StepS, r)
		}
	}
	if f.Rows[0].Points != 120 || f.Rows[1].Points >= 40 {
		t.Errorf("points: %d and %d", f.Rows[0].Points, f.Rows[1].Points)
	}
}

// The scorer sees drawn lines alone: the whole line is right, half of it misses, another street adds.
func TestScore(t *testing.T) {
	net, d := street(6)
	g, err := net.graph()
	if err != nil {
		t.Fatal(err)
	}
	d.net = newYardstick(g)
	along := func(ids ...int64) (line []roadnet.Point) {
		for _, id := range ids {
			line = append(line, net.nodes[id])
		}
		return line
	}
	for _, c := range []struct {
		lines         [][]roadnet.Point
		missed, wrong float64
		what          string
	}{
		{[][]roadnet.Point{along(1, 2, 3, 4, 5, 6, 7)}, 0, 0, "the whole"},
		{[][]roadnet.Point{along(1, 2, 3), along(5, 6, 7)}, 2, 0, "a gap between two lines"},
		{nil, 4, 0, "nothing"},
		{[][]roadnet.Point{along(1, 2, 3, 1_000_000, 3, 4, 5, 6, 7)}, 0, 1, "in and out of the side street"},
	} {
		s := d.score(c.lines)
		stretch := d.net.lengths[mapmatch.Pair{Way: 3, From: 2, To: 3}]
		if math.Abs(s.MissedM-c.missed*stretch) > 0.1 {
			t.Errorf("%s: missed %.1f m, want %.1f m", c.what, s.MissedM, c.missed*stretch)
		}
		if (s.AddedM > 1) != (c.wrong > 0) {
			t.Errorf("%s: added %.1f m", c.what, s.AddedM)
		}
	}
}

// The page and its plots in docs are what the command makes of the figures beside them: nobody wrote into them by hand.
func TestPageShowsTheFigures(t *testing.T) {
	docs := filepath.Join("..", "..", "docs")
	all, err := readFigures(figuresFolder(docs))
	if err != nil {
		t.Fatal(err)
	}
	text, plots := page(all)
	plots["../"+pageName] = []byte(text)
	for name, want := range plots {
		got, err := os.ReadFile(filepath.Join(figuresFolder(docs), filepath.FromSlash(name)))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s is not what the figures say: go run ./bench/matching -page", filepath.Base(name))
		}
	}
}

// What fell short is told: a goal missed, a peer nearer to the truth, a peer that is faster; and nothing else.
func TestFellShort(t *testing.T) {
	f := &figures{
		Set: "kubicka", Title: "Drives", Goals: []goalNote{{1, 1}, {5, 1}},
		Contenders: []contenderNote{{Name: "ours/default", Label: "ours"}, {Name: "osrm/tuned", Label: "OSRM"}},
		Rows: []row{
			{Contender: "ours/default", StepS: 1, MismatchPct: 1.5, PointsPerCore: 10},
			{Contender: "osrm/tuned", StepS: 1, MismatchPct: 1.2, PointsPerCore: 20},
			{Contender: "ours/default", StepS: 5, MismatchPct: 0.5, PointsPerCore: 10},
			{Contender: "osrm/tuned", StepS: 5, MismatchPct: 0.5, PointsPerCore: 5},
		},
	}
	got := fellShort(map[string]*figures{"kubicka": f})
	if n := strings.Count(got, "\n- "); n != 3 || !strings.Contains(got, "goal 1.0 %") || !strings.Contains(got, "nearer to the truth") || !strings.Contains(got, "faster") {
		t.Errorf("%d entries, want 3:\n%s", n, got)
	}
	if got := fellShort(nil); !strings.Contains(got, "Nothing") {
		t.Errorf("without figures: %s", got)
	}
}
