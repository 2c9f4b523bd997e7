package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/sync/errgroup"

	"milepost/internal/fleet"
	"milepost/internal/mapmatch"
	"milepost/internal/publish"
	"milepost/internal/solve"
	"milepost/internal/telemetry"
)

// matcherOptions are the settings of a matcher.
type matcherOptions struct {
	kafka  kafkaOptions
	log    logOptions
	secret telemetry.Secret

	config, prefix, region, roadMap, catalog, listen string
	solvers, maxInFlight                             int
	tripBytes                                        int64
	sessionTimeout, drainGrace                       time.Duration
}

func (o *matcherOptions) flags(fs *pflag.FlagSet) {
	fs.StringVar(&o.config, "config", "", "TOML `file` with settings, named as the flags")
	o.kafka.flags(fs)
	fs.StringVar(&o.prefix, "prefix", "milepost", "prefix of our own topics, as the workers have it")
	fs.StringVar(&o.region, "region", fleet.DefaultRegion, "region whose requests are answered")
	fs.StringVar(&o.roadMap, "map", "", "road map of the region, the same file as the workers have")
	fs.StringVar(&o.catalog, "catalog", "", "in place of --map: the workers' catalog, a TOML `file`; read at the start only")
	fs.IntVar(&o.solvers, "solvers", 0, "solvers in this process; 0: one a core")
	fs.IntVar(&o.maxInFlight, "max-in-flight", 256, "requests that are taken and not yet answered")
	fs.Int64Var(&o.tripBytes, "trip-cache-bytes", 256<<20, "memory for vehicles' trips, so that workers need not send them; 0: none are kept")
	fs.Var(secretFlag{&o.secret}, "solver-secret", "shared with the workers: requests and replies that it does not sign are dropped; better in the environment")
	fs.DurationVar(&o.sessionTimeout, "session-timeout", 10*time.Second, "after how long without a heartbeat the group gives our partitions away")
	fs.DurationVar(&o.drainGrace, "drain-grace", 10*time.Second, "how long a stopping matcher may take to answer what is in flight")
	fs.StringVar(&o.listen, "listen", "127.0.0.1:9465", "address for /livez, /readyz and /metrics")
	o.log.flags(fs, "info")
}

func (o *matcherOptions) validate() error {
	var problems []error
	for _, f := range []struct{ flag, value string }{{"map", o.roadMap + o.catalog}, {"prefix", o.prefix}, {"region", o.region}} {
		if f.value == "" {
			problems = append(problems, fmt.Errorf("--%s must be set (or %s)", f.flag, envName(f.flag)))
		}
	}
	if o.roadMap != "" && o.catalog != "" {
		problems = append(problems, errors.New("--map and --catalog exclude each other"))
	}
	for _, l := range []struct {
		flag     string
		got, min int64
	}{
		{"solvers", int64(o.solvers), 0},
		{"max-in-flight", int64(o.maxInFlight), 1},
		{"trip-cache-bytes", o.tripBytes, 0},
		{"session-timeout", int64(o.sessionTimeout), int64(time.Second)},
		{"drain-grace", int64(o.drainGrace), 0},
	} {
		if l.got < l.min {
			problems = append(problems, fmt.Errorf("--%s is %d, must be at least %d", l.flag, l.got, l.min))
		}
	}
	return usage(errors.Join(problems...))
}

func newMatcher(io streams) *cobra.Command {
	var opts matcherOptions
	cmd := &cobra.Command{
		Use:   "matcher",
		Short: "Run a matcher: solve the jobs of workers that run with --solver remote",
		Long: `Run a replica that matches positions for workers which run with --solver remote. Start as many as you like, a group for each region:
Kafka spreads the requests over them by vehicle, so that a replica keeps the trips of its vehicles. It needs no database and keeps
nothing that may not be lost: a replica that hangs or dies costs its vehicles one retry. SIGTERM or Ctrl-C answers what is in
flight, leaves the group and exits with 0.

The topics are made by the workers; until they are there, a matcher waits.`,
		Example: `  orchestrator matcher --brokers kafka:9092 --map delaware.osm.pbf
  orchestrator matcher --brokers kafka:9092 --catalog regions.toml --region north
  MILEPOST_SOLVER_SECRET=… orchestrator matcher --brokers kafka:9092 --map delaware.osm.pbf --max-in-flight 64`,
		Args: args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if _, err := settle(cmd.Flags()); err != nil {
				return err
			}
			if err := opts.validate(); err != nil {
				return err
			}
			log, err := newLogger(io, opts.log)
			if err != nil {
				return err
			}
			t, err := loadTerritory(cmd.Context(), &serviceOptions{roadMap: opts.roadMap, catalog: opts.catalog}, log)
			if err != nil {
				return err
			}
			return runMatcher(cmd.Context(), &opts, t, log)
		},
	}
	opts.flags(cmd.Flags())
	return cmd
}

