package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"milepost/bench/machine"
	"milepost/internal/mapmatch/matchtest"
)

// bench runs contenders over sets.
type bench struct {
	peers   peers
	work    string // where maps are prepared, a folder a set
	engines []string
	tries   []contender // settings beside the usual ones
	rounds  int
	log     io.Writer
}

// start installs, prepares and starts the engines for a set's map. An engine that cannot is named with the reason.
func (b *bench) start(ctx context.Context, s *set) (map[string]engine, []engineNote) {
	work := filepath.Join(b.work, s.name)
	running := make(map[string]engine)
	var notes []engineNote
	for _, name := range b.engines {
		began := time.Now()
		e, err := b.startOne(ctx, name, s.mapFile, work)
		note := engineNote{Name: name, Version: version(name)}
		if err != nil {
			note.Missing = err.Error()
			fmt.Fprintf(b.log, "%s: left out: %v\n", name, err)
		} else {
			running[name] = e
			fmt.Fprintf(b.log, "%s: ready after %.1f s\n", name, time.Since(began).Seconds())
		}
		notes = append(notes, note)
	}
	return running, notes
}

func (b *bench) startOne(ctx context.Context, name, mapFile, work string) (engine, error) {
	if err := os.MkdirAll(work, 0o755); err != nil {
		return nil, err
	}
	if err := b.peers.install(ctx, name); err != nil {
		return nil, fmt.Errorf("install: %w", err)
	}
	var e engine
	var err error
	switch name {
	case "ours":
		e, err = startOurs(ctx, mapFile, work)
	case "valhalla":
		e, err = startValhalla(ctx, b.peers, mapFile, work)
	case "osrm":
		e, err = startOSRM(ctx, b.peers, mapFile, work)
	case "graphhopper":
		e, err = startGraphHopper(ctx, b.peers, mapFile, work)
	default:
		err = fmt.Errorf("there is no engine %q", name)
	}
	if err != nil {
		return nil, err
	}
	return e, nil
}

// set measures all contenders on a set.
func (b *bench) set(ctx context.Context, s *set) (*figures, error) {
	f := newFigures(s)
	running, notes := b.start(ctx, s)
	defer func() {
		for _, e := range running {
			e.process().stop()
		}
	}()
	f.Engines = notes
	var list []contender
	for _, c := range append(contenders(s.richer), b.tries...) {
		if running[c.engine] != nil {
			list = append(list, c)
			f.Contenders = append(f.Contenders, contenderNote{Name: c.name(), Label: c.label, About: c.about})
		}
	}
	for i := range s.batches {
		rows, err := b.batch(ctx, &s.batches[i], list, running)
		if err != nil {
			return nil, err
		}
		f.Rows = append(f.Rows, rows...)
	}
	f.LoadAfter = machine.Load()
	return f, nil
}

// batch measures one step. In a first round, which warms all up, the answers are judged; then the contenders take turns, forwards in one round
// and backwards in the next, and are timed.
func (b *bench) batch(ctx context.Context, t *batch, list []contender, running map[string]engine) ([]row, error) {
	tallies := make([]tally, len(list))
	for i, c := range list {
		if err := tallies[i].judge(ctx, running[c.engine], c.setting, t); err != nil {
			return nil, err
		}
	}
	for round := range b.rounds {
		order := make([]int, 0, len(list))
		for i := range list {
			if !list[i].once {
				order = append(order, i)
			}
		}
		if round%2 == 1 {
			slices.Reverse(order)
		}
		for _, i := range order {
			if _, err := tallies[i].round(ctx, running[list[i].engine], list[i].setting, t); err != nil {
				return nil, err
			}
		}
	}
	for i, c := range list {
		if !c.once {
			tallies[i].cpu, tallies[i].wall = tallies[i].cpu[1:], tallies[i].wall[1:] // not the first round
		}
	}
	var rows []row
	for i, c := range list {
		r := tallies[i].row(c.name(), t)
		fmt.Fprintf(b.log, "%-20s %4g s: mismatch %6.2f %%, median %6.2f %%, %8.0f points/s of a core, %d failed\n", r.Contender, r.StepS, r.MismatchPct, r.MedianPct, r.PointsPerCore, r.Failed)
		rows = append(rows, r)
	}
	return rows, nil
}

