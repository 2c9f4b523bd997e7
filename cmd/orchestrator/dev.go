package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"milepost/internal/devstack"
	"milepost/internal/roadnet"
	"milepost/internal/telemetry"
)

// devOptions are the settings of dev.
type devOptions struct {
	service    serviceOptions
	vehicles   int
	interval   time.Duration
	seed       uint64
	duration   time.Duration
	drain      time.Duration
	asJSON     bool
	partitions int32
}

func newDev(io streams) *cobra.Command {
	var o devOptions
	cmd := &cobra.Command{
		Use:   "dev",
		Short: "Run everything on this machine: broker, database, road map, a simulated fleet and a worker",
		Long: `Run the main job on this machine: a Kafka broker in this process, a local Postgres, Delaware's road map, a seeded fleet that
drives legal routes and reports positions with GPS noise, and a worker that matches them to the road while they drive.

The figures are counted by an independent reader of the topics (read_committed) and from Postgres, not by the worker. With
--brokers or --dsn the worker uses a real broker or database instead, under names of this run's own.

The JSON object: observations, outputs, lost, repeated, prepared_left, frontier_lag, p50_ms, p99_ms (from the raw record's
timestamp to the receipt of its output), route_mismatch (share of the driven length that was missed or wrongly added).
Exit code 1 when anything was lost, repeated or left prepared.`,
		Example: `  orchestrator dev
  orchestrator dev --for 20s --json
  orchestrator dev --vehicles 5000 --seed 7 --map newark.osm.pbf`,
		Args: args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			sources, err := settle(cmd.Flags())
			if err != nil {
				return err
			}
			return runDev(cmd.Context(), io, o, sources)
		},
	}
	fs := cmd.Flags()
	fs.IntVar(&o.vehicles, "vehicles", 500, "simulated vehicles")
	fs.DurationVar(&o.interval, "interval", time.Second, "time between two positions of a vehicle")
	fs.Uint64Var(&o.seed, "seed", 1, "seed of the fleet; the same seed drives the same routes")
	fs.DurationVar(&o.duration, "for", 0, "end by itself after so long, drain and report; 0: until Ctrl-C")
	fs.DurationVar(&o.drain, "drain", 30*time.Second, "how long to wait at the end for outputs that are missing")
	fs.BoolVar(&o.asJSON, "json", false, "print one JSON object at the end, and nothing else on standard output")
	fs.Int32Var(&o.partitions, "partitions", 8, "partitions of the raw topic")
	fs.StringVar(&o.service.config, "config", "", "TOML `file` with settings, named as the flags")
	o.service.kafka.flags(fs)
	fs.Var(secretFlag{&o.service.dsn}, "dsn", "Postgres to use; empty: a local one is started")
	fs.StringVar(&o.service.roadMap, "map", "", "road map: an OSM extract or a graph file; empty: Delaware's")
	fs.IntVar(&o.service.lanes, "lanes", 3, "transactional producers that take turns")
	fs.IntVar(&o.service.solvers, "solvers", 0, "solvers in this process; 0: one a core")
	fs.StringVar(&o.service.listen, "listen", "127.0.0.1:0", "address for /livez, /readyz and /metrics; port 0: any free one")
	o.service.traces.flags(fs)
	o.service.log.flags(fs, "warn")
	return cmd
}

func (o *devOptions) validate() error {
	var problems []error
	for _, l := range []struct {
		flag     string
		got, min int64
	}{
		{"vehicles", int64(o.vehicles), 1},
		{"interval", int64(o.interval), int64(10 * time.Millisecond)},
		{"partitions", int64(o.partitions), 1},
		{"for", int64(o.duration), 0},
		{"drain", int64(o.drain), int64(time.Second)},
	} {
		if l.got < l.min {
			problems = append(problems, fmt.Errorf("--%s is too small", l.flag))
		}
	}
	return usage(errors.Join(problems...))
}

