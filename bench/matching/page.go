package main

import (
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"milepost/internal/picture"
)

const pageName = "matching-bench.md"

// writePage writes the page and its plots from the figures that runs have left.
func writePage(docs string) error {
	all, err := readFigures(figuresFolder(docs))
	if err != nil {
		return err
	}
	text, plots := page(all)
	for _, name := range slices.Sorted(maps.Keys(plots)) {
		if err := os.WriteFile(filepath.Join(figuresFolder(docs), name), plots[name], 0o644); err != nil {
			return err
		}
	}
	return os.WriteFile(filepath.Join(docs, pageName), []byte(text), 0o644)
}

// page renders the figures: the text, and the plots by their names.
func page(all map[string]*figures) (string, map[string][]byte) {
	var b strings.Builder
	plots := make(map[string][]byte)
	b.WriteString(pageHead)
	b.WriteString(fellShort(all))
	for _, name := range setNames() {
		f := all[name]
		if f == nil {
			continue
		}
		fmt.Fprintf(&b, "\n## %s\n\n%s\n\n", f.Title, f.About)
		fmt.Fprintf(&b, "Measured %s at commit %s on %s; load average %s before, %s after.\n", f.Date, f.Revision, f.Machine, f.LoadBefore, f.LoadAfter)
		fmt.Fprintf(&b, "\n    make bench-matching SETS=%s\n", name)
		if len(f.Pushes) > 0 {
			b.WriteString(pushTable(f))
			continue
		}
		b.WriteString(tables(f))
		for _, p := range f.plots() {
			plots[p.name] = p.chart.SVG()
			fmt.Fprintf(&b, "\n![%s](matching-bench/%s)\n", p.chart.Title, p.name)
		}
	}
	b.WriteString(partTakers(all))
	return b.String(), plots
}

const pageHead = `# Matching, beside others

Written by ` + "`make bench-matching`" + ` from the figures in ` + "`docs/matching-bench`" + `; what the
command needs is in [its README](../bench/matching/README.md).

The same traces over the same maps, judged by the same scorer: the lines that an engine
draws, node pair by node pair (` + "`matchtest.Drawn`" + `), as Newson and Krumm's route mismatch, the
length missed and added over the true length. It may exceed 100 % where an engine drives laps.

Every engine is a process of its own with one thread that matches. At each step they take turns over all drives,
forwards in one round and backwards in the next, after a round that is judged and not timed; speeds are medians of the rounds. Points a second are by
the processor time of the engine's process, all of it: reading the request, matching, writing the answer. (` + "`/proc`" + ` tells
it; other load on the machine does not count, though it costs caches.)

Peers see a whole drive before they answer. Ours is online: it sees one observation after the
other, its state is encoded and decoded between any two, and what it made final it cannot take back. What that
costs is its lag, below each table; the route that is judged is the final one. It has no offline mode.
`

