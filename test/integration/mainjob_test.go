//go:build integration

package integration_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/twmb/franz-go/pkg/kgo"

	"milepost/internal/devstack"
	"milepost/internal/fleet"
	"milepost/internal/mapmatch"
	"milepost/internal/roadnet"
	"milepost/internal/traffic"
	"milepost/test/stand"
)

// job is the main job on the stack: topics, a database, a fleet, workers.
type job struct {
	stack              *Stack
	program            string
	raw, prefix, group string
	dsn, roadMap       string
	catalog            string // in place of the road map, where it is set
	fleet              *traffic.Fleet
	client             *kgo.Client
}

func newJob(t *testing.T, s *Stack, vehicles int) *job {
	t.Helper()
	j := &job{stack: s, program: BuildOrchestrator(t), dsn: s.NewDatabase(t), client: s.Client(t)}
	j.raw, j.prefix, j.group = s.NewNames(t, 8)
	var err error
	if j.roadMap, err = devstack.DelawareMap(t.Context(), slog.New(slog.DiscardHandler)); err != nil {
		t.Fatal(err)
	}
	j.fleet, err = traffic.New(importMap(t, j.roadMap), vehicles, 1)
	if err != nil {
		t.Fatal(err)
	}
	migrate := stand.Run(t, "migrate", j.program, nil, "migrate", "up", "--dsn", j.dsn)
	if code := migrate.Wait(time.Minute); code != 0 {
		t.Fatalf("migrate up: exit code %d", code)
	}
	return j
}

