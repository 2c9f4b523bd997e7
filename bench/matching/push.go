package main

import (
	"fmt"
	"io"
	"runtime"
	"slices"
	"syscall"
	"time"

	"milepost/bench/machine"
	"milepost/internal/mapmatch"
)

// pushRow is the speed of single observations at one step.
type pushRow struct {
	StepS         float64 `json:"step_s"`
	Points        int     `json:"points"`
	PointsPerCore float64 `json:"points_per_core_s"`
	GoalPerCore   float64 `json:"goal_per_core_s"`
	P50US         float64 `json:"p50_us"`
	P99US         float64 `json:"p99_us"`
	MaxUS         float64 `json:"max_us"`
	GoalP99US     float64 `json:"goal_p99_us,omitempty"`
}

const pushRounds = 5

// pushes measures the matcher alone, in this process, as a worker calls it: an observation at a time, the state encoded and decoded between
// any two, over the Kubička drives on their own networks.
func pushes(data string, log io.Writer) (*figures, error) {
	f := newFigures(&set{name: "push", title: "One observation", about: "The matcher alone over the 22 Kubička drives, each on its own network with edges against one-way streets, as `orchestrator graph build` makes it; one thread."})
	drives, _, err := kubickaDrives(data)
	if err != nil {
		return nil, err
	}
	matchers, err := ownMatchers(data, drives)
	if err != nil {
		return nil, err
	}
	goals := map[float64]float64{1: 60_000, 5: 40_000, 15: 25_000, 30: 12_000, 60: 5_000}
	for _, b := range thinned(drives, 1, 5, 15, 30, 60) {
		var rates []time.Duration
		var p50, p99, most []float64
		for range pushRounds {
			cpu, took, err := pushAll(&b, matchers)
			if err != nil {
				return nil, err
			}
			rates = append(rates, cpu)
			p50, p99, most = append(p50, quantile(took, .5)), append(p99, quantile(took, .99)), append(most, slices.Max(took))
		}
		r := pushRow{
			StepS: b.stepS, Points: b.points(), PointsPerCore: rate(float64(b.points()), rates), GoalPerCore: goals[b.stepS],
			P50US: round2(quantile(p50, .5)), P99US: round2(quantile(p99, .5)), MaxUS: round2(quantile(most, .5)),
		}
		if b.stepS == 1 {
			r.GoalP99US = 2000
		}
		fmt.Fprintf(log, "%4g s: %8.0f points/s of a core (goal %.0f), push p50 %.1f µs, p99 %.1f µs, most %.0f µs\n", r.StepS, r.PointsPerCore, r.GoalPerCore, r.P50US, r.P99US, r.MaxUS)
		f.Pushes = append(f.Pushes, r)
	}
	f.LoadAfter = machine.Load()
	return f, nil
}

// ownMatchers makes a matcher for each drive's own network.
func ownMatchers(data string, drives []drive) ([]*mapmatch.Matcher, error) {
	var out []*mapmatch.Matcher
	for i := range drives {
		_, net, err := kubickaDrive(kubickaBase(data, drives[i].id), drives[i].id)
		if err != nil {
			return nil, err
		}
		g, err := net.graph()
		if err != nil {
			return nil, err
		}
		m, err := mapmatch.New(g, mapmatch.DefaultConfig())
		if err != nil {
			return nil, err
		}
		out = append(out, m)
	}
	return out, nil
}

// pushAll pushes every drive of a batch once: the processor time of all, and the time of each push in microseconds.
func pushAll(b *batch, matchers []*mapmatch.Matcher) (time.Duration, []float64, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	took := make([]float64, 0, b.points())
	var state, old []byte
	var r mapmatch.Result
	before, err := threadTime()
	if err != nil {
		return 0, nil, err
	}
	for i := range b.drives {
		state = nil
		for _, o := range b.drives[i].obs {
			began := time.Now()
			next, err := matchers[i].PushInto(old[:0], &r, state, o)
			took = append(took, float64(time.Since(began).Nanoseconds())/1000)
			if err != nil {
				return 0, nil, err
			}
			old, state = state, next
		}
	}
	after, err := threadTime()
	return after - before, took, err
}

// threadTime is the processor time that this thread has taken.
func threadTime() (time.Duration, error) {
	const thisThread = 1 // RUSAGE_THREAD
	var u syscall.Rusage
	if err := syscall.Getrusage(thisThread, &u); err != nil {
		return 0, fmt.Errorf("processor time of the thread: %w", err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()), nil
}
