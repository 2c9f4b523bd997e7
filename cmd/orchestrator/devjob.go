package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"milepost/internal/audit"
	"milepost/internal/fleet"
	"milepost/internal/mapmatch"
	"milepost/internal/partition"
	"milepost/internal/pgstore"
	"milepost/internal/publish"
	"milepost/internal/roadnet"
	"milepost/internal/traffic"
)

// devJob is the main job as dev runs it: fleet → raw topic → worker → outputs → auditor.
type devJob struct {
	opts    devOptions
	log     *slog.Logger
	graph   *roadnet.Graph // that the fleet drives on
	serves  *territory     // of the worker
	built   func(*service) // called when the worker is built; may be nil
	worker  *service       // set when it is built
	client  []kgo.Opt
	fleet   *traffic.Fleet
	auditor *audit.Auditor
	routes  *routes
}

func newDevJob(o devOptions, graph *roadnet.Graph, serves *territory, log *slog.Logger) (*devJob, error) {
	// Names of this run's own: with a broker or database that lives on, an earlier run's state means nothing here.
	run := instanceID()
	s := &o.service
	s.group, s.raw, s.prefix = "dev-"+run, "dev-"+run+".raw", "dev-"+run
	s.workload, s.mode, s.publish, s.protocol, s.topics, s.start, s.onDataLoss = workloadFleet, "prepared", "transactional", "classic", "create", "earliest", "stop"
	s.rawPartitions, s.sessionTimeout, s.drainGrace = o.partitions, 10*time.Second, 20*time.Second
	s.solving = solvingOptions{solver: solveInProcess, maxInFlight: partition.DefaultConfig().Jobs, catchUp: partition.DefaultConfig().Run}
	if err := s.validate(); err != nil {
		return nil, err
	}
	security, err := s.kafka.client()
	if err != nil {
		return nil, usage(err)
	}
	vehicles, err := traffic.New(graph, o.vehicles, o.seed)
	if err != nil {
		return nil, err
	}
	j := &devJob{
		opts: o, log: log, graph: graph, serves: serves, fleet: vehicles, routes: newRoutes(),
		client: publish.ClientOptions(publish.ClientConfig{Brokers: s.kafka.brokers, Log: log, Options: security}),
	}
	topics := publish.Topics{Prefix: s.prefix}
	j.auditor = audit.New(audit.Config{
		Client: j.client, Raw: s.raw, Outputs: []string{topics.Matched(), topics.DeadLetter()},
		Each: func(r *kgo.Record) {
			if r.Topic != topics.Matched() {
				return
			}
			if err := j.routes.apply(r.Value); err != nil {
				log.LogAttrs(context.Background(), slog.LevelError, "an output cannot be read", slog.Any("err", err))
			}
		},
	})
	return j, nil
}

// run drives the fleet until ctx ends or its time is over, drains, and counts.
func (j *devJob) run(ctx context.Context, screen *screen) (*figures, error) {
	if _, err := pgstore.Migrate(ctx, string(j.opts.service.dsn), pgstore.MigrateUp); err != nil {
		return nil, err
	}
	background := context.WithoutCancel(ctx)
	worker, stopWorker := context.WithCancel(background)
	defer stopWorker()
	built := make(chan *service, 1) // capacity 1: built once
	ended := make(chan error, 1)    // capacity 1: ends once
	go func() {
		ended <- runService(worker, j.opts.service, j.serves, j.log, func(s *service) { built <- s })
	}()
	select {
	case s := <-built:
		j.worker = s
		if j.built != nil {
			j.built(s)
		}
	case err := <-ended:
		return nil, fmt.Errorf("the worker ended before it began: %w", err)
	case <-ctx.Done(): // it waits for brokers or a database that do not answer
		stopWorker()
		return nil, errors.Join(errors.New("stopped before the worker had begun"), <-ended)
	}
	audits, stopAudit := context.WithCancel(background)
	audited := make(chan error, 1) // capacity 1: ends once
	go func() { audited <- j.auditor.Run(audits) }()

	began := time.Now()
	err := j.drive(ctx, screen, ended)
	took := time.Since(began)
	if err == nil {
		err = j.settle(background, stopWorker, ended)
	}
	stopWorker()
	stopAudit()
	if err := errors.Join(err, <-audited); err != nil {
		return nil, err
	}
	return j.count(background, took)
}

// frontierLag is how many raw records are not below a frontier that Postgres has.
func (j *devJob) frontierLag(observations int64) int64 {
	for _, p := range j.worker.consumer.Status() {
		observations -= p.Saved
	}
	return max(0, observations)
}

