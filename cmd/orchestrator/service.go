package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/twmb/franz-go/pkg/kgo"
	"golang.org/x/sync/errgroup"

	"milepost/internal/commit"
	"milepost/internal/consumer"
	"milepost/internal/fleet"
	"milepost/internal/mapmatch"
	"milepost/internal/partition"
	"milepost/internal/pgstore"
	"milepost/internal/publish"
	"milepost/internal/solve"
	"milepost/internal/telemetry"
)

var (
	_ partition.Workload = (*fleet.Workload)(nil)
	_ commit.Publisher   = (*publish.Publisher)(nil)
	_ commit.Ledger      = (*publish.Ledger)(nil)
	_ commit.Store       = (*pgstore.Store)(nil)
	_ commit.Owners      = (*pgstore.Store)(nil)
	_ fleet.Matcher      = (*mapmatch.Matcher)(nil)
)

// service is a running worker and what it stands on.
type service struct {
	opts serviceOptions
	log  *slog.Logger

	registry  *prometheus.Registry
	metrics   *meters
	server    *telemetry.Server
	store     *pgstore.Store
	admin     *kgo.Client
	publisher *publish.Publisher
	pipeline  *commit.Pipeline
	remote    *solve.Remote // nil: jobs are decided in this process
	pools     *fleet.Pools
	credits   *partition.Credits
	consumer  *consumer.Consumer
	failing   failpoints

	fleet    fleet.Config
	reloader *reloader // has the territory in force
}

// runService builds a worker from its settings and runs it until ctx ends and it has drained. started, when set, is called with the
// service once it is built.
func runService(ctx context.Context, opts serviceOptions, t *territory, log *slog.Logger, started func(*service)) error {
	s := &service{opts: opts, log: log, registry: prometheus.NewRegistry()}
	s.reloader = newReloader(opts.catalog, opts.profiles, t, log)
	defer s.reloader.close()
	if err := s.build(ctx); err != nil {
		s.close()
		if ctx.Err() != nil {
			return nil // told to stop while it waited for a store: nothing was begun
		}
		return err
	}
	defer s.close()
	if started != nil {
		started(s)
	}
	return s.run(ctx)
}

// build makes the parts from the bottom up; it waits for a database or a broker that is away, and says so.
func (s *service) build(ctx context.Context) error {
	s.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	s.metrics = newMetrics(s.registry, s.opts.workload)
	server, err := telemetry.Listen(s.opts.listen, s.registry, s.ready, s.log)
	if err != nil {
		return err
	}
	s.server = server
	server.Handle("POST /catalog/reload", s.opts.operators.Only(s.reloader.serve))
	if err := s.opts.traces.serve(server, s.reloader.inForce.Load, s.registry, s.log); err != nil {
		return err
	}
	s.log.LogAttrs(ctx, slog.LevelInfo, "health and metrics", slog.String("address", server.Address()))
	if err := s.connectStore(ctx); err != nil {
		return err
	}
	instance := instanceID()
	if s.failing, err = newFailpoints(); err != nil {
		return err
	}
	security, err := s.opts.kafka.client()
	if err != nil {
		return usage(err)
	}
	client := publish.ClientConfig{Brokers: s.opts.kafka.brokers, Log: s.log, Options: append(security, s.failing.clients()...)}
	if err := s.connectBroker(ctx, client, instance); err != nil {
		return err
	}
	return s.buildWorker(ctx, client, instance)
}

// instanceID is unique per process start: lane ids derive from it, and a former owner is known by it.
func instanceID() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return host + "-" + uuid.NewString()[:13]
}

func (s *service) connectStore(ctx context.Context) error {
	store, err := pgstore.Connect(ctx, s.opts.database(), func(err error, next time.Duration) {
		s.log.LogAttrs(ctx, slog.LevelWarn, "waiting for the database", slog.Any("err", err), slog.Duration("next", next))
	})
	if err != nil {
		return err
	}
	s.store = store
	return store.CheckSchema(ctx)
}

// connectBroker waits for the brokers, makes or checks the topics, and makes the publisher.
func (s *service) connectBroker(ctx context.Context, client publish.ClientConfig, instance string) error {
	admin, err := kgo.NewClient(publish.ClientOptions(client)...)
	if err != nil {
		return usage(fmt.Errorf("--brokers: %w", err))
	}
	s.admin = admin
	spec := s.topicsSpec()
	spec.Create, spec.RawPartitions = s.opts.topics == "create", s.opts.rawPartitions
	err = s.patiently(ctx, "waiting for the brokers", func(ctx context.Context) error {
		_, err := publish.EnsureTopics(ctx, admin, spec)
		return err
	})
	if err != nil {
		return err
	}
	err = s.patiently(ctx, "waiting for the brokers", func(ctx context.Context) error {
		if err := consumer.CheckProtocol(ctx, admin, consumer.Protocol(s.opts.protocol)); err != nil {
			return err
		}
		return s.settlePublishMode(ctx, admin)
	})
	if err != nil {
		return err
	}
	cfg := s.opts.publishing(instance)
	cfg.Client, cfg.Log = client, s.log
	s.publisher, err = publish.New(cfg, &s.metrics.membership, s.store)
	if err != nil {
		return usage(err)
	}
	return s.patiently(ctx, "waiting for the brokers' transaction coordinator", s.publisher.Check)
}

