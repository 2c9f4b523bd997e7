//go:build soak

package soak_test

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"milepost/test/soak"
	"milepost/test/stand"
)

var (
	minutes = flag.Float64("minutes", 30, "how long")
	rate    = flag.Int("rate", 500, "records a second; half of what the machine can")
	keys    = flag.Int("keys", 5000, "keys")
	out     = flag.String("out", "", "folder for soak.csv and soak.svg; empty: none")
	note    = flag.String("note", "", "for the picture's title: what else the machine did")
)

const (
	session = 6 * time.Second
	sampled = 5 * time.Second
)

// A15, P28, P37: workers under load with a fault a minute: kill -9, a pause longer than the session, an orderly restart, and Postgres and Kafka
// killed and paused. What they use stays flat after a warm-up, and a stranger finds every record once and in order.
func TestSoak(t *testing.T) {
	ctx := t.Context()
	program, err := stand.Build(ctx, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	s, err := stand.Start(ctx, stand.Config{
		SessionTimeout: session, Safe: true, Postgres: map[string]string{"autovacuum_naptime": "10s"},
	}, slog.New(slog.NewTextHandler(os.Stderr, nil)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	})
	r := &run{t: t, stand: s, job: s.NewJob(t, program, 8), began: time.Now()}
	r.steady, r.victim = r.worker("steady"), r.worker("victim 0")
	r.steady.WaitLine(time.Minute, "recovered")
	load := &stand.Load{Keys: *keys, Rate: *rate}
	stop := load.Start(context.WithoutCancel(ctx), r.job)
	m := newMeter(r.job, r.steady)
	r.pass(m)
	if err := stop(); err != nil {
		t.Error(err)
	}
	r.job.Drained(5 * time.Minute)
	m.report(t, r)
	for _, p := range []*stand.Process{r.steady, r.victim} {
		if code := p.Terminate(time.Minute); code != 0 {
			t.Errorf("%s drained with exit code %d", p.Name, code)
		}
	}
	if v := r.job.Judge(false); len(v.Faults) > 0 || v.Raw != int(load.Sent()) {
		t.Errorf("%d written, %s", load.Sent(), &v)
	} else {
		fmt.Printf("%d records judged: each out once and in order\n", v.Raw)
	}
}

// run is the workers and what has been done to them.
type run struct {
	t              *testing.T
	stand          *stand.Stand
	job            *stand.Job
	began          time.Time
	steady, victim *stand.Process
	restarts       int
	faults         []float64 // minutes
	names          []string
}

func (r *run) worker(name string) *stand.Process {
	return r.job.Worker(name, nil, "--session-timeout", session.String())
}

func (r *run) since() float64 { return time.Since(r.began).Minutes() }

// pass lets time pass, samples, and makes a fault at the beginning of each minute but the first.
func (r *run) pass(m *meter) {
	tick := time.NewTicker(sampled)
	defer tick.Stop()
	done := make(chan struct{}, 1)
	done <- struct{}{}
	fault, due := 0, 1
	for r.since() < *minutes {
		<-tick.C
		m.sample(r.t.Context(), r.since())
		if int(r.since()) < due {
			continue
		}
		select {
		case <-done:
		default:
			continue // the last fault is not over
		}
		list := r.list()
		f := list[fault%len(list)]
		fault, due = fault+1, int(r.since())+1 // a minute that a long fault took is not made up for
		r.faults, r.names = append(r.faults, r.since()), append(r.names, f.name)
		fmt.Printf("minute %.1f: %s\n", r.since(), f.name)
		go func() {
			f.make()
			done <- struct{}{}
		}()
	}
	select {
	case <-done:
	case <-time.After(2 * time.Minute):
		r.t.Fatal("the last fault does not end")
	}
}

type fault struct {
	name string
	make func()
}

func (r *run) list() []fault {
	pause := func(p *stand.Process) {
		p.Signal(syscall.SIGSTOP)
		time.Sleep(session + 3*time.Second)
		p.Signal(syscall.SIGCONT)
	}
	again := func() {
		r.restarts++
		r.victim = r.worker(fmt.Sprintf("victim %d", r.restarts))
	}
	return []fault{
		{"kill -9 of a worker", func() { r.victim.Kill(); time.Sleep(3 * time.Second); again() }},
		{"a worker stands still past its session", func() { pause(r.steady) }},
		{"kill -9 of Postgres", func() {
			r.must(r.stand.Postgres.Kill())
			time.Sleep(3 * time.Second)
			r.must(r.stand.Postgres.Restart(r.t.Context()))
		}},
		{"a worker restarted in order", func() {
			if code := r.victim.Terminate(time.Minute); code != 0 {
				r.t.Errorf("%s drained with exit code %d", r.victim.Name, code)
			}
			again()
		}},
		{"Kafka stands still", func() {
			r.must(r.stand.Kafka.Pause(0))
			time.Sleep(5 * time.Second)
			r.must(r.stand.Kafka.Resume(0))
		}},
		{"another worker stands still past its session", func() { pause(r.victim) }},
		{"Postgres stands still", func() {
			r.must(r.stand.Postgres.Pause())
			time.Sleep(5 * time.Second)
			r.must(r.stand.Postgres.Resume())
		}},
		{"kill -9 of Kafka", func() {
			r.must(r.stand.Kafka.Kill(0))
			time.Sleep(3 * time.Second)
			r.must(r.stand.Kafka.Restart(r.t.Context(), 0))
		}},
	}
}

func (r *run) must(err error) {
	if err != nil {
		r.t.Error(err)
	}
}

// address gives where a worker serves its metrics.
func address(p *stand.Process) string {
	var line struct {
		Address string `json:"address"`
	}
	if err := json.Unmarshal([]byte(p.WaitLine(time.Minute, "health and metrics")), &line); err != nil {
		return ""
	}
	return line.Address
}

// report writes the samples and the picture, and judges.
func (m *meter) report(t *testing.T, r *run) {
	t.Helper()
	warm := *minutes / 5
	title := fmt.Sprintf("%.0f minutes at %d records a second, %d faults", *minutes, *rate, len(r.faults))
	if *note != "" {
		title += "; " + *note
	}
	fmt.Printf("%s; judged after minute %.1f\n", title, warm)
	for _, s := range m.series {
		if s.Level {
			continue
		}
		j := s.Judge(m.minutes, warm)
		fmt.Printf("  %-34s %s %s\n", s.Name, j, s.Unit)
		if !j.Flat {
			t.Errorf("%s: %s", s.Name, j)
		}
	}
	if *out == "" {
		return
	}
	var all []soak.Series
	for _, s := range m.series {
		all = append(all, *s)
	}
	for name, content := range map[string][]byte{"soak.csv": m.csv(), "soak.svg": soak.Plot(title, m.minutes, all, r.faults)} {
		if err := os.WriteFile(filepath.Join(*out, name), content, 0o644); err != nil { //nolint:gosec // for everybody
			t.Error(err)
		}
	}
}
