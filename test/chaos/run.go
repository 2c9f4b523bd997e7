//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"milepost/test/chaos/judge"
)

// Bounds of a run's parts on a busy machine.
const (
	startBound = 4 * time.Minute
	// After the healing, without anything coming out: a worker that is stuck leaves the group after two minutes, and a new partition is
	// looked for every five.
	finishBound = 400 * time.Second
	finishMost  = 12 * time.Minute
	drainBound  = 90 * time.Second
	readBound   = 3 * time.Minute
)

// partitions of the raw topic at first.
const partitions = 4

// run is one plan on its way.
type run struct {
	plan    plan
	stack   *stack
	program string
	commit  string // of what is tested
	dir     string // of logs
	rate    int
	say     func(format string, args ...any)

	group, prefix string
	topics        topics
	client        *kgo.Client
	admin         *kadm.Client
	load          *load
	tape          *tape
	observer      *observer
	workers       [workers]*worker
	clocks        [workers]*wallClock

	start time.Time
	ill   time.Duration // from the start until everything was healed
	mu    sync.Mutex
	busy  map[string]bool
	done  []injected
}

// perform runs the plan and gives what it left behind. What it started has ended when it returns.
func (r *run) perform(ctx context.Context) (h *judge.History, err error) {
	defer func() { err = errors.Join(err, r.close()) }()
	if err := r.prepare(ctx); err != nil {
		return nil, fmt.Errorf("prepare the run: %w", err)
	}
	reading, stopReading := context.WithCancel(ctx)
	var below sync.WaitGroup
	defer func() {
		stopReading()
		below.Wait()
	}()
	below.Go(func() { r.tape.run(reading) })
	below.Go(func() { r.observer.run(reading) })
	loading, stopLoad := context.WithCancel(ctx)
	defer stopLoad()
	loaded := make(chan error, 1) // capacity 1: the sender never waits
	below.Go(func() { loaded <- r.load.run(loading, ctx, r.plan.Seed) })
	for _, w := range r.workers {
		if err := w.start(); err != nil {
			return nil, err
		}
	}
	if err := r.awaitFirst(ctx); err != nil {
		return nil, err
	}
	r.start = time.Now()
	r.injectAll(ctx)
	r.heal()
	stopLoad()
	if err := <-loaded; err != nil {
		return nil, err
	}
	return r.finish(ctx)
}

// prepare makes topics, database, clients and workers.
func (r *run) prepare(ctx context.Context) (err error) {
	name := fmt.Sprintf("chaos-%d", r.plan.Seed)
	r.group, r.prefix, r.busy = name, name, map[string]bool{}
	r.topics = topics{raw: name + "-raw", outputs: name + ".matched", dead: name + ".dead-letter", ledger: name + ".ledger"}
	if r.client, err = r.stack.client(kgo.ProducerLinger(5*time.Millisecond), kgo.MaxBufferedRecords(100_000), kgo.RecordDeliveryTimeout(0)); err != nil {
		return err
	}
	r.admin = kadm.NewClient(r.client)
	if _, err := r.admin.CreateTopic(ctx, partitions, int16(min(r.plan.Brokers, 3)), nil, r.topics.raw); err != nil {
		return fmt.Errorf("make the raw topic: %w", err)
	}
	dsn, err := r.stack.postgres.NewDatabase(ctx, fmt.Sprintf("chaos_%d", r.plan.Seed))
	if err != nil {
		return err
	}
	if out, err := exec.CommandContext(ctx, r.program, "migrate", "up", "--dsn", dsn).CombinedOutput(); err != nil {
		return fmt.Errorf("migrate up: %w: %s", err, out)
	}
	if err := install(ctx, dsn); err != nil {
		return err
	}
	r.load = &load{client: r.client, topic: r.topics.raw, rate: r.rate, refuse: r.plan.Refuse}
	if r.tape, err = newTape(r.stack, r.topics); err != nil {
		return err
	}
	r.observer = &observer{dsn: dsn, admin: r.admin, topics: r.topics, producers: map[int64]string{}}
	for i := range r.workers {
		if err := r.makeWorker(i, dsn); err != nil {
			return err
		}
	}
	return nil
}

