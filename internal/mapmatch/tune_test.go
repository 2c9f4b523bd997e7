//go:build tune

package mapmatch_test

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"milepost/internal/mapmatch"
	"milepost/internal/mapmatch/matchtest"
	"milepost/internal/roadnet"
)

// folds are the parts that every set of drives is dealt into.
const folds = 5

// course is a kind of drives that settings are judged by: a step of the real ones, or a set of simulated ones.
type course struct {
	name   string
	goal   float64 // per cent of mismatch that it aims at
	weight float64 // in the loss
}

// deck is some drives over one map.
type deck struct {
	g       *roadnet.Graph
	lengths map[mapmatch.Pair]float64
	lines   *matchtest.Drawn
	drives  []drive
}

// drive is one drive of a course.
type drive struct {
	trip         trip
	course, fold int
}

func newDeck(g *roadnet.Graph) *deck {
	return &deck{g: g, lengths: matchtest.Lengths(g), lines: matchtest.NewDrawn(g)}
}

// decks reads the drives that settings are chosen on: the real ones with their networks, then the simulated ones and those of Hof, which
// count half as much.
func decks(tb testing.TB, dir string) (courses []course, out []*deck) {
	tb.Helper()
	goals := []float64{1, .8, 1, 1, 4}
	steps := []int{1, 5, 15, 30, 60}
	for i, s := range steps {
		courses = append(courses, course{fmt.Sprintf("%d s", s), goals[i], 1})
	}
	entries, err := os.ReadDir(filepath.Join(dir, "kubicka"))
	if err != nil {
		tb.Fatal(err)
	}
	fold := 0
	for _, e := range entries {
		if e.Name() == "00000015" {
			continue // on foot
		}
		g, tr := kubicka(tb, dir, e.Name())
		d := newDeck(g)
		for i, s := range steps {
			d.drives = append(d.drives, drive{tr.thin(time.Duration(s) * time.Second), i, fold % folds})
		}
		fold++
		out = append(out, d)
	}
	if os.Getenv("MILEPOST_TUNE_ON") == "kubicka" {
		return courses, out
	}
	add := func(d *deck, name string, goal float64, trips []trip) {
		for i, tr := range trips {
			if len(tr.truth) > 2 {
				d.drives = append(d.drives, drive{tr, len(courses), i % folds})
			}
		}
		courses = append(courses, course{name, goal, .5})
	}
	for _, set := range []struct {
		name, file string
		goal       float64
	}{
		{"dover_1s", "delaware-dover-2016.osm.pbf", 2}, {"dover_30s", "delaware-dover-2016.osm.pbf", 4.5},
		{"newark_5s", "delaware-newark-2016.osm.pbf", 1}, {"andorra_10s", "paulmach-andorra-2018.osm.pbf", 1},
	} {
		d := newDeck(readGraph(tb, filepath.Join(dir, "maps", set.file)))
		add(d, set.name, set.goal, synthetic(tb, dir, set.name))
		out = append(out, d)
	}
	if synth := os.Getenv("MILEPOST_SYNTH"); synth != "" {
		d := newDeck(delaware(tb))
		for i, name := range []string{"de_1s", "de_10s", "de_60s"} {
			add(d, name, []float64{.9, 1.2, 3.7}[i], synthetic(tb, synth, name))
		}
		out = append(out, d)
	}
	for _, oneway := range []bool{false, true} {
		g, trips := hof(tb, dir, oneway)
		d := newDeck(g)
		add(d, fmt.Sprintf("hof %v", oneway), 5, trips)
		out = append(out, d)
	}
	return courses, out
}

