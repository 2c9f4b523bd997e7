package main

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"milepost/internal/fleet"
	"milepost/internal/fleet/offline"
	"milepost/internal/roadnet"
)

// The formats of match.
const (
	asEvents  = "json"
	asTable   = "csv"
	asGeoJSON = "geojson"
	asGPX     = "gpx"
	asFMM     = "fmm"
)

// matchOptions are the settings of match.
type matchOptions struct {
	traces traceOptions
	logs   logOptions

	roadMap, catalog, profiles, vehicle string
	format, geometry, fields            string
	route, explain, asJSON              bool

	serving bool
	listen  string
	api     wholeTraces
}

func (o *matchOptions) flags(fs *pflag.FlagSet) {
	fs.String("config", "", "TOML `file` with settings, named as the flags")
	mapFlags(fs, &o.roadMap, &o.profiles)
	fs.StringVar(&o.catalog, "catalog", "", "in place of --map: TOML `file` with regions, each on a map of its own")
	fs.StringVar(&o.vehicle, "vehicle", "car", "whose roads count: car, truck, bus, bicycle or foot; a graph file must be made for it; with --serve more than one, or all")
	fs.StringVar(&o.format, "format", asEvents, "json, csv, geojson, gpx or fmm")
	fs.StringVar(&o.geometry, "geometry", "", "lines as geojson, polyline6, wkt or none; with json (default geojson) and fmm (default wkt)")
	fs.StringVar(&o.fields, "fields", "cpath,mgeom", "columns of fmm besides id and segment, or all")
	fs.BoolVar(&o.asJSON, "json", false, "the same as --format json; with --explain: one object an observation")
	fs.BoolVar(&o.route, "route", false, "print the driven route as CSV in place of the positions")
	fs.BoolVar(&o.explain, "explain", false, "print what was weighed for each observation, and why, in place of the positions")
	fs.BoolVar(&o.serving, "serve", false, "answer POST /v1/match over HTTP in place of matching files")
	fs.StringVar(&o.listen, "listen", "127.0.0.1:8002", "with --serve: address for /v1/match, /v1/openapi.yaml, /livez, /readyz and /metrics")
	fs.IntVar(&o.api.atOnce, "match-traces", 0, "with --serve: traces that are matched at once; 0: one a core")
	o.api.tokenFlag(fs)
	o.traces.flags(fs)
	o.logs.flags(fs, "warn")
}

func newMatch(io streams) *cobra.Command {
	var o matchOptions
	cmd := &cobra.Command{
		Use:   "match {--map FILE | --catalog FILE} {TRACE… | --serve}",
		Short: "Match trace files to a road map, without a broker, or traces that come over HTTP",
		Long: `Match traces with the same decisions that a worker makes of the same records, and print what became of each position. A file may hold
many vehicles; they may stand among one another.

json: one event an observation, as on the matched topic, and a last one a vehicle that makes the rest final.
csv: one row an observation with its disposition, way, neighbouring nodes, offset and snapped position.
geojson: a FeatureCollection with the driven paths and the positions.
gpx: a track a vehicle with its driven path and the times along it.
fmm: FMM's table of results, one row a segment: id, the columns that --fields names (ogeom, opath, error, offset, spdist, pgeom,
cpath, tpath, mgeom, length, duration, speed; ours: edges, disposition, confidence, timestamp), segment. Edges are OSM way ids.
--route: the driven route as CSV vehicle,way,from,to, one row a pair of neighbouring OSM nodes and traversal.
--explain: the candidates of each observation with their costs, which won, then and in the end, and why.
--serve: answer POST /v1/match, a whole trace a request, asked as Valhalla's trace_attributes is, until stopped.

Traces: GPX (a track's name is its vehicle's), CSV and JSON lines (columns by name: vehicle, time, t_ms or t_s, lon, lat or point,
speed_mps, heading_deg, accuracy_m), GeoJSON points, and FMM's tables; plain, gzip or bzip2. "-" reads standard input (name
its format with --input).`,
		Example: `  orchestrator match --map delaware.osm.pbf trip.gpx
  orchestrator match --map delaware.osm.pbf --format csv fleet.csv > matched.csv
  orchestrator match --map delaware.osm.pbf --route fleet.csv > route.csv
  orchestrator match --map delaware.osm.pbf --format gpx trip.gpx > driven.gpx
  orchestrator match --map delaware.osm.pbf --explain trip.gpx | less
  orchestrator match --map delaware.osm.pbf --assume-step 5s --format fmm --fields opath,cpath,mgeom trips.csv
  orchestrator match --map delaware.osm.pbf --geometry polyline6 trip.gpx
  orchestrator match --map delaware.osm.pbf --serve --vehicle car,truck
  orchestrator match --catalog regions.toml --vehicle truck --format geojson fleet.jsonl.gz
  orchestrator match --map berlin.osm.pbf --assume-step 1s --columns lat=y,lon=x - --input csv < tracks.csv`,
		RunE: func(cmd *cobra.Command, files []string) error {
			if _, err := settle(cmd.Flags()); err != nil {
				return err
			}
			if o.serving {
				return o.answer(cmd, io, files)
			}
			if len(files) == 0 {
				return usagef("requires at least 1 arg(s), a trace, or --serve (see: %s --help)", cmd.CommandPath())
			}
			m, err := o.matching(io, cmd.Flags().Changed("format"))
			if err != nil {
				return err
			}
			log, err := newLogger(io, o.logs)
			if err != nil {
				return err
			}
			t, err := loadWorld(cmd.Context(), o.roadMap, o.catalog, o.profiles, roadnet.SetOf(m.vehicle), log)
			if err != nil {
				return err
			}
			return m.run(cmd.Context(), worldOf(t), files)
		},
	}
	o.flags(cmd.Flags())
	return cmd
}

