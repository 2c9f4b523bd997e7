package main

import (
	"context"
	"fmt"
	"slices"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/pflag"

	"milepost/internal/consumer"
	"milepost/internal/fleet"
	"milepost/internal/partition"
	"milepost/internal/publish"
	"milepost/internal/solve"
	"milepost/internal/stream"
	"milepost/internal/telemetry"
)

// The ways to solve.
const (
	solveInProcess = "in-process"
	solveRemote    = "remote"
)

// solvingOptions say where a worker's jobs are decided.
type solvingOptions struct {
	solver      string
	secret      telemetry.Secret
	maxInFlight int
	catchUp     int
}

func (o *solvingOptions) flags(fs *pflag.FlagSet) {
	fs.StringVar(&o.solver, "solver", solveInProcess, "where jobs are decided: in-process, or remote (by \"orchestrator matcher\" replicas, over Kafka)")
	fs.Var(secretFlag{&o.secret}, "solver-secret", "shared with the matchers: requests and replies that it does not sign are dropped; better in the environment")
	fs.IntVar(&o.maxInFlight, "max-in-flight", partition.DefaultConfig().Jobs, "jobs in flight a partition")
	fs.IntVar(&o.catchUp, "catch-up", partition.DefaultConfig().Run, "positions of a vehicle that wait together and are then decided in one job and committed at once; 1: each by itself")
}

func (o *solvingOptions) validate() error {
	if o.maxInFlight < 1 {
		return fmt.Errorf("--max-in-flight is %d, must be at least 1", o.maxInFlight)
	}
	if o.catchUp < 1 {
		return fmt.Errorf("--catch-up is %d, must be at least 1", o.catchUp)
	}
	return nil
}

// remoteSolver is solve.Remote as the consumer knows it.
type remoteSolver struct{ *solve.Remote }

func (r remoteSolver) Attach(p stream.Partition, deliver func(partition.Result)) consumer.Desk {
	return r.Remote.Attach(p, deliver)
}

// buildRemote makes the worker's side of remote solving and its topics; nil where jobs are decided in this process.
func (s *service) buildRemote(ctx context.Context, client publish.ClientConfig) (consumer.RemoteSolver, error) {
	if s.opts.solving.solver != solveRemote {
		return nil, nil
	}
	err := s.patiently(ctx, "waiting for the brokers", func(ctx context.Context) error { return s.solveTopics(ctx, s.reloader.inForce.Load()) })
	if err != nil {
		return nil, err
	}
	spec := s.topicsSpec()
	s.remote, err = solve.NewRemote(solve.RemoteConfig{
		Client: publish.ClientOptions(client), Raw: s.opts.raw, Requests: spec.Topics.Solve, Replies: spec.Topics.SolveReplies(),
		Secret: solve.Secret(s.opts.solving.secret), Log: s.log,
	})
	if err != nil {
		return nil, usage(err)
	}
	registerRemote(s.registry, s.remote.Stats, s.reloader.inForce.Load)
	return remoteSolver{s.remote}, nil
}

// solveTopics makes or checks the topics of a territory's regions, where jobs are decided remotely.
func (s *service) solveTopics(ctx context.Context, t *territory) error {
	if s.opts.solving.solver != solveRemote {
		return nil
	}
	regions := []publish.SolveRegion{{ID: fleet.DefaultRegion}}
	if t.catalog != nil {
		regions = regions[:0]
		for i := range t.catalog.Regions {
			r := &t.catalog.Regions[i]
			regions = append(regions, publish.SolveRegion{ID: r.ID, Lanes: int32(r.Lanes)})
		}
	}
	spec := s.topicsSpec()
	spec.Create = s.opts.topics == "create"
	lanes, err := publish.EnsureSolveTopics(ctx, s.admin, spec, regions)
	if err != nil || s.remote == nil {
		return err
	}
	for region, n := range lanes {
		s.remote.Expect(region, n)
	}
	return nil
}

// runRemote reads replies until ctx ends.
func (s *service) runRemote(ctx context.Context) error {
	if s.remote == nil {
		return nil
	}
	return s.remote.Run(ctx)
}

// events is a counter with one label, read at each scrape.
type events struct {
	desc *prometheus.Desc
	read func() map[string]int64
}

func newEvents(name, help string, read func() map[string]int64) *events {
	return &events{desc: prometheus.NewDesc(name, help, []string{"event"}, nil), read: read}
}

// Describe implements prometheus.Collector.
func (e *events) Describe(ch chan<- *prometheus.Desc) { ch <- e.desc }

// Collect implements prometheus.Collector.
func (e *events) Collect(ch chan<- prometheus.Metric) {
	counts := e.read()
	names := make([]string, 0, len(counts))
	for name := range counts {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		ch <- prometheus.MustNewConstMetric(e.desc, prometheus.CounterValue, float64(counts[name]), name)
	}
}