func (r *run) makeWorker(i int, dsn string) error {
	through, err := r.stack.through(i, dsn)
	if err != nil {
		return err
	}
	name := fmt.Sprintf("worker-%d", i)
	if r.clocks[i], err = newWallClock(filepath.Join(r.dir, name+".clock")); err != nil {
		return err
	}
	m := r.plan.Mode
	r.workers[i] = &worker{
		name: name, program: r.program, dir: r.dir, env: []string{clockEnv + "=" + r.clocks[i].file, "MILEPOST_DSN=" + through},
		args: []string{
			"run", "--workload", "counter", "--counter-solve-time", r.plan.Solve.String(), "--brokers", r.stack.brokersOf(i), "--group", r.group,
			"--raw", r.topics.raw, "--prefix", r.prefix, "--topics", "create", "--listen", "127.0.0.1:0", "--log", "json",
			"--session-timeout", session.String(), "--drain-grace", "5s", "--protocol", m.Protocol, "--mode", m.Durability, "--publish", m.Publish,
		},
	}
	return nil
}

// awaitFirst waits until the workers work.
func (r *run) awaitFirst(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startBound)
	defer cancel()
	for {
		r.tape.mu.Lock()
		n := len(r.tape.outputs)
		r.tape.mu.Unlock()
		if n > 0 {
			return nil
		}
		if err := pause(ctx, 100*time.Millisecond); err != nil {
			return fmt.Errorf("no output within %s of the start: %w", startBound, err)
		}
	}
}

// injectAll makes every fault happen at its time, and returns at the plan's end when the last one is undone.
func (r *run) injectAll(ctx context.Context) {
	var running sync.WaitGroup
	defer running.Wait()
	for _, f := range r.plan.Faults {
		if pause(ctx, time.Until(r.start.Add(f.At))) != nil {
			return
		}
		running.Go(func() { r.happen(ctx, f) })
	}
	_ = pause(ctx, time.Until(r.start.Add(time.Duration(r.plan.Seconds)*time.Second))) // a run that is broken off is over now
}

func (r *run) happen(ctx context.Context, f fault) {
	i := injected{fault: f, Began: time.Since(r.start)}
	switch held := r.hold(f.parts()); {
	case held != "":
		i.Skipped = held + " is still broken by an earlier fault"
	case f.Kind == fillDisk && r.stack.disk == nil:
		i.Skipped = r.stack.noDisk
		r.release(f.parts())
	default:
		r.say("%6.1f s  %s", i.Began.Seconds(), f)
		note, err := r.inject(ctx, f)
		if i.Note = note; err != nil {
			i.Error = err.Error()
		}
		r.release(f.parts())
	}
	i.Ended = time.Since(r.start)
	r.mu.Lock()
	r.done = append(r.done, i)
	r.mu.Unlock()
}

// hold takes parts to break, all or none; it names one that is taken.
func (r *run) hold(parts []string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, p := range parts {
		if r.busy[p] {
			return p
		}
	}
	for _, p := range parts {
		r.busy[p] = true
	}
	return ""
}

func (r *run) release(parts []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, p := range parts {
		delete(r.busy, p)
	}
}

// heal undoes whatever a fault may have left.
func (r *run) heal() {
	for i, w := range r.workers {
		r.stack.toKafka[i].set(weather{})
		r.stack.toPostgres[i].set(weather{})
		r.clocks[i].set(0)
		w.signal(syscall.SIGCONT)
		if err := w.start(); err != nil {
			r.say("%v", err)
		}
	}
	r.ill = time.Since(r.start)
	r.say("%6.1f s  healed", r.ill.Seconds())
}