// runDev starts what is missing, runs the job, and reports.
func runDev(ctx context.Context, io streams, o devOptions, sources map[string]source) error {
	if err := o.validate(); err != nil {
		return err
	}
	log, err := newLogger(io, o.service.log)
	if err != nil {
		return err
	}
	say := func(format string, args ...any) { fmt.Fprintf(io.err, format+"\n", args...) }
	graph, err := devMap(ctx, &o, log, say)
	if err != nil {
		return err
	}
	stop, err := devStores(ctx, &o, sources["brokers"] == fromDefault, log, say)
	if err != nil {
		return err
	}
	job, err := newDevJob(o, graph, oneMap(graph), log)
	if err != nil {
		return errors.Join(err, stop())
	}
	figures, err := job.run(ctx, newScreen(io, o))
	if err := errors.Join(err, stop()); err != nil {
		return err
	}
	if err := figures.print(io, o.asJSON); err != nil {
		return err
	}
	if figures.Lost+figures.Repeated+int64(figures.PreparedLeft) > 0 {
		return &exitError{exitFailed, errors.New("observations were lost, repeated or left prepared")}
	}
	return nil
}

func devMap(ctx context.Context, o *devOptions, log *slog.Logger, say func(string, ...any)) (*roadnet.Graph, error) {
	if o.service.roadMap == "" {
		path, err := devstack.DelawareMap(ctx, log)
		if err != nil {
			return nil, err
		}
		o.service.roadMap = path
	}
	say("road map: importing %s", o.service.roadMap)
	return loadMap(ctx, o.service.roadMap, "", log)
}

// devStores starts the broker and the database where none were named; the result stops them.
func devStores(ctx context.Context, o *devOptions, ownBroker bool, log *slog.Logger, say func(string, ...any)) (func() error, error) {
	var stops []func() error
	stop := func() error {
		var errs []error
		for _, stop := range slices.Backward(stops) {
			errs = append(errs, stop())
		}
		return errors.Join(errs...)
	}
	if ownBroker {
		broker, err := devstack.StartBroker(devstack.BrokerConfig{})
		if err != nil {
			return nil, err
		}
		stops = append(stops, func() error { broker.Stop(); return nil })
		o.service.kafka.brokers = broker.Addrs()
		say("broker: in this process at %v", broker.Addrs())
	}
	if o.service.dsn == "" {
		dir, err := os.MkdirTemp("", "milepost-dev-")
		if err != nil {
			return nil, errors.Join(err, stop())
		}
		stops = append(stops, func() error { return os.RemoveAll(dir) })
		say("database: starting a local Postgres")
		postgres, err := devstack.StartPostgres(ctx, devstack.PostgresConfig{Dir: dir, Logger: log})
		if err != nil {
			return nil, errors.Join(err, stop())
		}
		stops = append(stops, postgres.Stop)
		o.service.dsn = telemetry.Secret(postgres.DSN())
	}
	return stop, nil
}

// figures are what dev reports.
type figures struct {
	Observations  int64    `json:"observations"`
	Outputs       int64    `json:"outputs"`
	Lost          int64    `json:"lost"`
	Repeated      int64    `json:"repeated"`
	PreparedLeft  int      `json:"prepared_left"`
	FrontierLag   int64    `json:"frontier_lag"`
	P50MS         float64  `json:"p50_ms"`
	P99MS         float64  `json:"p99_ms"`
	RouteMismatch float64  `json:"route_mismatch"`
	Disordered    int64    `json:"disordered"`
	Foreign       int64    `json:"foreign"`
	Quarantined   int      `json:"quarantined"`
	Vehicles      int      `json:"vehicles"`
	Seconds       float64  `json:"seconds"`
	PerSecond     float64  `json:"observations_per_second"`
	Seed          uint64   `json:"seed"`
	Findings      []string `json:"findings,omitempty"`
}

func (f *figures) print(io streams, asJSON bool) error {
	if asJSON {
		return json.NewEncoder(io.out).Encode(f)
	}
	_, err := fmt.Fprintf(io.out, `
%d observations of %d vehicles in %.1f s (%.0f a second), %d outputs
lost %d   repeated %d   left prepared %d   frontier lag %d
event to commit: p50 %.0f ms, p99 %.0f ms   route mismatch %.2f %%
`, f.Observations, f.Vehicles, f.Seconds, f.PerSecond, f.Outputs, f.Lost, f.Repeated, f.PreparedLeft, f.FrontierLag, f.P50MS, f.P99MS, 100*f.RouteMismatch)
	for _, x := range f.Findings {
		fmt.Fprintln(io.out, " -", x)
	}
	return err
}