// tables renders one set: mismatch, speed, lag.
func tables(f *figures) string {
	steps := f.steps()
	var b strings.Builder
	head := func(title string) {
		fmt.Fprintf(&b, "\n| %s |", title)
		for _, r := range steps {
			fmt.Fprintf(&b, " %s |", stepName(r))
		}
		b.WriteString("\n| --- |" + strings.Repeat(" --- |", len(steps)) + "\n")
	}
	line := func(label string, c string, cell func(r row) string) {
		fmt.Fprintf(&b, "| %s |", label)
		for _, s := range steps {
			r, ok := f.at(c, s.StepS)
			if !ok {
				b.WriteString(" – |")
				continue
			}
			fmt.Fprintf(&b, " %s |", cell(r))
		}
		b.WriteString("\n")
	}
	head("mismatch by length (median of the drives), %")
	for _, c := range f.Contenders {
		line(c.Label, c.Name, func(r row) string {
			text := fmt.Sprintf("%.2f (%.2f)", r.MismatchPct, r.MedianPct)
			if f.best(r) {
				text = fmt.Sprintf("**%.2f** (%.2f)", r.MismatchPct, r.MedianPct)
			}
			if r.Failed > 0 {
				text += fmt.Sprintf(", %d without answer", r.Failed)
			}
			return text
		})
	}
	if len(f.Goals) > 0 {
		b.WriteString("| goal |")
		for _, s := range steps {
			b.WriteString(" " + f.goalText(s.StepS) + " |")
		}
		b.WriteString("\n")
	}
	b.WriteString(f.reasons())
	if len(steps) == 1 {
		head("found (added), % of the length")
		for _, c := range f.Contenders {
			line(c.Label, c.Name, func(r row) string { return fmt.Sprintf("%.2f (%.2f)", r.CorrectPct, r.AddedPct) })
		}
	}
	head("points a second of a core")
	for _, c := range f.Contenders {
		line(c.Label, c.Name, func(r row) string { return thousands(r.PointsPerCore) })
	}
	b.WriteString("| points |")
	for _, s := range steps {
		fmt.Fprintf(&b, " %d |", s.Points)
	}
	b.WriteString("\n")
	head("ours: until final, and then")
	ours := f.Contenders[0].Name
	line("observations p50 / p95 / p99", ours, func(r row) string {
		return fmt.Sprintf("%.0f / %.0f / %.0f", r.Lag.PointsP50, r.Lag.PointsP95, r.Lag.PointsP99)
	})
	line("seconds p50 / p95 / p99", ours, func(r row) string {
		return fmt.Sprintf("%.0f / %.0f / %.0f", r.Lag.SecondsP50, r.Lag.SecondsP95, r.Lag.SecondsP99)
	})
	line("revised: final more than 1 m from the first answer", ours, func(r row) string { return fmt.Sprintf("%.1f %%", r.Lag.RevisedPct) })
	line("left out: outliers, or off the road", ours, func(r row) string {
		if r.Lag.LeftPct == nil {
			return "–"
		}
		return fmt.Sprintf("%.1f %%", *r.Lag.LeftPct)
	})
	line("breaks", ours, func(r row) string { return fmt.Sprintf("%d", r.Lag.Breaks) })
	return b.String()
}

func stepName(r row) string {
	if r.Step != "" {
		return r.Step
	}
	return fmt.Sprintf("%g s", r.StepS)
}

func thousands(v float64) string {
	switch {
	case v >= 10_000:
		return fmt.Sprintf("%.0fk", v/1000)
	case v >= 1000:
		return fmt.Sprintf("%.1fk", v/1000)
	default:
		return fmt.Sprintf("%.0f", v)
	}
}

// reasons says why drives had no answer, once a contender.
func (f *figures) reasons() string {
	var b strings.Builder
	for _, c := range f.Contenders {
		for _, r := range f.Rows {
			if r.Contender == c.Name && r.Failed > 0 {
				why := []rune(r.Why)
				fmt.Fprintf(&b, "\nWithout answer, %s: “%s”.\n", c.Label, strings.TrimRight(string(why[:min(len(why), 160)]), ". "))
				break
			}
		}
	}
	return b.String()
}

// steps has one row of each step.
func (f *figures) steps() (out []row) {
	for _, r := range f.Rows {
		if !slices.ContainsFunc(out, func(o row) bool { return o.StepS == r.StepS }) {
			out = append(out, r)
		}
	}
	return out
}

func (f *figures) at(contender string, stepS float64) (row, bool) {
	for _, r := range f.Rows {
		if r.Contender == contender && r.StepS == stepS {
			return r, true
		}
	}
	return row{}, false
}

func (f *figures) best(r row) bool {
	return !slices.ContainsFunc(f.Rows, func(o row) bool { return o.StepS == r.StepS && o.MismatchPct < r.MismatchPct })
}

func (f *figures) goalText(stepS float64) string {
	for _, g := range f.Goals {
		if g.StepS == stepS {
			return fmt.Sprintf("%.1f", g.MismatchPct)
		}
	}
	return "–"
}

