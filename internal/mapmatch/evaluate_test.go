package mapmatch_test

import (
	"bufio"
	"compress/gzip"
	"context"
	"encoding/csv"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sort"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"milepost/internal/mapmatch"
	"milepost/internal/mapmatch/matchtest"
	"milepost/internal/roadnet"
)

// dataDir is the folder of maps and traces that the evaluation reads.
func dataDir(tb testing.TB) string {
	tb.Helper()
	dir := os.Getenv("MILEPOST_DATA")
	if dir == "" {
		tb.Skip("MILEPOST_DATA is not set: make it the folder of maps and traces that docs/matcher.md describes")
	}
	return dir
}

func readGraph(tb testing.TB, path string) *roadnet.Graph {
	tb.Helper()
	f, err := os.Open(path)
	if err != nil {
		tb.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	g, err := roadnet.Import(context.Background(), f, filepath.Base(path), roadnet.ImportOptions{Contraflow: true})
	if err != nil {
		tb.Fatal(err)
	}
	return g
}

// trip is one vehicle's observations with the route that it drove.
type trip struct {
	id    string
	obs   []mapmatch.Observation
	truth []mapmatch.Pair
}

func readCSV(tb testing.TB, path string, row func(get func(string) string)) {
	tb.Helper()
	f, err := os.Open(path)
	if err != nil {
		tb.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	r := csv.NewReader(f)
	head, err := r.Read()
	if err != nil {
		tb.Fatal(err)
	}
	column := make(map[string]int)
	for i, h := range head {
		column[h] = i
	}
	for {
		rec, err := r.Read()
		if err == io.EOF {
			return
		}
		if err != nil {
			tb.Fatal(err)
		}
		row(func(name string) string { return rec[column[name]] })
	}
}

func number(tb testing.TB, s string) float64 {
	tb.Helper()
	v, err := strconv.ParseFloat(s, 64)
	if err != nil {
		tb.Fatal(err)
	}
	return v
}

func integer(tb testing.TB, s string) int64 {
	tb.Helper()
	v, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		tb.Fatal(err)
	}
	return v
}

// synthetic reads a set of simulated drives.
func synthetic(tb testing.TB, dir, name string) []trip {
	tb.Helper()
	trips := make(map[string]*trip)
	of := func(id string) *trip {
		if trips[id] == nil {
			trips[id] = &trip{id: id}
		}
		return trips[id]
	}
	readCSV(tb, filepath.Join(dir, "synthetic", name+".csv"), func(get func(string) string) {
		tr := of(get("vehicle"))
		tr.obs = append(tr.obs, mapmatch.Observation{
			Time: time.UnixMilli(integer(tb, get("t_ms"))), Point: roadnet.Point{Lon: number(tb, get("lon")), Lat: number(tb, get("lat"))},
			AccuracyM: number(tb, get("accuracy_m")), SpeedMPS: number(tb, get("speed_mps")), Heading: number(tb, get("heading_deg")),
		})
	})
	readCSV(tb, filepath.Join(dir, "synthetic", name+".route.csv"), func(get func(string) string) {
		tr := of(get("vehicle"))
		tr.truth = append(tr.truth, mapmatch.Pair{Way: integer(tb, get("way")), From: integer(tb, get("from")), To: integer(tb, get("to"))})
	})
	var out []trip
	for _, id := range slices.Sorted(maps.Keys(trips)) {
		out = append(out, *trips[id])
	}
	return out
}

// outcome sums up the match of many trips.
type outcome struct {
	matchtest.Score
	drawn          matchtest.Score // the same by the drawn lines alone
	each           []float64
	points, breaks int
	cpu            time.Duration // of this thread: other load on the machine does not count
	took           []time.Duration
	stateMax       int
	stateSum       int
	lags           []int
	lines          *matchtest.Drawn
}

func (o *outcome) String() string {
	sort.Float64s(o.each)
	sort.Ints(o.lags)
	slices.Sort(o.took)
	at := func(q float64) time.Duration { return o.took[int(q*float64(len(o.took)-1))].Round(time.Microsecond) }
	lag := func(q float64) int {
		if len(o.lags) == 0 {
			return 0
		}
		return o.lags[min(len(o.lags)-1, int(q*float64(len(o.lags))))]
	}
	return fmt.Sprintf("%7d points, mismatch %5.2f %%, drawn %5.2f %% (missed %.0f m, added %.0f m of %.0f m), median %.2f %%, %d breaks, %6.0f points/s, push p50 %v p99 %v, state mean %d max %d B, lag p50 %d p95 %d p99 %d points",
		o.points, 100*o.Mismatch(), 100*o.drawn.Mismatch(), o.MissedM, o.AddedM, o.TrueM, 100*o.each[len(o.each)/2], o.breaks, float64(o.points)/o.cpu.Seconds(), at(.5), at(.99), o.stateSum/max(1, o.points), o.stateMax, lag(.5), lag(.95), lag(.99))
}

// threadTime is the processor time that this thread has taken.
func threadTime(tb testing.TB) time.Duration {
	tb.Helper()
	const thisThread = 1 // RUSAGE_THREAD
	var u syscall.Rusage
	if err := syscall.Getrusage(thisThread, &u); err != nil {
		tb.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// match runs a trip through a matcher and adds its score.
func (o *outcome) match(tb testing.TB, m *mapmatch.Matcher, tr *trip, lengths map[mapmatch.Pair]float64) matchtest.Score {
	tb.Helper()
	var track mapmatch.Track
	var state []byte
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	before := threadTime(tb)
	for _, obs := range tr.obs {
		start := time.Now()
		next, r, err := m.Push(state, obs)
		d := time.Since(start)
		if err != nil {
			tb.Fatal(err)
		}
		o.took = append(o.took, d)
		state = next
		o.stateMax = max(o.stateMax, len(state))
		o.stateSum += len(state)
		track.Apply(r)
		if r.Break != mapmatch.NoBreak {
			o.breaks++
		}
		for _, p := range r.FinalPoints {
			o.lags = append(o.lags, int(r.Seq-p.Seq))
		}
	}
	o.cpu += threadTime(tb) - before
	o.points += len(tr.obs)
	r, err := m.Flush(state)
	if err != nil {
		tb.Fatal(err)
	}
	track.Apply(r)
	var got, drawn []mapmatch.Pair
	for _, p := range track.Paths() {
		got = mapmatch.AppendPairs(got, p)
		if o.lines != nil {
			drawn = o.lines.AppendPairs(drawn, matchtest.Line(p))
		}
	}
	o.drawn.Add(matchtest.RouteMismatch(tr.truth, drawn, lengths))
	s := matchtest.RouteMismatch(tr.truth, got, lengths)
	o.Add(s)
	o.each = append(o.each, s.Mismatch())
	if os.Getenv("MILEPOST_EACH") != "" {
		dr := matchtest.RouteMismatch(tr.truth, drawn, lengths)
		tb.Logf("%s: %d points, %.2f %% of %.0f m (missed %.0f, added %.0f; drawn missed %.0f, added %.0f)", tr.id, len(tr.obs), 100*s.Mismatch(), s.TrueM, s.MissedM, s.AddedM, dr.MissedM, dr.AddedM)
	}
	return s
}

// TestEvaluateSynthetic proves the goal on simulated drives with real turn rules: kinds M11 and M12 over thousands of
// observations at 1, 5, 10 and 30 s.
func TestEvaluateSynthetic(t *testing.T) {
	dir := dataDir(t)
	for _, set := range []struct {
		name, file string
		ceiling    float64 // per cent
	}{
		{"dover_1s", "delaware-dover-2016.osm.pbf", 2},
		{"newark_5s", "delaware-newark-2016.osm.pbf", 1},
		{"andorra_10s", "paulmach-andorra-2018.osm.pbf", 1},
		{"dover_30s", "delaware-dover-2016.osm.pbf", 4},
	} {
		g := readGraph(t, filepath.Join(dir, "maps", set.file))
		lengths := matchtest.Lengths(g)
		m, err := mapmatch.New(g, mapmatch.DefaultConfig())
		if err != nil {
			t.Fatal(err)
		}
		o := outcome{lines: matchtest.NewDrawn(g)}
		for _, tr := range synthetic(t, dir, set.name) {
			o.match(t, m, &tr, lengths)
		}
		t.Logf("%-12s %v", set.name, &o)
		if got := 100 * o.Mismatch(); got > set.ceiling {
			t.Errorf("%s: mismatch %.2f %%, want at most %.1f %%", set.name, got, set.ceiling)
		}
	}
}

// lines reads a gzipped file of numbers.
func lines(tb testing.TB, path string, row func(v []float64)) {
	tb.Helper()
	f, err := os.Open(path)
	if err != nil {
		tb.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	z, err := gzip.NewReader(f)
	if err != nil {
		tb.Fatal(err)
	}
	sc := bufio.NewScanner(z)
	for sc.Scan() {
		var v []float64
		for s := range strings.FieldsSeq(sc.Text()) {
			v = append(v, number(tb, s))
		}
		if len(v) > 0 {
			row(v)
		}
	}
	if err := sc.Err(); err != nil {
		tb.Fatal(err)
	}
}

// kubicka reads a real drive with its own network: every arc is a way of two nodes, two opposite arcs are one two-way way.
func kubicka(tb testing.TB, dir, id string) (*roadnet.Graph, trip) {
	tb.Helper()
	base := filepath.Join(dir, "kubicka", id, id)
	var nodes [][2]float64
	lines(tb, base+".nodes.gz", func(v []float64) { nodes = append(nodes, [2]float64{v[0], v[1]}) })
	var arcs [][2]int64
	first := make(map[[2]int64]int)
	lines(tb, base+".arcs.gz", func(v []float64) {
		a := [2]int64{int64(v[0]), int64(v[1])}
		if _, ok := first[a]; !ok {
			first[a] = len(arcs)
		}
		arcs = append(arcs, a)
	})
	b := roadnet.NewBuilderFor(roadnet.ImportOptions{Contraflow: true}) // as graph build makes maps
	pairs := make([]mapmatch.Pair, len(arcs))
	for i, a := range arcs {
		j, both := first[[2]int64{a[1], a[0]}]
		way := int64(first[a] + 1)
		if both {
			way = min(way, int64(j+1))
		}
		pairs[i] = mapmatch.Pair{Way: way, From: a[0] + 1, To: a[1] + 1}
		if a[0] == a[1] || first[a] != i || both && j < i {
			continue
		}
		tags := roadnet.Tags{{Key: "highway", Value: "secondary"}, {Key: "maxspeed", Value: "90"}}
		if !both {
			tags = append(tags, roadnet.Tag{Key: "oneway", Value: "yes"})
		}
		b.AddWay(way, []int64{a[0] + 1, a[1] + 1}, tags)
	}
	for i, n := range nodes {
		b.AddNode(int64(i+1), int64(math.Round(n[0]*1e7)), int64(math.Round(n[1]*1e7)), nil)
	}
	g, err := b.Build()
	if err != nil {
		tb.Fatal(err)
	}
	tr := trip{id: id}
	lines(tb, base+".track.gz", func(v []float64) {
		tr.obs = append(tr.obs, mapmatch.Observation{
			Time: time.UnixMilli(int64(v[2] * 1000)), Point: roadnet.Point{Lon: v[0], Lat: v[1]},
			AccuracyM: math.NaN(), SpeedMPS: math.NaN(), Heading: math.NaN(),
		})
	})
	lines(tb, base+".route.gz", func(v []float64) { tr.truth = append(tr.truth, pairs[int(v[0])]) })
	return g, tr
}

// thin keeps a trip's observations that are at least a step apart, and the last.
func (tr trip) thin(step time.Duration) trip {
	out := trip{id: tr.id, truth: tr.truth}
	for i, o := range tr.obs {
		if n := len(out.obs); n == 0 || i == len(tr.obs)-1 || o.Time.Sub(out.obs[n-1].Time) >= step {
			out.obs = append(out.obs, o)
		}
	}
	return out
}

// TestEvaluateKubicka holds the matcher to the accepted mismatch on 22 real drives without speed, heading and accuracy.
func TestEvaluateKubicka(t *testing.T) {
	dir := dataDir(t)
	entries, err := os.ReadDir(filepath.Join(dir, "kubicka"))
	if err != nil {
		t.Fatal(err)
	}
	steps := []struct {
		s       int
		ceiling float64 // per cent
	}{{1, 1}, {5, .8}, {15, 1}, {30, 1}, {60, 4}}
	sums := make([]outcome, len(steps))
	for _, e := range entries {
		if e.Name() == "00000015" {
			continue // on foot
		}
		g, tr := kubicka(t, dir, e.Name())
		lengths := matchtest.Lengths(g)
		m, err := mapmatch.New(g, mapmatch.DefaultConfig())
		if err != nil {
			t.Fatal(err)
		}
		lines := matchtest.NewDrawn(g)
		for i, st := range steps {
			sums[i].lines = lines
			thinned := tr.thin(time.Duration(st.s) * time.Second)
			sums[i].match(t, m, &thinned, lengths)
		}
	}
	for i, st := range steps {
		t.Logf("%2d s %v", st.s, &sums[i])
		if got := 100 * max(sums[i].Mismatch(), sums[i].drawn.Mismatch()); got > st.ceiling {
			t.Errorf("%d s: mismatch %.2f %%, want at most %.1f %%", st.s, got, st.ceiling)
		}
	}
}
