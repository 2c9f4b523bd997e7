package ingest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync/atomic"
	"time"

	"milepost/internal/fleet"
	"milepost/internal/mapmatch"
	"milepost/internal/roadnet"
	"milepost/internal/tracefile"
)

// Input is one file.
type Input struct {
	Name  string
	Open  func() (io.ReadCloser, error) // once a pass
	Trace tracefile.Options
}

// TimeMode says what becomes of the fixes' times.
type TimeMode string

// The time modes.
const (
	Keep  TimeMode = "keep"  // as the file has them
	Shift TimeMode = "shift" // moved so that the first is now
)

// maxSorted fixes are held to be put in time's order.
const maxSorted = 4_000_000

// Options say how inputs are played.
type Options struct {
	Pace       Pace
	Time       TimeMode
	Loop       bool          // again and again, until the context ends
	AssumeStep time.Duration // from fix to fix of a vehicle where the file gives no times; 0: such fixes are refused
}

// Validate refuses what cannot be played.
func (o Options) Validate() error {
	switch {
	case o.Time != Keep && o.Time != Shift:
		return fmt.Errorf("time: want %s or %s", Keep, Shift)
	case o.Loop && o.Time == Keep:
		return errors.New("loop: a second pass with the same times would only repeat the first; use --time shift")
	case o.AssumeStep < 0:
		return errors.New("assume step: want a duration such as 1s")
	}
	return o.Pace.Validate()
}

// Record is one raw record to produce; its key is the vehicle. Value is the caller's.
type Record struct {
	Vehicle string
	Time    time.Time // event time, as it is in the value
	Value   []byte
}

// Progress is how far a feed is.
type Progress struct {
	Sent, Refused, Passes int64
	Total                 int64 // records a pass; 0: not known yet
}

// Feed plays inputs once, or in a loop.
type Feed struct {
	opts    Options
	inputs  []Input
	produce func(context.Context, Record) error
	refused func(*tracefile.RowError)

	sent, bad, passes, total atomic.Int64

	start    time.Time // of Run
	first    time.Time // event time that Shift moves to start
	least    time.Time // event times of the first pass
	greatest time.Time
	assumed  map[string]time.Time // last assumed time of each vehicle
}

// New makes a feed. produce may block to slow the feed down; its error ends it. refused is told of each bad row, in the first pass.
func New(opts Options, inputs []Input, produce func(context.Context, Record) error, refused func(*tracefile.RowError)) (*Feed, error) {
	if err := opts.Validate(); err != nil {
		return nil, err
	}
	if len(inputs) == 0 {
		return nil, errors.New("no input")
	}
	return &Feed{opts: opts, inputs: inputs, produce: produce, refused: refused}, nil
}

// Progress may be called at any time.
func (f *Feed) Progress() Progress {
	return Progress{Sent: f.sent.Load(), Refused: f.bad.Load(), Passes: f.passes.Load(), Total: f.total.Load()}
}

// Run plays the inputs. It returns nil at their end, context.Cause of a context that ended, or produce's error.
func (f *Feed) Run(ctx context.Context) error {
	f.start = time.Now()
	for {
		f.assumed = map[string]time.Time{}
		before := f.sent.Load()
		if err := f.pass(ctx); err != nil {
			return err
		}
		f.total.Store(f.sent.Load() - before)
		f.passes.Add(1)
		if !f.opts.Loop {
			return nil
		}
		if f.sent.Load() == before {
			return errors.New("nothing to loop over: no row is a fix")
		}
	}
}

func (f *Feed) pass(ctx context.Context) error {
	if f.opts.Pace.Speed > 0 {
		return f.sortedPass(ctx)
	}
	return f.each(ctx, func(fix *tracefile.Fix) error { return f.send(ctx, fix) })
}