func (s *service) topicsSpec() publish.TopicsSpec {
	return publish.TopicsSpec{
		Topics: publish.Topics{Prefix: s.opts.prefix}, Raw: s.opts.raw, Replication: int16(s.opts.replication), MaxRecordBytes: s.opts.maxRecordBytes,
	}
}

// patiently tries until the error is not one of a world that is away; it says so, with backoff from 0.2 to 5 s.
func (s *service) patiently(ctx context.Context, what string, try func(context.Context) error) error {
	for wait := 200 * time.Millisecond; ; wait = min(2*wait, 5*time.Second) {
		bounded, cancel := context.WithTimeout(ctx, 5*time.Second)
		err := try(bounded)
		cancel()
		if err == nil || !publish.Away(err) {
			return err
		}
		//nolint:sloglint // one of this file's literals; they only pass through here
		s.log.LogAttrs(ctx, slog.LevelWarn, what, slog.Any("err", err), slog.Duration("next", wait))
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(wait):
		}
	}
}

// buildWorker makes what decides, commits and consumes.
func (s *service) buildWorker(ctx context.Context, client publish.ClientConfig, instance string) error {
	cfg := fleet.DefaultConfig()
	topics := publish.Topics{Prefix: s.opts.prefix}
	cfg.Group, cfg.MatchedTopic, cfg.DeadLetterTopic, cfg.MaxAge = s.opts.group, topics.Matched(), topics.DeadLetter(), s.opts.maxAge
	cfg.Geometry = fleet.Geometry(s.opts.geometry)
	s.fleet = cfg
	workload, err := s.buildSolvers()
	if err != nil {
		return usage(err)
	}
	store, owners := s.failing.store(s.metrics.Store(s.store)), s.failing.owners(s.store)
	s.pipeline = commit.NewPipeline(commit.DefaultPipelineConfig(), store, s.metrics.Publisher(s.publisher))
	ccfg := s.failing.consuming(s.opts.consuming(instance))
	ccfg.Client = publish.ClientOptions(client)
	remote, err := s.buildRemote(ctx, client)
	if err != nil {
		return err
	}
	s.consumer, err = consumer.New(ccfg, consumer.Deps{
		Remote: remote,
		Owners: owners, Store: store, Operations: s.store, Retention: s.store, Tail: s.opts.tail(), Pipeline: s.pipeline,
		Recovery: commit.Recovery{
			Store: s.store, Owners: owners, Ledger: s.publisher.Ledger(), Pipeline: s.pipeline, Backoff: backoff,
		},
		Formers: s.publisher, Ledger: s.publisher.Ledger(), Solver: s.solver(), Workload: workload, Admission: s.credits,
		Membership: &s.metrics.membership, Rand: rand.Reader, Log: s.log, Observer: s.metrics.observer(s.publisher.Notify),
	})
	if err != nil {
		return usage(err)
	}
	s.metrics.watch(parts{
		consumer: s.consumer, pipeline: s.pipeline, pools: s.pools, credits: s.credits,
		version: func() int64 { return s.reloader.inForce.Load().version() },
	})
	s.takeReloads()
	return nil
}

// buildSolvers makes admission and the pools, and brings the territory into force.
func (s *service) buildSolvers() (partition.Workload, error) {
	t := s.reloader.inForce.Load()
	s.credits = partition.NewCredits(t.credits())
	var err error
	s.pools, err = fleet.NewPools(fleet.PoolsConfig{
		Solvers: cmp.Or(s.opts.solvers, runtime.GOMAXPROCS(0)), Queue: 4096, Linger: graphLinger(), Matcher: mapmatch.DefaultConfig(),
	})
	if err != nil {
		return nil, err
	}
	if s.opts.workload == workloadCounter {
		w, err := s.opts.counter()
		if err != nil {
			return nil, err
		}
		return s.metrics.Workload(w), nil
	}
	return s.putInForce(t)
}

// backoff waits before a try of recovery: 100 ms doubling to 2 s.
func backoff(ctx context.Context, attempt int) error {
	wait := min(100*time.Millisecond<<min(attempt, 5), 2*time.Second)
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(wait):
		return nil
	}
}

// run works until ctx ends. The consumer drains first; what it drains through ends after it, in the reverse order of the build.
func (s *service) run(ctx context.Context) error {
	work, stop := context.WithCancel(context.WithoutCancel(ctx))
	var below errgroup.Group
	below.Go(func() error { return s.pools.Run(work) })
	below.Go(func() error { return s.pipeline.Run(work) })
	below.Go(func() error { return s.runRemote(work) })
	below.Go(func() error { return s.server.Run(work) })
	below.Go(func() error { return s.reloader.run(work) })
	err := s.consumer.Run(ctx)
	stop()
	return errors.Join(err, below.Wait())
}

func (s *service) ready() error {
	if s.consumer == nil {
		return errors.New("starting: waiting for the database or the brokers")
	}
	return s.consumer.Ready()
}

func (s *service) close() {
	if s.publisher != nil {
		s.publisher.Close()
	}
	if s.admin != nil {
		s.admin.Close()
	}
	if s.store != nil {
		s.store.Close()
	}
}

// solver hands dispatched jobs to the pools.
type solver struct{ pools *fleet.Pools }

func (s solver) Submit(job partition.Dispatch, done func(partition.Decision, error)) bool {
	return s.pools.Submit(job.Request, done)
}