// variants are the settings tried: every combination of what MILEPOST_TUNE lists, as "UTurnM=40,80;SpacingM=10,15". A setting has the name
// of its field; times are in seconds.
func variants(tb testing.TB, text string) (names []string, out []mapmatch.Config) {
	tb.Helper()
	names, out = []string{""}, []mapmatch.Config{mapmatch.DefaultConfig()}
	for axis := range strings.SplitSeq(text, ";") {
		name, list, _ := strings.Cut(axis, "=")
		var n2 []string
		var o2 []mapmatch.Config
		for i, c := range out {
			for v := range strings.SplitSeq(list, ",") {
				x, err := strconv.ParseFloat(v, 64)
				if err != nil {
					tb.Fatal(err)
				}
				c := c
				set(tb, &c, name, x)
				n2, o2 = append(n2, strings.TrimSpace(names[i]+" "+name+"="+v)), append(o2, c)
			}
		}
		names, out = n2, o2
	}
	return names, out
}

func set(tb testing.TB, c *mapmatch.Config, name string, v float64) {
	tb.Helper()
	f := reflect.ValueOf(c).Elem().FieldByName(name)
	switch {
	case !f.IsValid():
		tb.Fatalf("no setting %q", name)
	case f.Type() == reflect.TypeFor[time.Duration]():
		f.SetInt(int64(v * float64(time.Second)))
	case f.CanInt():
		f.SetInt(int64(v))
	default:
		f.SetFloat(v)
	}
}

// tally is what one setting did: by course and fold, touched and drawn.
type tally [][folds][2]matchtest.Score

// loss is the mean over the courses of both mismatches beside the goal, all folds but one.
func (t tally) loss(courses []course, without int) (sum float64, each []string) {
	total := 0.0
	for i, c := range courses {
		var s [2]matchtest.Score
		for f := range folds {
			if f != without {
				s[0].Add(t[i][f][0])
				s[1].Add(t[i][f][1])
			}
		}
		sum += c.weight * 50 * (s[0].Mismatch() + s[1].Mismatch()) / c.goal
		total += c.weight
		each = append(each, fmt.Sprintf("%.3f/%.3f", 100*s[0].Mismatch(), 100*s[1].Mismatch()))
	}
	return sum / total, each
}

// TestTune compares settings by cross-validation: of five folds of the drives, each is judged with the settings that were best on the
// other four. It is a tool: built with tag tune, it needs MILEPOST_TUNE, the settings to try.
func TestTune(t *testing.T) {
	text := os.Getenv("MILEPOST_TUNE")
	if text == "" {
		t.Fatal("MILEPOST_TUNE must name the settings to compare, as UTurnM=40,80;SpacingM=10,15")
	}
	courses, all := decks(t, dataDir(t))
	names, configs := variants(t, text)
	tallies := make([]tally, len(configs))
	for c, cfg := range configs {
		tallies[c] = make(tally, len(courses))
		for _, d := range all {
			m, err := mapmatch.New(d.g, cfg)
			if err != nil {
				t.Fatal(err)
			}
			for i := range d.drives {
				o := outcome{lines: d.lines}
				o.match(t, m, &d.drives[i].trip, d.lengths)
				s := &tallies[c][d.drives[i].course][d.drives[i].fold]
				s[0].Add(o.Score)
				s[1].Add(o.drawn)
			}
		}
	}
	order := make([]int, len(configs))
	for c := range configs {
		order[c] = c
	}
	by := func(without int) func(a, b int) int {
		return func(a, b int) int {
			x, _ := tallies[a].loss(courses, without)
			y, _ := tallies[b].loss(courses, without)
			return cmp.Compare(x, y)
		}
	}
	slices.SortStableFunc(order, by(-1))
	for _, c := range courses {
		t.Logf("%s: goal %g %%, weight %g", c.name, c.goal, c.weight)
	}
	for _, c := range order[:min(len(order), 25)] {
		l, each := tallies[c].loss(courses, -1)
		t.Logf("%.4f %s  %s", l, strings.Join(each, " "), names[c])
	}
	held := make(tally, len(courses))
	for f := range folds {
		best := slices.MinFunc(order, by(f))
		t.Logf("fold %d chooses %s", f, names[best])
		for i := range courses {
			held[i][f] = tallies[best][i][f]
		}
	}
	l, each := held.loss(courses, -1)
	t.Logf("held out: %.4f %s", l, strings.Join(each, " "))
}