func importMap(t *testing.T, path string) *roadnet.Graph {
	t.Helper()
	f := open(t, path)
	g, err := roadnet.Import(t.Context(), f, "map", roadnet.ImportOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// worker starts an orchestrator of the job.
func (j *job) worker(t *testing.T, name string, more ...string) *stand.Process {
	t.Helper()
	args := append([]string{
		"run", "--brokers", strings.Join(j.stack.Brokers, ","), "--dsn", j.dsn, "--group", j.group, "--raw", j.raw, "--prefix", j.prefix,
		"--topics", "create", "--listen", "127.0.0.1:0", "--log", "json", "--session-timeout", "6s",
	}, j.territory()...)
	return stand.Run(t, name, j.program, nil, append(args, more...)...)
}

// territory is what a process of the job serves.
func (j *job) territory() []string {
	if j.catalog != "" {
		return []string{"--catalog", j.catalog}
	}
	return []string{"--map", j.roadMap}
}

// drive produces seconds of the fleet's positions, at the pace of real time, and calls at with each second that has passed.
func (j *job) drive(t *testing.T, seconds int, at func(second int)) {
	t.Helper()
	start := time.Now()
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	n, sent := j.fleet.Vehicles(), 0
	for second := 0; second < seconds; {
		<-ticker.C
		since := time.Since(start)
		for due := min(int(float64(n)*since.Seconds()), n*seconds); sent < due; sent++ {
			j.produce(t, j.fleet.Drive(sent%n, time.Now(), time.Second))
		}
		if now := int(since.Seconds()); now > second {
			second = now
			if at != nil {
				at(second)
			}
		}
	}
	must(t, j.client.Flush(t.Context()))
}

func (j *job) produce(t *testing.T, fix traffic.Fix) {
	t.Helper()
	value := fleet.AppendFix(nil, &fleet.Fix{Vehicle: fix.Vehicle, Observation: mapmatch.Observation{
		Time: fix.Time, Point: fix.Point, SpeedMPS: fix.SpeedMPS, Heading: fix.Heading, AccuracyM: fix.AccuracyM,
	}})
	j.client.Produce(t.Context(), &kgo.Record{Topic: j.raw, Key: []byte(fix.Vehicle), Value: value}, func(_ *kgo.Record, err error) {
		if err != nil {
			t.Errorf("produce: %v", err)
		}
	})
}

// judged waits until every observation came out, and gives the verdict.
func (j *job) judged(t *testing.T, d time.Duration) Verdict {
	t.Helper()
	return j.judgedBy(t, d, Judge)
}

func (j *job) judgedBy(t *testing.T, d time.Duration, judge func(*testing.T, *Stack, string, ...string) Verdict) Verdict {
	t.Helper()
	var v Verdict
	stand.Eventually(t, d, "every observation has an output", func(context.Context) error {
		v = judge(t, j.stack, j.raw, j.prefix+".matched", j.prefix+".dead-letter")
		if len(v.Lost) > 0 {
			return fmt.Errorf("%s", v)
		}
		return nil
	})
	return v
}

// preparedLeft counts prepared rows, in the database's own words.
func (j *job) preparedLeft(t *testing.T) int {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	conn, err := pgx.Connect(ctx, j.dsn)
	must(t, err)
	defer func() { _ = conn.Close(ctx) }()
	var n int
	must(t, conn.QueryRow(ctx, "SELECT count(*) FROM checkpoint WHERE has_prepared").Scan(&n))
	return n
}

// A19, P1, P20, P25: two workers, one killed with -9 at half and started again: nothing lost, nothing repeated, revisions of each
// vehicle strictly rising; after the drain nothing is left prepared. In each protocol, publish mode and durability mode (A13); without transactions
// what was in hand at the kill may be repeated, as the same bytes.
func TestMainJobSurvivesKill(t *testing.T) {
	for _, c := range []struct {
		protocol, publish, mode string
		seconds                 int
	}{
		{"classic", "transactional", "prepared", 20},
		{"classic", "idempotent", "prepared", 10},
		{"consumer", "transactional", "prepared", 10},
		{"consumer", "idempotent", "prepared", 10},
		{"classic", "transactional", "deferred", 10},
	} {
		t.Run(c.protocol+"/"+c.publish+"/"+c.mode, func(t *testing.T) {
			survivesKill(t, c.seconds, c.publish == "idempotent", "--protocol", c.protocol, "--publish", c.publish, "--mode", c.mode)
		})
	}
}

func survivesKill(t *testing.T, seconds int, repeats bool, flags ...string) {
	t.Helper()
	judge := Judge
	if repeats {
		judge = JudgeDropping
	}
	j := newJob(t, useStack(t), 200)
	first, second := j.worker(t, "first", flags...), j.worker(t, "second", flags...)
	first.WaitLine(time.Minute, "recovered")
	second.WaitLine(time.Minute, "recovered")
	j.drive(t, seconds, func(s int) {
		switch s {
		case seconds / 2:
			first.Kill()
		case seconds/2 + 1:
			first = j.worker(t, "first again", flags...)
		}
	})
	clean := func(when string) {
		t.Helper()
		// With protocol consumer a broker with default settings keeps a dead member for 45 seconds.
		if v := j.judgedBy(t, 2*time.Minute, judge); !v.Clean() {
			t.Errorf("%s: %s", when, v)
		}
	}
	clean("after the kill")
	for _, p := range []*stand.Process{first, second} {
		if code := p.Terminate(30 * time.Second); code != 0 {
			t.Errorf("drain: exit code %d", code)
		}
	}
	clean("after the drain")
	if n := j.preparedLeft(t); n != 0 {
		t.Errorf("%d commits left prepared after the drain", n)
	}
}

// A15, P16: database and broker go away in mid-job and come back; the worker says so, waits, goes on; nothing is lost.
func TestMainJobSurvivesOutages(t *testing.T) {
	s := breakable(t)
	j := newJob(t, s, 100)
	w := j.worker(t, "worker")
	w.WaitLine(time.Minute, "recovered")
	j.drive(t, 24, func(second int) {
		switch second {
		case 4:
			must(t, s.Database.Kill())
		case 9:
			must(t, s.Database.Restart(t.Context()))
		case 13:
			must(t, s.Broker.Kill())
		case 15:
			must(t, s.Broker.Restart(t.Context()))
		}
	})
	if v := j.judged(t, 2*time.Minute); !v.Clean() {
		t.Errorf("after the outages: %s", v)
	}
	if code := w.Terminate(40 * time.Second); code != 0 {
		t.Errorf("drain: exit code %d", code)
	}
	if n := j.preparedLeft(t); n != 0 {
		t.Errorf("%d commits left prepared after the drain", n)
	}
}

// A15: started before its database and broker answer, a worker says so, waits and begins.
func TestStartWaitsForStores(t *testing.T) {
	s := breakable(t)
	j := newJob(t, s, 10)
	must(t, s.Database.Kill())
	w := j.worker(t, "worker")
	w.WaitLine(30*time.Second, "waiting for the database")
	must(t, s.Broker.Kill())
	must(t, s.Database.Restart(t.Context()))
	w.WaitLine(30*time.Second, "waiting for the brokers")
	must(t, s.Broker.Restart(t.Context()))
	w.WaitLine(time.Minute, "recovered")
	j.drive(t, 2, nil)
	if v := j.judged(t, time.Minute); !v.Clean() {
		t.Errorf("verdict: %s", v)
	}
	if code := w.Terminate(30 * time.Second); code != 0 {
		t.Errorf("drain: exit code %d", code)
	}
}

func open(t *testing.T, path string) *os.File {
	t.Helper()
	f, err := os.Open(path)
	must(t, err)
	t.Cleanup(func() { _ = f.Close() })
	return f
}