// answer serves, where nothing is asked for that only files have.
func (o *matchOptions) answer(cmd *cobra.Command, io streams, files []string) error {
	var problems []error
	if len(files) > 0 {
		problems = append(problems, errors.New("--serve takes its traces over HTTP, not from files"))
	}
	for _, name := range []string{"format", "geometry", "fields", "json", "route", "explain", "columns", "input", "assume-step", "strict"} {
		if cmd.Flags().Changed(name) {
			problems = append(problems, fmt.Errorf("--%s is for files: with --serve a request says what it wants", name))
		}
	}
	problems = append(problems, o.world(), o.api.validate())
	if _, err := parseVehicles(o.vehicle); err != nil {
		problems = append(problems, err)
	}
	if err := errors.Join(problems...); err != nil {
		return usage(err)
	}
	log, err := newLogger(io, o.logs)
	if err != nil {
		return err
	}
	return o.serve(cmd.Context(), io, log)
}

// parseVehicles reads a list of classes.
func parseVehicles(list string) (set roadnet.Vehicles, err error) {
	for name := range strings.SplitSeq(list, ",") {
		v, ok := roadnet.ParseVehicle(strings.TrimSpace(name))
		switch {
		case name == "all":
			set = roadnet.AllVehicles()
		case !ok:
			return 0, usagef("--vehicle is %q, must be %s", name, strings.ReplaceAll(roadnet.AllVehicles().String(), ",", ", "))
		default:
			set |= roadnet.SetOf(v)
		}
	}
	return set, nil
}

// matching checks the settings, everything that is wrong at once.
func (o *matchOptions) matching(io streams, formatGiven bool) (*matching, error) {
	var problems []error
	wrong := func(err error) {
		if err != nil {
			problems = append(problems, err)
		}
	}
	m := &matching{io: io, traces: o.traces, format: o.format, route: o.route, explain: o.explain, asJSON: o.asJSON}
	wrong(o.world())
	var ok bool
	if m.vehicle, ok = roadnet.ParseVehicle(o.vehicle); !ok {
		wrong(usagef("--vehicle is %q, must be %s", o.vehicle, strings.ReplaceAll(roadnet.AllVehicles().String(), ",", ", ")))
	}
	if !slices.Contains([]string{asEvents, asTable, asGeoJSON, asGPX, asFMM}, o.format) {
		wrong(usagef("--format is %q, must be json, csv, geojson, gpx or fmm", o.format))
	}
	switch {
	case o.route && o.explain, (o.route || o.explain) && formatGiven, o.route && o.asJSON:
		wrong(usagef("--route and --explain go with neither each other nor a --format; --explain goes with --json"))
	case o.asJSON && formatGiven && o.format != asEvents:
		wrong(usagef("--json goes with no other --format"))
	}
	var err error
	m.geometry, err = fleet.ParseGeometry(cmp.Or(o.geometry, map[string]string{asFMM: string(fleet.WKT)}[o.format], string(fleet.Coordinates)))
	switch {
	case err != nil:
		wrong(usagef("--geometry: %w", err))
	case o.geometry != "" && (o.format != asEvents && o.format != asFMM || o.route || o.explain):
		wrong(usagef("--geometry goes with --format json and fmm; csv has no lines, geojson and gpx their own"))
	}
	m.fields, err = offline.ParseFMMFields(o.fields)
	if err != nil {
		wrong(usagef("--fields: %w", err))
	}
	m.opts, err = o.traces.read()
	wrong(err)
	return m, usage(errors.Join(problems...))
}

func (o *matchOptions) world() error {
	switch {
	case o.roadMap == "" && o.catalog == "":
		return mustBeSet("map")
	case o.roadMap != "" && o.catalog != "":
		return errors.New("--map and --catalog exclude each other")
	}
	return nil
}

func worldOf(t *territory) offline.World { return offline.World{Atlas: t.atlas, Graphs: t.graphs} }
