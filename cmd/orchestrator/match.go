package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"milepost/internal/fleet"
	"milepost/internal/fleet/offline"
	"milepost/internal/mapmatch"
	"milepost/internal/roadnet"
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

func newMatch(io streams) *cobra.Command {
	var (
		traces          traceOptions
		logs            logOptions
		roadMap, format string
		profiles        string
		route, asJSON   bool
	)
	cmd := &cobra.Command{
		Use:   "match --map FILE TRACE…",
		Short: "Match trace files to a road map, without a broker",
		Long: `Match traces with the same decisions that a worker makes of the same records, and print what became of each position.

json: one event an observation, as on the matched topic, and a last one a vehicle that makes the rest final.
csv: one row an observation with its disposition, way, neighbouring nodes, offset and snapped position.
geojson: a FeatureCollection with the driven paths and the positions.
--route: the driven route as CSV vehicle,way,from,to, one row a pair of neighbouring OSM nodes and traversal.

"-" reads standard input (name its format with --input).`,
		Example: `  orchestrator match --map delaware.osm.pbf trip.gpx
  orchestrator match --map delaware.osm.pbf --format csv fleet.csv > matched.csv
  orchestrator match --map delaware.osm.pbf --route fleet.csv > route.csv
  orchestrator match --map berlin.osm.pbf --assume-step 1s --columns lat=y,lon=x tracks.csv.gz`,
		Args: args(cobra.MinimumNArgs(1)),
		RunE: func(cmd *cobra.Command, files []string) error {
			if _, err := settle(cmd.Flags()); err != nil {
				return err
			}
			if roadMap == "" {
				return usagef("--map must be set (or %s)", envName("map"))
			}
			if asJSON && cmd.Flags().Changed("format") && format != "json" || asJSON && route {
				return usagef("--json goes with neither --route nor another --format")
			}
			opts, err := traces.read()
			if err != nil {
				return err
			}
			log, err := newLogger(io, logs)
			if err != nil {
				return err
			}
			graph, err := loadMap(cmd.Context(), roadMap, profiles, log)
			if err != nil {
				return err
			}
			m := matching{io: io, graph: graph, traces: traces, opts: opts, format: format, route: route}
			return m.run(files)
		},
	}
	fs := cmd.Flags()
	fs.String("config", "", "TOML `file` with settings, named as the flags")
	mapFlags(fs, &roadMap, &profiles)
	fs.StringVar(&format, "format", "json", "json, csv or geojson")
	fs.BoolVar(&asJSON, "json", false, "the same as --format json")
	fs.BoolVar(&route, "route", false, "print the driven route as CSV in place of the positions")
	traces.flags(fs)
	logs.flags(fs, "warn")
	return cmd
}

// matching is one run of match.
type matching struct {
	io     streams
	graph  *roadnet.Graph
	traces traceOptions
	opts   tracefile.Options
	format string
	route  bool
}

func (m *matching) run(files []string) error {
	r, err := offline.New(m.graph, offline.Options{
		Fleet: fleet.DefaultConfig(), Matcher: mapmatch.DefaultConfig(), AssumeStep: m.traces.step,
	})
	if err != nil {
		return usage(err)
	}
	switch {
	case m.route:
		r.AddSink(offline.NewRoute(m.io.out))
	case m.format == "csv":
		r.AddSink(offline.NewTable(m.io.out, offline.NewLocator(m.graph), r.Settle))
	case m.format == "geojson":
		r.AddSink(offline.NewGeoJSON(m.io.out, r.Settle))
	case m.format == "json":
		r.AddSink(offline.NewJSON(m.io.out))
	default:
		return usagef("--format is %q, must be json, csv or geojson", m.format)
	}
	bad := &refusals{out: m.io.err}
	for _, name := range files {
		if err := m.file(r, name, bad); err != nil {
			return err
		}
	}
	summary, err := r.Close()
	if err != nil {
		return err
	}
	fmt.Fprintf(m.io.err, "%d observations of %d vehicles, %d segments:", summary.Observations, summary.Vehicles, summary.Segments)
	for _, d := range fleet.Dispositions() {
		if n := summary.Dispositions[d]; n > 0 {
			fmt.Fprintf(m.io.err, " %s %d", d, n)
		}
	}
	fmt.Fprintln(m.io.err)
	return bad.verdict(summary.Observations)
}

func (m *matching) file(r *offline.Run, name string, bad *refusals) error {
	in, err := openTrace(m.io, name)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	for fix, err := range tracefile.Read(in, name, m.opts) {
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

// openTrace opens a file, or standard input for "-".
func openTrace(s streams, name string) (io.ReadCloser, error) {
	if name == "-" {
		return io.NopCloser(s.in), nil
	}
	return os.Open(name)
}