// sortedPass plays all vehicles of all files side by side, which needs their fixes in time's order.
func (f *Feed) sortedPass(ctx context.Context) error {
	var fixes []tracefile.Fix
	err := f.each(ctx, func(fix *tracefile.Fix) error {
		if len(fixes) == maxSorted {
			return fmt.Errorf("more than %d fixes cannot be put in time's order; use --rate", maxSorted)
		}
		fixes = append(fixes, *fix)
		return nil
	})
	if err != nil {
		return err
	}
	slices.SortStableFunc(fixes, func(a, b tracefile.Fix) int { return a.Time.Compare(b.Time) })
	f.total.Store(int64(len(fixes)))
	for i := range fixes {
		if err := f.send(ctx, &fixes[i]); err != nil {
			return err
		}
	}
	return nil
}

// each reads all inputs; a fix without time is given one or refused.
func (f *Feed) each(ctx context.Context, take func(*tracefile.Fix) error) error {
	for _, in := range f.inputs {
		if err := f.file(ctx, in, take); err != nil {
			return err
		}
	}
	return nil
}

func (f *Feed) file(ctx context.Context, in Input, take func(*tracefile.Fix) error) error {
	r, err := in.Open()
	if err != nil {
		return fmt.Errorf("open a trace: %w", err)
	}
	defer func() { _ = r.Close() }() // only read
	for fix, err := range tracefile.Read(r, in.Name, in.Trace) {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err == nil && !fix.HasTime() {
			err = f.assume(in.Name, &fix)
		}
		if row := (*tracefile.RowError)(nil); errors.As(err, &row) {
			if f.passes.Load() == 0 {
				f.bad.Add(1)
				f.refused(row)
			}
			continue
		}
		if err := take(&fix); err != nil {
			return err
		}
	}
	return nil
}

func (f *Feed) assume(name string, fix *tracefile.Fix) error {
	if f.opts.AssumeStep == 0 {
		return tracefile.NoTime(name, fix.Line)
	}
	last, ok := f.assumed[fix.Vehicle]
	fix.Time = f.start.Truncate(time.Millisecond)
	if ok {
		fix.Time = last.Add(f.opts.AssumeStep)
	}
	f.assumed[fix.Vehicle] = fix.Time
	return nil
}

// send waits until a fix is due and produces it.
func (f *Feed) send(ctx context.Context, fix *tracefile.Fix) error {
	if f.sent.Load() == 0 {
		f.first, f.least, f.greatest = fix.Time, fix.Time, fix.Time
	}
	at := fix.Time
	if passes := f.passes.Load(); passes == 0 {
		if at.Before(f.least) {
			f.least = at
		}
		if at.After(f.greatest) {
			f.greatest = at
		}
	} else {
		at = at.Add(time.Duration(passes) * (f.greatest.Sub(f.least) + time.Second))
	}
	since := at.Sub(f.first)
	if err := wait(ctx, f.opts.Pace.Due(f.sent.Load(), since)-time.Since(f.start)); err != nil {
		return err
	}
	if f.opts.Time == Shift {
		at = f.start.Truncate(time.Millisecond).Add(since)
	}
	at = at.UTC().Truncate(time.Microsecond) // what a checkpoint keeps
	value := fleet.AppendFix(nil, &fleet.Fix{Vehicle: fix.Vehicle, Observation: mapmatch.Observation{
		Time: at, Point: roadnet.Point{Lon: fix.Lon, Lat: fix.Lat},
		AccuracyM: fix.AccuracyM, SpeedMPS: fix.SpeedMPS, Heading: fix.HeadingDeg,
	}})
	if err := f.produce(ctx, Record{Vehicle: fix.Vehicle, Time: at, Value: value}); err != nil {
		return err
	}
	f.sent.Add(1)
	return nil
}

// A wait shorter than this is not worth a timer; the next one makes up for it.
const shortWait = 500 * time.Microsecond

func wait(ctx context.Context, d time.Duration) error {
	if d < shortWait {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