// runMatcher builds a matcher and runs it until ctx ends and it has drained.
func runMatcher(ctx context.Context, o *matcherOptions, t *territory, log *slog.Logger) error {
	security, err := o.kafka.client()
	if err != nil {
		return usage(err)
	}
	trips := fleet.NewTrips(o.tripBytes)
	pools, err := fleet.NewPools(fleet.PoolsConfig{
		Solvers: cmp.Or(o.solvers, runtime.GOMAXPROCS(0)), Queue: o.maxInFlight, Matcher: mapmatch.DefaultConfig(), Trips: trips,
	})
	if err == nil {
		err = pools.Use(t.graphs, time.Now()) // all of them: a stretch that ends elsewhere is closed on its own graph
	}
	if err != nil {
		return err
	}
	topics := publish.Topics{Prefix: o.prefix}
	m, err := solve.NewMatcher(solve.MatcherConfig{
		Client: publish.ClientOptions(publish.ClientConfig{Brokers: o.kafka.brokers, Log: log, Options: security}),
		Group:  topics.Solve(o.region) + ".matchers", Requests: topics.Solve(o.region), Replies: topics.SolveReplies(),
		Replica: instanceID(), Secret: solve.Secret(o.secret), MaxInFlight: o.maxInFlight, Grace: o.drainGrace,
		SessionTimeout: o.sessionTimeout, Log: log,
	}, pools)
	if err != nil {
		return usage(err)
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	registerMatcher(registry, m, trips)
	server, err := telemetry.Listen(o.listen, registry, m.Ready, log)
	if err != nil {
		return err
	}
	log.LogAttrs(ctx, slog.LevelInfo, "matcher", slog.String("region", o.region), slog.String("address", server.Address()))
	work, stop := context.WithCancel(context.WithoutCancel(ctx))
	var below errgroup.Group
	below.Go(func() error { return pools.Run(work) })
	below.Go(func() error { return server.Run(work) })
	err = m.Run(ctx)
	stop()
	return errors.Join(err, below.Wait())
}

// registerMatcher makes a matcher's metrics; the labels are closed lists.
func registerMatcher(reg prometheus.Registerer, m *solve.Matcher, trips *fleet.Trips) {
	reg.MustRegister(
		newEvents("milepost_matcher_requests_total", "Requests, by what became of them.", func() map[string]int64 {
			n := m.Stats()
			return map[string]int64{
				"taken": n.Requests, "solved": n.Solved, "trip_miss": n.TripMisses, "failed": n.Failed, "malformed": n.Malformed,
				"forged": n.Forged, "no_room": n.Full, "unsent": n.Unsent, "fetch_error": n.Errors,
			}
		}),
		newEvents("milepost_trip_cache_lookups_total", "Look-ups of trips that a request came without.", func() map[string]int64 {
			n := trips.Stats()
			return map[string]int64{"hit": n.Hits, "miss": n.Misses, "mismatch": n.Mismatches}
		}),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "milepost_matcher_in_flight", Help: "Requests that are taken and not answered."},
			func() float64 { return float64(m.Stats().InFlight) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "milepost_trip_cache_bytes", Help: "Memory of the trips that are kept."},
			func() float64 { return float64(trips.Stats().Bytes) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "milepost_trip_cache_trips", Help: "Trips that are kept."},
			func() float64 { return float64(trips.Stats().Trips) }),
	)
}
