//go:build linux

package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// options are the command line.
type options struct {
	seed             uint64
	seconds, runs    int
	brokers, mode    int
	rate             int
	out, summary     string
	program, scratch string
	build, commit    string
	keep             bool
}

func main() {
	var o options
	flag.Uint64Var(&o.seed, "seed", 0, "seed of the first run; 0: the time")
	flag.IntVar(&o.seconds, "seconds", 60, "of faults in each run")
	flag.IntVar(&o.runs, "runs", 1, "runs, each with the next seed, on the same servers")
	flag.IntVar(&o.brokers, "brokers", 1, "nodes of Kafka: 1 or 3")
	flag.IntVar(&o.mode, "mode", -1, "place of the mode pair in the list that -mode 99 prints; -1: the seed's choice; -2: one after the other")
	flag.IntVar(&o.rate, "rate", 250, "raw records a second")
	flag.StringVar(&o.out, "out", "", "folder for one JSON summary a run; empty: none")
	flag.StringVar(&o.summary, "summary", "", "print what the summaries of a folder add up to, and exit")
	flag.StringVar(&o.program, "program", "", "the worker's program, with the clock hook; empty: build it")
	flag.StringVar(&o.commit, "commit", "", "what -program was built of; empty: what the tree says")
	flag.StringVar(&o.build, "build", "", "build the worker's program into this folder, and exit")
	flag.StringVar(&o.scratch, "scratch", "", "folder for logs; empty: a temporary one")
	flag.BoolVar(&o.keep, "keep", false, "keep the workers' logs of runs without violations, too")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := o.main(ctx, os.Stdout)
	stop()
	os.Exit(code)
}

func (o *options) main(ctx context.Context, out io.Writer) int {
	if o.summary != "" {
		return exitOf(summarise(o.summary, out))
	}
	if o.build != "" {
		_, err := buildProgram(o.build)
		return exitOf(err)
	}
	if o.commit == "" {
		o.commit = commitHash()
	}
	if o.mode >= len(modes()) {
		for i, m := range modes() {
			fmt.Fprintf(out, "%d %s\n", i, m)
		}
		return 0
	}
	if o.seed == 0 {
		o.seed = uint64(time.Now().Unix())
	}
	clean, err := o.all(ctx, out)
	if err != nil {
		return exitOf(err)
	}
	if !clean {
		return 1
	}
	return 0
}

func exitOf(err error) int {
	if err != nil {
		fmt.Fprintln(os.Stderr, "chaos:", err)
		return 2
	}
	return 0
}

// all performs the runs, on one stack. clean: no violation.
func (o *options) all(ctx context.Context, out io.Writer) (clean bool, err error) {
	if o.scratch == "" {
		if o.scratch, err = os.MkdirTemp("", "milepost-chaos-"); err != nil {
			return false, err
		}
	}
	if o.program == "" {
		if err := os.MkdirAll(o.scratch, 0o755); err != nil {
			return false, err
		}
		if o.program, err = buildProgram(o.scratch); err != nil {
			return false, err
		}
	}
	starting, cancel := context.WithTimeout(ctx, 5*time.Minute)
	s, err := startStack(starting, o.brokers, slog.New(slog.NewTextHandler(os.Stderr, nil)))
	cancel()
	if err != nil {
		return false, err
	}
	defer func() {
		if stopped := s.stop(); err == nil && stopped != nil {
			err = stopped
		}
	}()
	clean = true
	for i := range o.runs {
		if ctx.Err() != nil {
			return clean, context.Cause(ctx)
		}
		ok, err := o.one(ctx, out, s, i)
		if err != nil {
			return clean, err
		}
		clean = clean && ok
	}
	return clean, nil
}

func (o *options) one(ctx context.Context, out io.Writer, s *stack, i int) (ok bool, err error) {
	mode := o.mode
	if mode == -2 {
		mode = int((o.seed + uint64(i)) % uint64(len(modes())))
	}
	r := &run{
		plan: newPlan(o.seed+uint64(i), o.seconds, o.brokers, mode), stack: s, program: o.program, rate: o.rate,
		say: func(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) },
	}
	r.dir = filepath.Join(o.scratch, fmt.Sprintf("seed-%d", r.plan.Seed))
	if err := os.MkdirAll(r.dir, 0o755); err != nil {
		return false, err
	}
	fmt.Fprintf(out, "seed %d: %s, %d brokers, %d s, %d faults planned\n", r.plan.Seed, r.plan.Mode, o.brokers, o.seconds, len(r.plan.Faults))
	began := time.Now()
	h, err := r.perform(ctx)
	if ctx.Err() != nil {
		r.keepLogs(o.keep)
		return false, context.Cause(ctx) // broken off: it says nothing
	}
	r.commit = o.commit
	rep := r.report(h, err, began, o.replay(r.plan, mode))
	rep.Logs = r.keepLogs(o.keep || !rep.clean())
	rep.print(out)
	if o.out != "" {
		if err := rep.write(o.out); err != nil {
			return false, err
		}
	}
	return rep.clean(), ctx.Err()
}

// replay is the command that makes the same plan again.
func (o *options) replay(p plan, mode int) string {
	return fmt.Sprintf("make chaos SEED=%d SECONDS=%d BROKERS=%d MODE=%d RATE=%d", p.Seed, p.Seconds, p.Brokers, mode, o.rate)
}

// commitHash names what was tested, with a + where the tree differs from it.
func commitHash() string {
	head, err := exec.Command("git", "rev-parse", "--short=10", "HEAD").Output() //nolint:noctx // a moment
	if err != nil {
		return "unknown"
	}
	name := strings.TrimSpace(string(head))
	if changed, err := exec.Command("git", "status", "--porcelain", "--untracked-files=no", "--", "cmd", "internal", "migrations").Output(); err != nil || len(changed) > 0 { //nolint:noctx // a moment
		name += "+"
	}
	return name
}
