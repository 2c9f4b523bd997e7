package main

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"milepost/internal/doctor"
)

// worker runs "run" until the returned function is called, which waits for its drain.
func (y *yard) worker(brokers []string, roadMap string) (stop func()) {
	y.t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(y.t.Context()))
	var out, stderr bytes.Buffer
	done := make(chan int, 1) // capacity 1: ends once
	line := append([]string{
		"run", "--dsn", y.dsn, "--group", "g", "--raw", "raw", "--map", roadMap, "--topics", "create", "--listen", "127.0.0.1:0", "--log", "json",
		"--raw-partitions", "2", "--lanes", "2",
	}, brokers...)
	go func() { done <- execute(ctx, line, strings.NewReader(""), &out, &stderr) }()
	return func() {
		cancel()
		if code := <-done; code != 0 {
			y.t.Errorf("run ended with code %d:\n%s", code, stderr.String())
		}
	}
}

// outputs reads the matched topic until it has n records, read_committed, and gives their ce_id and reset reasons.
func (y *yard) outputs(n int) []string {
	y.t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(y.addrs...), kgo.ConsumeTopics("p.matched"), kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		y.t.Fatal(err)
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(y.t.Context(), 30*time.Second)
	defer cancel()
	var got []string
	for len(got) < n && ctx.Err() == nil {
		client.PollFetches(ctx).EachRecord(func(r *kgo.Record) {
			var event struct {
				ID    string `json:"id"`
				Reset *struct {
					Reason string `json:"reason"`
				} `json:"reset"`
			}
			if err := json.Unmarshal(r.Value, &event); err != nil {
				y.t.Error(err)
			}
			if event.Reset != nil {
				event.ID += " " + event.Reset.Reason
			}
			got = append(got, event.ID)
		})
	}
	return got
}

// F30, H7, A17: against a live worker on real statements: it shows up in status, a replay fences it and it goes on by itself under the
// new topic generation, with a reset for what had history; a seek is executed while it runs; doctor finds nothing that fails but
// the test database's missing fsync.
func TestOperatorAgainstALiveWorker(t *testing.T) {
	y := newYard(t)
	brokers := []string{"--brokers", strings.Join(y.addrs, ","), "--prefix", "p"}
	stop := y.worker(brokers, mapFile(t))
	defer func() { stop() }()
	until := func(what string, holds func([]partitionStatus) bool) {
		t.Helper()
		deadline := time.Now().Add(40 * time.Second)
		for {
			got := y.run(append([]string{"status", "--json"}, brokers...)...)
			var facts statusFacts
			if got.code == 0 && json.Unmarshal([]byte(got.out), &facts) == nil && holds(facts.Partitions) {
				return
			}
			if time.Now().After(deadline) {
				t.Fatalf("%s: not within 40 s: %+v", what, got)
			}
			time.Sleep(100 * time.Millisecond)
		}
	}
	sum := func(ps []partitionStatus) (frontier, lag int64) {
		for _, p := range ps {
			if p.Frontier == nil || p.Lag == nil || p.Owner == "" {
				return -1, -1
			}
			frontier, lag = frontier+*p.Frontier, lag+*p.Lag
		}
		return frontier, lag
	}
	until("the worker owns both partitions", func(ps []partitionStatus) bool { _, lag := sum(ps); return len(ps) == 2 && lag == 0 })
	if got := orchestrator(t, trip, append([]string{"replay", "--raw", "raw", "--input", "csv", "-"}, brokers[:2]...)...); got.code != 0 {
		t.Fatalf("replay: %+v", got)
	}
	until("the trip is done", func(ps []partitionStatus) bool { f, lag := sum(ps); return f == 5 && lag == 0 })

	if got := y.run(append([]string{"partition", "reset", "--yes", "--earliest", "--json"}, brokers...)...); got.code != 0 || !strings.Contains(got.out, `"topic_generation":2`) {
		t.Fatalf("reset: %+v", got)
	}
	until("the replay is done", func(ps []partitionStatus) bool {
		f, lag := sum(ps)
		return f == 5 && lag == 0 && ps[0].Prepared+ps[1].Prepared == 0
	})
	got := y.outputs(10)
	resets := 0
	for i, id := range got {
		if generation := "raw/2/"; i >= 5 && !strings.HasPrefix(id, generation) {
			t.Errorf("output %d is %q, want it of the new topic generation", i, id)
		}
		if strings.HasSuffix(id, " operator") {
			resets++
		}
	}
	if len(got) != 10 || resets != 1 {
		t.Errorf("outputs: %q, want ten, one with a reset of reason operator", got)
	}
	for _, p := range []string{"0", "1"} {
		if got := y.run("partition", "seek", "--partition", p, "--offset", "99", "--wait", "30s"); got.code != exitFailed || !strings.Contains(got.out, "the log reaches from") {
			t.Errorf("seek past the end: %+v", got)
		}
	}
	stop()
	stop = func() {}
	var facts doctorFacts
	examined := y.run(append([]string{"doctor", "--json"}, brokers...)...)
	if err := json.Unmarshal([]byte(examined.out), &facts); err != nil {
		t.Fatalf("doctor: %+v: %v", examined, err)
	}
	for _, f := range facts.Checks {
		if f.State == doctor.Fail && f.Name != "fsync" && f.Name != "full_page_writes" && f.Name != "synchronous_commit" {
			t.Errorf("doctor: %+v", f)
		}
	}
}