func (f *figures) label(contender string) string {
	for _, c := range f.Contenders {
		if c.Name == contender {
			return c.Label
		}
	}
	return contender
}

// fellShort lists what did not reach its goal, and who was better than ours, in every set.
func fellShort(all map[string]*figures) string {
	var b strings.Builder
	b.WriteString("\n## What fell short\n\n")
	n := b.Len()
	for _, name := range setNames() {
		f := all[name]
		if f == nil {
			continue
		}
		for _, p := range f.Pushes {
			if p.PointsPerCore < p.GoalPerCore {
				fmt.Fprintf(&b, "- %s: %s points a second of a core at %g s, goal %s.\n", f.Title, thousands(p.PointsPerCore), p.StepS, thousands(p.GoalPerCore))
			}
			if p.GoalP99US > 0 && p.P99US > p.GoalP99US {
				fmt.Fprintf(&b, "- %s: p99 %.0f µs at %g s, goal %.0f µs.\n", f.Title, p.P99US, p.StepS, p.GoalP99US)
			}
		}
		if len(f.Contenders) > 0 {
			b.WriteString(f.shortfalls(f.Contenders[0].Name))
		}
	}
	if b.Len() == n {
		b.WriteString("Nothing: every goal was reached, and nobody was nearer to the truth or faster than ours.\n")
	}
	return b.String()
}

func (f *figures) shortfalls(ours string) string {
	var b strings.Builder
	for _, s := range f.steps() {
		r, ok := f.at(ours, s.StepS)
		if !ok {
			continue
		}
		for _, g := range f.Goals {
			if g.StepS == s.StepS && r.MismatchPct > g.MismatchPct {
				fmt.Fprintf(&b, "- %s, %s: mismatch %.2f %%, goal %.1f %%.\n", f.Title, stepName(r), r.MismatchPct, g.MismatchPct)
			}
		}
		for _, o := range f.Rows {
			if o.StepS != s.StepS || strings.HasPrefix(o.Contender, "ours/") {
				continue
			}
			if o.MismatchPct < r.MismatchPct {
				fmt.Fprintf(&b, "- %s, %s: %s is nearer to the truth, %.2f against %.2f %%.\n", f.Title, stepName(r), f.label(o.Contender), o.MismatchPct, r.MismatchPct)
			}
			if o.PointsPerCore > r.PointsPerCore {
				fmt.Fprintf(&b, "- %s, %s: %s is faster, %s against %s points a second of a core.\n", f.Title, stepName(r), f.label(o.Contender), thousands(o.PointsPerCore), thousands(r.PointsPerCore))
			}
		}
	}
	return b.String()
}

// partTakers lists engines, versions and settings, and who is missing why.
func partTakers(all map[string]*figures) string {
	var b strings.Builder
	b.WriteString("\n## Who took part\n\n")
	var said []string
	for _, name := range setNames() {
		f := all[name]
		if f == nil {
			continue
		}
		versions := make(map[string]string)
		for _, e := range f.Engines {
			versions[e.Name] = e.Version
			if e.Missing != "" {
				fmt.Fprintf(&b, "- %s %s did not take part in %q: %s\n", e.Name, e.Version, f.Title, strings.ReplaceAll(e.Missing, "\n", " "))
			}
		}
		for _, c := range f.Contenders {
			engine, _, _ := strings.Cut(c.Name, "/")
			text := fmt.Sprintf("- %s %s: %s\n", c.Label, versions[engine], c.About)
			if !slices.Contains(said, text) {
				said = append(said, text)
			}
		}
	}
	b.WriteString(strings.ReplaceAll(strings.Join(said, ""), " :", ":"))
	b.WriteString("\nThe command has no runner for Barefoot, map-matching-2, FMM and LeuvenMapMatching.\n")
	return b.String()
}