// finish lets the workers come to an end, drains them, and reads everything.
func (r *run) finish(ctx context.Context) (*judge.History, error) {
	h := &judge.History{Mode: r.plan.Mode, RawTopic: r.topics.raw}
	bounded, cancel := context.WithTimeout(ctx, finishMost)
	h.Stuck = r.answered(bounded)
	cancel()
	r.say("%6.1f s  everything came out: %t", time.Since(r.start).Seconds(), h.Stuck == "")
	if h.Stuck != "" { // their logs show what each goroutine waits for
		for _, w := range r.workers {
			w.dump(ctx)
		}
	}
	codes := r.drain(ctx)
	reading, cancel := context.WithTimeout(ctx, readBound)
	defer cancel()
	if err := r.tape.caughtUp(reading, r.admin, r.topics.all()...); err != nil {
		return nil, err
	}
	r.observer.askProducers(reading)
	if err := r.observer.read(reading, h); err != nil {
		return nil, fmt.Errorf("read the tables: %w", err)
	}
	r.tape.mu.Lock()
	defer r.tape.mu.Unlock()
	if r.tape.bad != nil {
		return nil, r.tape.bad
	}
	h.Raw, h.Outputs, h.Ledger, h.LedgerWhole = r.tape.raw, r.tape.outputs, r.tape.ledger, r.tape.whole
	h.Samples, h.Producers = r.observer.samples, r.observer.producers
	sortRaw(h.Raw)
	for i, w := range r.workers {
		h.Exits = append(h.Exits, w.ended()...)
		h.Exits = append(h.Exits, judge.Exit{Worker: w.name + ", drained", Code: codes[i], Asked: h.Stuck == ""})
	}
	return h, nil
}

// sortRaw puts each partition in order; the tape has them so, but the partitions mixed.
func sortRaw(raw []judge.Raw) {
	slices.SortStableFunc(raw, func(a, b judge.Raw) int { return int(a.ID.Partition) - int(b.ID.Partition) })
}

// answered waits until each raw record has an output or stands in quarantine; it says what is missing if that never comes.
func (r *run) answered(ctx context.Context) string {
	if err := r.tape.caughtUp(ctx, r.admin, r.topics.raw); err != nil {
		return err.Error()
	}
	least, since := -1, time.Now()
	for {
		open := r.tape.unanswered()
		quarantined, err := r.observer.quarantined(ctx)
		for _, q := range quarantined {
			delete(open, q.ID)
		}
		if len(open) == 0 && err == nil {
			return ""
		}
		if err == nil && (least < 0 || len(open) < least) {
			least, since = len(open), time.Now()
		}
		if pause(ctx, 300*time.Millisecond) != nil || time.Since(since) > finishBound {
			var some []string
			for id := range open {
				some = append(some, id.String())
			}
			slices.Sort(some)
			return fmt.Sprintf("%d raw records have no output, %s after the last one that came out: %s; %s", len(open),
				time.Since(since).Round(time.Second), strings.Join(some[:min(len(some), 8)], ", "), r.describeGroup(ctx))
		}
	}
}

// drain ends all workers together, as an orchestrator of containers may.
func (r *run) drain(ctx context.Context) (codes [workers]int) {
	var all sync.WaitGroup
	for i, w := range r.workers {
		all.Go(func() { codes[i] = w.terminate(ctx, drainBound) })
	}
	all.Wait()
	r.say("%6.1f s  drained, exit codes %v", time.Since(r.start).Seconds(), codes)
	return codes
}

// close ends what still runs and forgets topics and files that nobody reads.
func (r *run) close() error {
	for i, w := range r.workers {
		if w != nil {
			w.close()
		}
		if r.clocks[i] != nil {
			r.clocks[i].close()
		}
	}
	if r.tape != nil {
		r.tape.client.Close()
	}
	if r.client == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	_, _ = r.admin.DeleteTopics(ctx, r.topics.all()...) // they would only take room
	r.client.Close()
	return nil
}

// keepLogs says where the logs are, or removes them.
func (r *run) keepLogs(keep bool) string {
	if keep {
		return r.dir
	}
	_ = os.RemoveAll(r.dir) // a folder of its own under the temporary one
	return ""
}
