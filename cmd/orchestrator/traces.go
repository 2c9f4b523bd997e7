package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/pflag"

	"milepost/internal/tracefile"
)

// traceOptions say how trace files are read.
type traceOptions struct {
	columns string
	format  string
	step    time.Duration
	strict  bool
}

func (o *traceOptions) flags(fs *pflag.FlagSet) {
	fs.StringVar(&o.columns, "columns", "", "other names of columns, as in lat=latitude,lon=longitude,time=date+clock")
	fs.StringVar(&o.format, "input", "", "gpx, csv, jsonl, geojson or fmm (id;geom[;timestamp] or id;x;y[;timestamp]); empty: by the file's name")
	fs.DurationVar(&o.step, "assume-step", 0, "time between positions where a file gives none; 0: such positions are refused")
	fs.BoolVar(&o.strict, "strict", false, "stop at the first row that is refused")
}

func (o *traceOptions) read() (tracefile.Options, error) {
	columns, err := tracefile.ParseColumns(o.columns)
	if err != nil {
		return tracefile.Options{}, usagef("--columns: %w", err)
	}
	f := tracefile.Format(o.format)
	switch f {
	case tracefile.Auto, tracefile.GPX, tracefile.CSV, tracefile.JSONLines, tracefile.GeoJSON, tracefile.FMM:
	default:
		return tracefile.Options{}, usagef("--input is %q, must be gpx, csv, jsonl, geojson or fmm", o.format)
	}
	if o.step < 0 {
		return tracefile.Options{}, usagef("--assume-step is %s, must not be negative", o.step)
	}
	return tracefile.Options{Format: f, Columns: columns}, nil
}

// refusals tells of refused rows on standard error, the first ones in full, and counts them all.
type refusals struct {
	out   io.Writer
	count int64
}

const refusalsShown = 50

// errStrict ends a run at its first refused row.
var errStrict = errors.New("stopped at the first refused row (--strict)")

func (r *refusals) note(e *tracefile.RowError) {
	r.count++
	switch {
	case r.count <= refusalsShown:
		fmt.Fprintln(r.out, "refused:", e)
	case r.count == refusalsShown+1:
		fmt.Fprintf(r.out, "refused: more than %d rows; the rest is only counted\n", refusalsShown)
	}
}

// verdict is the error that a run with refused rows ends with (V3); good is how many rows went in.
func (r *refusals) verdict(good int64) error {
	switch {
	case r.count == 0:
		return nil
	case good == 0:
		return errors.New("no row could be used (other column names: --columns; no times: --assume-step)")
	}
	return &exitError{exitRefused, fmt.Errorf("%d rows were refused, the other %d went in", r.count, good)}
}

// openTrace opens a file, or standard input for "-".
func openTrace(s streams, name string) (io.ReadCloser, error) {
	if name == "-" {
		return io.NopCloser(s.in), nil
	}
	return os.Open(name)
}