func pushTable(f *figures) string {
	var b strings.Builder
	b.WriteString("\n| step | points | points/s of a core | goal | one push p50 | p99 | slowest |\n| --- | --- | --- | --- | --- | --- | --- |\n")
	for _, p := range f.Pushes {
		goal := ""
		if p.GoalP99US > 0 {
			goal = fmt.Sprintf(" (goal %s)", micros(p.GoalP99US))
		}
		fmt.Fprintf(&b, "| %g s | %d | %s | %s | %s | %s%s | %s |\n", p.StepS, p.Points, thousands(p.PointsPerCore), thousands(p.GoalPerCore), micros(p.P50US), micros(p.P99US), goal, micros(p.MaxUS))
	}
	fmt.Fprintf(&b, "\nMedians of %d rounds. Points a second are by the thread's processor time; one push is by the clock on the wall, so that its p99\nand slowest show whatever else ran on the machine.\n", pushRounds)
	return b.String()
}

func micros(us float64) string {
	if us >= 1000 {
		return fmt.Sprintf("%.1f ms", us/1000)
	}
	return fmt.Sprintf("%.1f µs", us)
}

// plot is a chart with the name of its file.
type plot struct {
	name  string
	chart picture.Chart
}

// plots are those of a set with several steps.
func (f *figures) plots() []plot {
	steps := f.steps()
	if len(steps) < 2 {
		return nil
	}
	var ticks []float64
	for _, s := range steps {
		ticks = append(ticks, s.StepS)
	}
	per := func(of func(r row) float64) (out []picture.Series) {
		for i, c := range f.Contenders {
			s := picture.Series{Name: c.Label, Colour: picture.Colour(engineColour(c.Name)), Dashed: i > 0 && engineColour(f.Contenders[i-1].Name) == engineColour(c.Name)}
			for _, x := range ticks {
				y := math.NaN()
				if r, ok := f.at(c.Name, x); ok {
					y = of(r)
				}
				s.X, s.Y = append(s.X, x), append(s.Y, y)
			}
			out = append(out, s)
		}
		return out
	}
	const x = "seconds between observations"
	mismatch := picture.Chart{Title: f.Title + ": mismatch", X: x, Y: "route mismatch, %", LogY: true, Ticks: ticks, Series: per(func(r row) float64 { return r.MismatchPct })}
	if len(f.Goals) > 0 {
		goal := picture.Series{Name: "goal"}
		for _, g := range f.Goals {
			goal.X, goal.Y = append(goal.X, g.StepS), append(goal.Y, g.MismatchPct)
		}
		mismatch.Goals = []picture.Series{goal}
	}
	speed := picture.Chart{Title: f.Title + ": speed", X: x, Y: "points a second of a core", LogY: true, Ticks: ticks, Series: per(func(r row) float64 { return r.PointsPerCore })}
	of := func(name string, value func(l *lagNote) float64) picture.Series {
		s := picture.Series{Name: name}
		for _, t := range ticks {
			if r, ok := f.at(f.Contenders[0].Name, t); ok && r.Lag != nil {
				s.X, s.Y = append(s.X, t), append(s.Y, value(r.Lag))
			}
		}
		return s
	}
	lag := picture.Chart{Title: f.Title + ": lag of finality", X: x, Y: "observations until final", Ticks: ticks, Series: []picture.Series{
		of("p50", func(l *lagNote) float64 { return l.PointsP50 }),
		of("p95", func(l *lagNote) float64 { return l.PointsP95 }),
		of("p99", func(l *lagNote) float64 { return l.PointsP99 }),
	}}
	revised := picture.Chart{Title: f.Title + ": revised", X: x, Y: "% of places revised", Ticks: ticks, Series: []picture.Series{
		of("final is elsewhere", func(l *lagNote) float64 { return l.RevisedPct }),
	}}
	return []plot{{f.Set + "-mismatch.svg", mismatch}, {f.Set + "-speed.svg", speed}, {f.Set + "-lag.svg", lag}, {f.Set + "-revised.svg", revised}}
}

// engineColour is one for all settings of an engine.
func engineColour(contender string) int {
	engine, _, _ := strings.Cut(contender, "/")
	return max(slices.Index([]string{"ours", "valhalla", "osrm", "graphhopper"}, engine), 0)
}