// drive produces the fleet's positions, each vehicle at its own phase of the interval.
func (j *devJob) drive(ctx context.Context, screen *screen, ended <-chan error) error {
	client, err := kgo.NewClient(append(slices.Clip(j.client), kgo.ProducerLinger(2*time.Millisecond))...)
	if err != nil {
		return err
	}
	defer client.Close()
	var failed error
	n := j.fleet.Vehicles()
	began := time.Now()
	tick := time.NewTicker(min(10*time.Millisecond, j.opts.interval))
	defer tick.Stop()
	var value []byte
	for sent := 0; ; {
		select {
		case <-ctx.Done():
			return errors.Join(failed, client.Flush(context.WithoutCancel(ctx)))
		case err := <-ended:
			return fmt.Errorf("the worker ended: %w", err)
		case <-tick.C:
		}
		since := time.Since(began)
		if j.opts.duration > 0 && since >= j.opts.duration {
			return errors.Join(failed, client.Flush(ctx))
		}
		for due := int(float64(n) * since.Seconds() / j.opts.interval.Seconds()); sent < due; sent++ {
			fix := j.fleet.Drive(sent%n, time.Now(), j.opts.interval)
			value = fleet.AppendFix(nil, &fleet.Fix{Vehicle: fix.Vehicle, Observation: mapmatch.Observation{
				Time: fix.Time, Point: fix.Point, SpeedMPS: fix.SpeedMPS, Heading: fix.Heading, AccuracyM: fix.AccuracyM,
			}})
			client.Produce(ctx, &kgo.Record{Topic: j.opts.service.raw, Key: []byte(fix.Vehicle), Value: value}, func(_ *kgo.Record, err error) {
				if err != nil {
					j.log.LogAttrs(ctx, slog.LevelError, "a position could not be produced", slog.Any("err", err))
				}
			})
		}
		screen.show(j, since)
	}
}

// settle waits for the missing outputs, drains the worker, and lets the auditor read to the end.
func (j *devJob) settle(ctx context.Context, stopWorker func(), ended <-chan error) error {
	bounded, cancel := context.WithTimeout(ctx, j.opts.drain)
	defer cancel()
	if err := j.auditor.CaughtUp(bounded); err != nil {
		return fmt.Errorf("read the topics to their ends: %w", err)
	}
	if err := j.auditor.Answered(bounded); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return err // at the deadline what is missing counts as lost
	}
	stopWorker()
	if err := <-ended; err != nil {
		return fmt.Errorf("drain the worker: %w", err)
	}
	last, cancel := context.WithTimeout(ctx, j.opts.drain)
	defer cancel()
	return j.auditor.CaughtUp(last)
}

// count makes the report: from the auditor, from Postgres, from the fleet's own truth.
func (j *devJob) count(ctx context.Context, took time.Duration) (*figures, error) {
	r := j.auditor.Report()
	f := &figures{
		Observations: r.Observations, Outputs: r.Outputs, Lost: r.Lost, Repeated: r.Repeated, Disordered: r.Disordered,
		Foreign: r.Foreign + r.Unreadable, P50MS: milliseconds(r.P50), P99MS: milliseconds(r.P99), Vehicles: j.fleet.Vehicles(),
		Seconds: took.Seconds(), PerSecond: float64(r.Observations) / took.Seconds(), Seed: j.opts.seed, Findings: r.Examples,
		RouteMismatch: j.routes.mismatch(j.graph, j.fleet),
	}
	cfg := pgstore.DefaultConfig()
	cfg.DSN = string(j.opts.service.dsn)
	store, err := pgstore.Connect(ctx, cfg, func(error, time.Duration) {})
	if err != nil {
		return nil, err
	}
	defer store.Close()
	status, err := store.Status(ctx, j.opts.service.group, j.opts.service.raw)
	if err != nil {
		return nil, err
	}
	client, err := kgo.NewClient(j.client...)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	ends, err := kadm.NewClient(client).ListEndOffsets(ctx, j.opts.service.raw)
	if err := errors.Join(err, ends.Error()); err != nil {
		return nil, fmt.Errorf("list the raw topic's ends: %w", err)
	}
	frontiers := map[int32]int64{}
	for _, p := range status {
		f.PreparedLeft += p.Prepared
		f.Quarantined += p.Quarantined
		frontiers[p.Partition.Number] = p.Frontier.Next.Offset
	}
	ends.Each(func(o kadm.ListedOffset) { f.FrontierLag += max(0, o.Offset-frontiers[o.Partition]) })
	return f, nil
}

func milliseconds(d time.Duration) float64 {
	return float64(d.Round(10*time.Microsecond)) / float64(time.Millisecond)
}