// tally sums up what one contender did with one batch.
type tally struct {
	score  matchtest.Score
	each   []float64
	failed int
	why    string
	pieces int
	lag    lag
	cpu    []time.Duration // a round
	wall   []time.Duration
}

// round asks for every drive. An error is a drive without an answer, unless the engine is gone.
func (t *tally) round(ctx context.Context, e engine, setting string, b *batch) ([]answer, error) {
	var answers []answer
	t.failed = 0
	cpu, wall := e.process().cpu(), time.Now()
	for i := range b.drives {
		a, err := e.match(ctx, setting, b.drives[i].obs)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		select {
		case <-e.process().done:
			return nil, fmt.Errorf("the engine ended: %w", err)
		default:
		}
		if err != nil {
			t.failed++
			t.why = err.Error()
		}
		answers = append(answers, a)
	}
	t.cpu = append(t.cpu, e.process().cpu()-cpu)
	t.wall = append(t.wall, time.Since(wall))
	return answers, nil
}

// judge is a round whose answers are scored.
func (t *tally) judge(ctx context.Context, e engine, setting string, b *batch) error {
	if o, ok := e.(*ours); ok {
		o.tellLag = true
		defer func() { o.tellLag = false }()
	}
	answers, err := t.round(ctx, e, setting, b)
	if err != nil {
		return err
	}
	for i := range b.drives {
		s := b.drives[i].score(answers[i].lines)
		t.score.Add(s)
		t.each = append(t.each, s.Mismatch())
		t.pieces += len(answers[i].lines)
		t.lag.add(answers[i].lag)
	}
	return nil
}

func (t *tally) row(name string, b *batch) row {
	n := float64(b.points())
	r := row{
		Contender: name, StepS: b.stepS, Step: b.label, Drives: len(b.drives), Points: b.points(),
		MismatchPct: round2(100 * t.score.Mismatch()), MedianPct: round2(100 * quantile(t.each, .5)), WorstTenthPct: round2(100 * quantile(t.each, .9)),
		CorrectPct: round2(100 * (1 - t.score.MissedM/max(t.score.TrueM, 1))), AddedPct: round2(100 * t.score.AddedM / max(t.score.TrueM, 1)),
		TrueKM: round2(t.score.TrueM / 1000), Failed: t.failed, Why: t.why, Pieces: t.pieces,
		PointsPerCore: rate(n, t.cpu), PointsPerSecond: rate(n, t.wall), Rounds: len(t.cpu),
	}
	if len(t.lag.Points) > 0 {
		points := make([]float64, len(t.lag.Points))
		for i, p := range t.lag.Points {
			points[i] = float64(p)
		}
		left := round2(100 * float64(t.lag.Left) / n)
		r.Lag = &lagNote{
			PointsP50: quantile(points, .5), PointsP95: quantile(points, .95), PointsP99: quantile(points, .99),
			SecondsP50: round2(quantile(t.lag.Seconds, .5)), SecondsP95: round2(quantile(t.lag.Seconds, .95)), SecondsP99: round2(quantile(t.lag.Seconds, .99)),
			RevisedPct: round2(100 * float64(t.lag.Moved) / float64(len(points))), Breaks: t.lag.Breaks,
			LeftPct: &left,
		}
	}
	return r
}

// rate is the median over the rounds.
func rate(points float64, took []time.Duration) float64 {
	var rates []float64
	for _, d := range took {
		if d <= 0 {
			continue // a system that does not tell
		}
		rates = append(rates, points/d.Seconds())
	}
	slices.Sort(rates)
	n := len(rates)
	if n == 0 {
		return 0
	}
	return float64(int64((rates[(n-1)/2] + rates[n/2]) / 2))
}

func quantile(values []float64, q float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	return sorted[min(int(q*float64(len(sorted))), len(sorted)-1)]
}

func round2(v float64) float64 { return float64(int64(v*100+.5)) / 100 }
