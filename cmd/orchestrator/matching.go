package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/schollz/progressbar/v3"

	"milepost/internal/fleet"
	"milepost/internal/fleet/offline"
	"milepost/internal/mapmatch"
	"milepost/internal/roadnet"
	"milepost/internal/tracefile"
)

// matching is one run of match.
type matching struct {
	io       streams
	traces   traceOptions
	opts     tracefile.Options
	vehicle  roadnet.Vehicle
	format   string
	geometry fleet.Geometry
	fields   []string

	route, explain, asJSON bool
}

func (m *matching) run(ctx context.Context, world offline.World, files []string) error {
	cfg := mapmatch.DefaultConfig()
	cfg.Vehicle = m.vehicle
	engine, err := offline.NewEngine(world, cfg)
	if err != nil {
		return usage(err)
	}
	r, err := engine.NewRun(offline.Options{Fleet: fleet.DefaultConfig(), AssumeStep: m.traces.step, Explain: m.explain})
	if err != nil {
		return usage(err)
	}
	r.AddSink(m.sink(r, offline.NewLocator(m.vehicle, world.Graphs...)))
	bad := &refusals{out: m.io.err}
	shown := showReading(m.io, files)
	err = m.files(ctx, r, files, bad, shown)
	shown.stop()
	if err != nil {
		return err
	}
	summary, err := r.Close()
	if err != nil {
		return err
	}
	m.report(&summary)
	return bad.verdict(summary.Observations)
}

// sink is what writes the output.
func (m *matching) sink(r *offline.Run, loc *offline.Locator) offline.Sink {
	out := m.io.out
	switch {
	case m.route:
		return offline.NewRoute(out)
	case m.explain && m.asJSON:
		return offline.NewExplainJSON(out, r)
	case m.explain:
		return offline.NewExplainText(out, r)
	}
	switch m.format {
	case asTable:
		return offline.NewTable(out, loc, r.Settle)
	case asGeoJSON:
		return offline.NewGeoJSON(out, r.Settle)
	case asGPX:
		return offline.NewGPX(out, r.Settle)
	case asFMM:
		return offline.NewFMM(out, m.fields, m.geometry, loc, r.Settle)
	default:
		return offline.NewJSON(out, m.geometry)
	}
}

func (m *matching) report(s *offline.Summary) {
	fmt.Fprintf(m.io.err, "%d observations of %d vehicles, %d segments:", s.Observations, s.Vehicles, s.Segments)
	for _, d := range fleet.Dispositions() {
		if n := s.Dispositions[d]; n > 0 {
			fmt.Fprintf(m.io.err, " %s %d", d, n)
		}
	}
	fmt.Fprintln(m.io.err)
}

func (m *matching) files(ctx context.Context, r *offline.Run, files []string, bad *refusals, shown *reading) error {
	for _, name := range files {
		if err := m.file(ctx, r, name, bad, shown); err != nil {
			return err
		}
	}
	return nil
}

func (m *matching) file(ctx context.Context, r *offline.Run, name string, bad *refusals, shown *reading) error {
	in, err := openTrace(m.io, name)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	for fix, err := range tracefile.Read(shown.count(in), name, m.opts) {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err == nil {
			if err = r.Add(&fix); errors.Is(err, offline.ErrNoTime) {
				err = tracefile.NoTime(name, fix.Line)
			}
		}
		if err == nil {
			continue
		}
		var row *tracefile.RowError
		if !errors.As(err, &row) {
			return err
		}
		if bad.note(row); m.traces.strict {
			return errStrict
		}
	}
	return nil
}

// reading shows on a terminal how much of the input has been read.
type reading struct {
	out io.Writer
	bar *progressbar.ProgressBar // nil: there is no terminal
}

func showReading(s streams, files []string) *reading {
	if !onTerminal(s.err) {
		return &reading{}
	}
	total := int64(0)
	for _, name := range files {
		info, err := os.Stat(name)
		if err != nil || !info.Mode().IsRegular() {
			total = -1 // standard input, or what opening it will complain of
			break
		}
		total += info.Size()
	}
	return &reading{out: s.err, bar: progressbar.NewOptions64(total,
		progressbar.OptionSetWriter(s.err), progressbar.OptionSetDescription("match"), progressbar.OptionShowBytes(true),
		progressbar.OptionSetPredictTime(true), progressbar.OptionThrottle(200*time.Millisecond), progressbar.OptionClearOnFinish())}
}

// count gives a reader whose bytes are shown.
func (r *reading) count(in io.Reader) io.Reader {
	if r.bar == nil {
		return in
	}
	return io.TeeReader(in, r.bar)
}

func (r *reading) stop() {
	if r.bar != nil {
		_ = r.bar.Clear() // a bar that cannot be drawn stops nothing
	}
}
