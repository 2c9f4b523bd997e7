package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/sync/errgroup"

	"milepost/internal/fleet"
	"milepost/internal/fleet/catalog"
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

	config, prefix, region, roadMap, catalog, profiles, listen string
	resourceClass                                              string
	operators                                                  telemetry.Operators
	traces                                                     wholeTraces
	solvers, maxInFlight                                       int
	tripBytes                                                  int64
	sessionTimeout, drainGrace                                 time.Duration
}

func (o *matcherOptions) flags(fs *pflag.FlagSet) {
	fs.StringVar(&o.config, "config", "", "TOML `file` with settings, named as the flags")
	o.kafka.flags(fs)
	fs.StringVar(&o.prefix, "prefix", "milepost", "prefix of our own topics, as the workers have it")
	fs.StringVar(&o.region, "region", fleet.DefaultRegion, "region whose requests are answered")
	mapFlags(fs, &o.roadMap, &o.profiles)
	fs.StringVar(&o.catalog, "catalog", "", "in place of --map: the workers' catalog, a TOML `file`; read again on SIGHUP")
	fs.StringVar(&o.resourceClass, "resource-class", "", "with --catalog: kind of this machine; a region of another resource_class is not served. Empty: any is")
	fs.IntVar(&o.solvers, "solvers", 0, "solvers in this process; 0: one a core")
	fs.IntVar(&o.maxInFlight, "max-in-flight", 256, "requests that are taken and not yet answered")
	fs.Int64Var(&o.tripBytes, "trip-cache-bytes", 256<<20, "memory for vehicles' trips, so that workers need not send them; 0: none are kept")
	fs.Var(secretFlag{&o.secret}, "solver-secret", "shared with the workers: requests and replies that it does not sign are dropped; better in the environment")
	fs.DurationVar(&o.sessionTimeout, "session-timeout", 10*time.Second, "after how long without a heartbeat the group gives our partitions away")
	fs.DurationVar(&o.drainGrace, "drain-grace", 10*time.Second, "how long a stopping matcher may take to answer what is in flight")
	fs.StringVar(&o.listen, "listen", "127.0.0.1:9465", "address for /livez, /readyz, /metrics and what operators ask for")
	operatorFlags(fs, &o.operators)
	o.traces.flags(fs)
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
	if o.resourceClass != "" && o.catalog == "" {
		problems = append(problems, errors.New("--resource-class needs --catalog, which says what a region wants"))
	}
	if err := errors.Join(checkOperators(o.operators), o.traces.validate()); err != nil {
		problems = append(problems, err)
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

With --catalog it serves one of its regions (--region), with the road maps of all. SIGHUP reads the file again, as with run: give
matchers a new catalog before the workers, which then find replicas that have the new maps.

The topics are made by the workers; until they are there, a matcher waits.`,
		Example: `  orchestrator matcher --brokers kafka:9092 --map delaware.osm.pbf
  orchestrator matcher --brokers kafka:9092 --catalog regions.toml --region north --resource-class big
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
			t, err := loadTerritory(cmd.Context(), &serviceOptions{roadMap: opts.roadMap, catalog: opts.catalog, profiles: opts.profiles}, log)
			if err != nil {
				return err
			}
			if t.catalog != nil {
				if err := opts.fits(t.catalog); err != nil {
					return usage(err)
				}
			}
			return runMatcher(cmd.Context(), &opts, t, log)
		},
	}
	opts.flags(cmd.Flags())
	return cmd
}

// fits says whether a catalog has this matcher's region, for machines of its kind.
func (o *matcherOptions) fits(c *catalog.Catalog) error {
	n := slices.IndexFunc(c.Regions, func(r catalog.Region) bool { return r.ID == o.region })
	switch {
	case n < 0:
		return fmt.Errorf("the catalog has no region %s (--region)", o.region)
	case o.resourceClass != "" && c.Regions[n].ResourceClass != o.resourceClass:
		return fmt.Errorf("region %s wants matchers of resource class %s, this one is of %s (--resource-class)", o.region, c.Regions[n].ResourceClass, o.resourceClass)
	}
	return nil
}

// runMatcher builds a matcher and runs it until ctx ends and it has drained.
func runMatcher(ctx context.Context, o *matcherOptions, t *territory, log *slog.Logger) error {
	reloads := newReloader(o.catalog, o.profiles, t, log)
	defer reloads.close()
	security, err := o.kafka.client()
	if err != nil {
		return usage(err)
	}
	trips := fleet.NewTrips(o.tripBytes)
	pools, err := fleet.NewPools(fleet.PoolsConfig{
		Solvers: cmp.Or(o.solvers, runtime.GOMAXPROCS(0)), Queue: o.maxInFlight, Linger: graphLinger(), Matcher: mapmatch.DefaultConfig(), Trips: trips,
	})
	if err == nil {
		err = pools.Use(t.graphs, time.Now()) // all of them: a stretch that ends elsewhere is closed on its own graph
	}
	if err != nil {
		return err
	}
	reloads.fits, reloads.at = o.fits, pools.Graph
	reloads.use = func(_ context.Context, t *territory) error { return pools.Use(t.graphs, time.Now()) }
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
	reloads.count = registerMatcher(registry, matcherSource{
		region: o.region, ready: m.Ready, stats: m.Stats, trips: trips.Stats, inForce: reloads.inForce.Load, graphs: pools.Graphs,
	})
	reloads.ready.Store(true)
	server, err := telemetry.Listen(o.listen, registry, m.Ready, log)
	if err != nil {
		return err
	}
	server.Handle("POST /catalog/reload", o.operators.Only(reloads.serve))
	if err := o.traces.serve(server, reloads.inForce.Load, registry, log); err != nil {
		return err
	}
	log.LogAttrs(ctx, slog.LevelInfo, "matcher", slog.String("region", o.region), slog.String("address", server.Address()))
	work, stop := context.WithCancel(context.WithoutCancel(ctx))
	var below errgroup.Group
	below.Go(func() error { return pools.Run(work) })
	below.Go(func() error { return server.Run(work) })
	below.Go(func() error { return reloads.run(work) })
	err = m.Run(ctx)
	stop()
	return errors.Join(err, below.Wait())
}
