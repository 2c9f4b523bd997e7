package main

import (
	"bytes"
	"context"
	"encoding/json"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
)

func broker(t *testing.T) string {
	t.Helper()
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(2, "raw"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cluster.Close)
	return cluster.ListenAddrs()[0]
}

// A20, V3: the good rows of a file go in, keyed by vehicle; the bad ones are named; exit code 3.
func TestReplay(t *testing.T) {
	addr := broker(t)
	file := filepath.Join(t.TempDir(), "trip.csv")
	write(t, file, trip+"b,1700000050000,200,48\nb,1700000060000,9,48\n")
	got := orchestrator(t, "", "replay", "--brokers", addr, "--raw", "raw", "--json", file)
	var facts replayFacts
	if err := json.Unmarshal([]byte(got.out), &facts); err != nil {
		t.Fatalf("%v: %+v", err, got)
	}
	if got.code != exitRefused || facts.Sent != 6 || facts.Refused != 1 || !strings.Contains(got.err, "trip.csv:7") {
		t.Errorf("replay: %+v", got)
	}
	keys := map[string]int{}
	for _, r := range consume(t, addr, 6) {
		keys[string(r.Key)]++
		if !strings.Contains(string(r.Value), `"vehicle":"`+string(r.Key)+`"`) {
			t.Errorf("record of %s: %s", r.Key, r.Value)
		}
	}
	if keys["a"] != 5 || keys["b"] != 1 {
		t.Errorf("records by key: %v", keys)
	}
	if got := orchestrator(t, "", "replay", "--brokers", addr, "--raw", "raw", "--strict", file); got.code != exitFailed {
		t.Errorf("strict: %+v", got)
	}
	if got := orchestrator(t, "", "replay", "--brokers", addr, "--raw", "nowhere", file); got.code != exitFailed || !strings.Contains(got.err, "raw topic") {
		t.Errorf("no such topic: %+v", got)
	}
}

func consume(t *testing.T, addr string, n int) []*kgo.Record {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(addr), kgo.ConsumeTopics("raw"))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	var rs []*kgo.Record
	for len(rs) < n {
		fetches := client.PollFetches(ctx)
		if err := ctx.Err(); err != nil {
			t.Fatalf("%d of %d records: %v", len(rs), n, err)
		}
		rs = append(rs, fetches.Records()...)
	}
	return rs
}

// A20: time shift moves the first position to now, and a loop goes on until it is stopped, with a clean end.
func TestReplayLoop(t *testing.T) {
	addr := broker(t)
	ctx, stop := context.WithCancel(t.Context())
	var out, stderr bytes.Buffer
	code := make(chan int, 1)
	file := filepath.Join(t.TempDir(), "trip.csv")
	write(t, file, trip)
	go func() {
		code <- execute(ctx, []string{"replay", "--brokers", addr, "--raw", "raw", "--time", "shift", "--loop", "--rate", "500", file}, nil, &out, &stderr)
	}()
	rs := consume(t, addr, 40)
	stop()
	if c := <-code; c != 0 {
		t.Errorf("stopped: exit code %d, %s", c, stderr.String())
	}
	var first struct{ Time time.Time }
	if err := json.Unmarshal(rs[0].Value, &first); err != nil || time.Since(first.Time) > time.Minute {
		t.Errorf("first record %s (%v): not shifted to now", rs[0].Value, err)
	}
}

// The whole main job on the embedded stack: nothing lost, nothing twice, nothing left; nothing but JSON on standard output.
func TestDev(t *testing.T) {
	if testing.Short() {
		t.Skip("runs the demo for some seconds")
	}
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("no go command to find the road map with")
	}
	if addrs, err := net.InterfaceAddrs(); err != nil || len(addrs) == 0 {
		t.Skip("no loopback")
	}
	got := orchestrator(t, "", "dev", "--for", "5s", "--vehicles", "50", "--json")
	var f figures
	if err := json.Unmarshal([]byte(got.out), &f); err != nil {
		t.Fatalf("%v: %+v", err, got)
	}
	if got.code != 0 || f.Observations < 200 || f.Outputs != f.Observations || f.Lost+f.Repeated+f.Disordered+f.Foreign != 0 ||
		f.PreparedLeft != 0 || f.FrontierLag != 0 || f.P99MS <= 0 {
		t.Errorf("dev: exit code %d, %+v\n%s", got.code, f, got.err)
	}
	if left, err := filepath.Glob(filepath.Join(os.TempDir(), "milepost-dev-*")); err != nil || len(left) > 0 {
		t.Logf("folders of runs under way: %v", left) // another run may be at work beside this one
	}
}
