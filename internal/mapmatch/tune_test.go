//go:build tune

package mapmatch_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"milepost/internal/mapmatch"
	"milepost/internal/mapmatch/matchtest"
	"milepost/internal/roadnet"
)

// deck is one drive with its map, thinned to several steps.
type deck struct {
	g       *roadnet.Graph
	lengths map[mapmatch.Pair]float64
	lines   *matchtest.Drawn
	steps   []trip
	goals   []float64 // per cent of mismatch that each step aims at
}

// decks reads the drives that parameters are chosen on.
func decks(tb testing.TB, dir string) (out []deck) {
	tb.Helper()
	entries, err := os.ReadDir(filepath.Join(dir, "kubicka"))
	if err != nil {
		tb.Fatal(err)
	}
	for _, e := range entries {
		if e.Name() == "00000015" {
			continue // on foot
		}
		g, tr := kubicka(tb, dir, e.Name())
		d := deck{g: g, lengths: matchtest.Lengths(g), lines: matchtest.NewDrawn(g), goals: []float64{1, .8, 1, 1, 4}}
		for _, s := range []int{1, 5, 15, 30, 60} {
			d.steps = append(d.steps, tr.thin(time.Duration(s)*time.Second))
		}
		out = append(out, d)
	}
	return out
}

// variants are the settings tried: every combination of what MILEPOST_TUNE lists, as "UTurnM=40,80;SpacingM=10,15".
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
	fields := map[string]*float64{
		"MinRadiusM": &c.MinRadiusM, "MaxRadiusM": &c.MaxRadiusM, "DefaultAccuracyM": &c.DefaultAccuracyM, "MinSigmaM": &c.MinSigmaM,
		"SpacingM": &c.SpacingM, "HeadingNats": &c.HeadingNats, "UTurnM": &c.UTurnM, "BanM": &c.BanM, "PrivateM": &c.PrivateM,
		"BeamNats": &c.BeamNats, "TailSigmas": &c.TailSigmas, "DetourM": &c.DetourM, "DetourMPS": &c.DetourMPS, "DetourLateMPS": &c.DetourLateMPS,
	}
	if p := fields[name]; p != nil {
		*p = v
		return
	}
	if name == "AwayS" {
		c.Away = time.Duration(v * float64(time.Second))
		return
	}
	if name == "Candidates" {
		c.Candidates = int(v)
		return
	}
	tb.Fatalf("no setting %q", name)
}

// TestTune compares settings by cross-validation: of five folds of the drives, each is judged with the settings that were best on the
// other four. It is a tool: built with tag tune, it needs MILEPOST_TUNE, the settings to try.
func TestTune(t *testing.T) {
	text := os.Getenv("MILEPOST_TUNE")
	if text == "" {
		t.Fatal("MILEPOST_TUNE must name the settings to compare, as UTurnM=40,80;SpacingM=10,15")
	}
	all := decks(t, dataDir(t))
	names, configs := variants(t, text)
	const folds = 5
	steps := len(all[0].steps)
	// sums[c][fold][step]
	sums := make([][folds][]matchtest.Score, len(configs))
	drawn := make([][folds][]matchtest.Score, len(configs))
	for c, cfg := range configs {
		for i := range folds {
			sums[c][i], drawn[c][i] = make([]matchtest.Score, steps), make([]matchtest.Score, steps)
		}
		for i, d := range all {
			m, err := mapmatch.New(d.g, cfg)
			if err != nil {
				t.Fatal(err)
			}
			for s := range d.steps {
				o := outcome{lines: d.lines}
				o.match(t, m, &d.steps[s], d.lengths)
				sums[c][i%folds][s].Add(o.Score)
				drawn[c][i%folds][s].Add(o.drawn)
			}
		}
	}
	// loss is the mean over the steps of mismatch beside its goal, all folds but one.
	loss := func(c, without int) (sum float64, each []string) {
		for s := range steps {
			var a, b matchtest.Score
			for f := range folds {
				if f != without {
					a.Add(sums[c][f][s])
					b.Add(drawn[c][f][s])
				}
			}
			sum += 50 * (a.Mismatch() + b.Mismatch()) / all[0].goals[s] / float64(steps)
			each = append(each, fmt.Sprintf("%.2f/%.2f", 100*a.Mismatch(), 100*b.Mismatch()))
		}
		return sum, each
	}
	order := make([]int, len(configs))
	for c := range configs {
		order[c] = c
	}
	slices.SortStableFunc(order, func(a, b int) int {
		x, _ := loss(a, -1)
		y, _ := loss(b, -1)
		return int((x - y) * 1e6)
	})
	for _, c := range order[:min(len(order), 25)] {
		l, each := loss(c, -1)
		t.Logf("%.4f %s  %s", l, strings.Join(each, " "), names[c])
	}
	held := make([]matchtest.Score, steps)
	for f := range folds {
		best := slices.MinFunc(order, func(a, b int) int {
			x, _ := loss(a, f)
			y, _ := loss(b, f)
			return int((x - y) * 1e6)
		})
		t.Logf("fold %d chooses %s", f, names[best])
		for s := range steps {
			held[s].Add(sums[best][f][s])
		}
	}
	for s := range steps {
		t.Logf("held out, step %d: %.2f %%", s, 100*held[s].Mismatch())
	}
}
