package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/schollz/progressbar/v3"
	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kgo"

	"milepost/internal/fleet/ingest"
	"milepost/internal/publish"
	"milepost/internal/tracefile"
)

// replayOptions are the settings of replay.
type replayOptions struct {
	kafka  kafkaOptions
	log    logOptions
	traces traceOptions
	raw    string
	time   string
	rate   float64
	speed  float64
	loop   bool
	asJSON bool
}

func newReplay(s streams) *cobra.Command {
	var o replayOptions
	cmd := &cobra.Command{
		Use:   "replay FILE…",
		Short: "Play trace files into the raw topic",
		Long: `Play GPX, CSV or JSON-lines files into the raw topic, at a rate, at a multiple of real time, or as fast as the broker takes
them. A row that is refused is named with file, line and reason on standard error, and the good ones still go in; the exit code is
then 3. CSV columns by name: vehicle, time (RFC 3339) or t_ms, lon, lat, and optionally speed_mps, heading_deg, accuracy_m;
others are ignored, --columns maps other names.

"-" reads standard input (name its format with --input).`,
		Example: `  orchestrator replay trip.gpx
  orchestrator replay --rate 5000 fleet.csv
  orchestrator replay --time shift --speed 10 --loop fleet.csv
  orchestrator replay --assume-step 1s --columns lat=y,lon=x tracks.csv.gz`,
		Args: args(cobra.MinimumNArgs(1)),
		RunE: func(cmd *cobra.Command, files []string) error {
			if _, err := settle(cmd.Flags()); err != nil {
				return err
			}
			return runReplay(cmd.Context(), s, o, files)
		},
	}
	fs := cmd.Flags()
	fs.String("config", "", "TOML `file` with settings, named as the flags")
	o.kafka.flags(fs)
	fs.StringVar(&o.raw, "raw", "milepost.raw", "topic to play into")
	fs.StringVar(&o.time, "time", string(ingest.Keep), "keep: times as the files have them; shift: moved so that the first is now")
	fs.Float64Var(&o.rate, "rate", 0, "records a second; 0: as fast as it goes")
	fs.Float64Var(&o.speed, "speed", 0, "multiple of real time, by the files' own times; 0: not paced by time")
	fs.BoolVar(&o.loop, "loop", false, "again and again, until stopped")
	fs.BoolVar(&o.asJSON, "json", false, "print one JSON object at the end")
	o.traces.flags(fs)
	o.log.flags(fs, "warn")
	return cmd
}

func runReplay(ctx context.Context, s streams, o replayOptions, files []string) error {
	trace, err := o.traces.read()
	if err != nil {
		return err
	}
	log, err := newLogger(s, o.log)
	if err != nil {
		return err
	}
	security, err := o.kafka.client()
	if err != nil {
		return usage(err)
	}
	opts := publish.ClientOptions(publish.ClientConfig{Brokers: o.kafka.brokers, Log: log, Options: security})
	client, err := kgo.NewClient(append(opts, kgo.ProducerLinger(5*time.Millisecond), kgo.DefaultProduceTopic(o.raw))...)
	if err != nil {
		return usage(err)
	}
	defer client.Close()

	var inputs []ingest.Input
	for _, name := range files {
		inputs = append(inputs, ingest.Input{Name: name, Open: func() (io.ReadCloser, error) { return openTrace(s, name) }, Trace: trace})
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	bad := &refusals{out: s.err}
	sink := &producer{client: client, log: log, fail: cancel}
	feed, err := ingest.New(ingest.Options{
		Pace: ingest.Pace{Rate: o.rate, Speed: o.speed}, Time: ingest.TimeMode(o.time), Loop: o.loop, AssumeStep: o.traces.step,
	}, inputs, sink.produce, func(e *tracefile.RowError) {
		if bad.note(e); o.traces.strict {
			cancel(errStrict)
		}
	})
	if err != nil {
		return usage(err)
	}
	began := time.Now()
	stop := showReplay(s, feed)
	err = feed.Run(ctx)
	stop()
	if flushErr := client.Flush(context.WithoutCancel(ctx)); err == nil {
		err = flushErr
	}
	sink.wait()
	if errors.Is(err, context.Canceled) {
		err = nil // stopped from outside: what went in went in
	}
	if err = errors.Join(err, sink.failure()); err != nil {
		return err
	}
	return reportReplay(s, o, feed.Progress(), sink.acked.Load(), time.Since(began), bad)
}

// producer hands records to the broker and remembers the first that it refused for good.
type producer struct {
	client *kgo.Client
	log    *slog.Logger
	fail   func(error)

	acked atomic.Int64
	open  sync.WaitGroup
	mu    sync.Mutex
	err   error
}

func (p *producer) produce(ctx context.Context, r ingest.Record) error {
	record := &kgo.Record{Key: []byte(r.Vehicle), Value: append([]byte(nil), r.Value...)}
	p.open.Add(1)
	// Produce blocks while the client's buffer is full: that is the brake. A broker that is away is waited for.
	p.client.Produce(ctx, record, func(_ *kgo.Record, err error) {
		defer p.open.Done()
		switch {
		case err == nil:
			p.acked.Add(1)
		case !errors.Is(err, context.Canceled):
			p.mu.Lock()
			defer p.mu.Unlock()
			if p.err == nil {
				p.err = fmt.Errorf("produce to the raw topic: %w", err)
				p.fail(p.err)
			}
		}
	})
	return nil
}

func (p *producer) wait() { p.open.Wait() }

func (p *producer) failure() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.err
}

// showReplay shows a bar with rate and remaining time until the returned function is called.
func showReplay(s streams, feed *ingest.Feed) func() {
	bar := progressbar.NewOptions64(-1,
		progressbar.OptionSetWriter(s.err), progressbar.OptionSetDescription("replay"), progressbar.OptionShowCount(),
		progressbar.OptionShowIts(), progressbar.OptionSetItsString("records"), progressbar.OptionSetPredictTime(true),
		progressbar.OptionThrottle(100*time.Millisecond), progressbar.OptionSetRenderBlankState(true),
		progressbar.OptionSetVisibility(onTerminal(s.err)))
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(200 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-done:
				return
			case <-tick.C:
				if p := feed.Progress(); p.Total > 0 {
					bar.ChangeMax64(p.Total)
					_ = bar.Set64(p.Sent % (p.Total + 1)) // a bar that cannot be drawn stops nothing
				} else {
					_ = bar.Set64(p.Sent)
				}
			}
		}
	}()
	return func() {
		close(done)
		<-ended
		_ = bar.Exit()
		if onTerminal(s.err) {
			fmt.Fprintln(s.err)
		}
	}
}
