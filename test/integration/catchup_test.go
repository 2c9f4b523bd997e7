//go:build integration

package integration_test

import (
	"flag"
	"strconv"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"milepost/test/stand"
)

var backlog = flag.Int("backlog", 0, "positions of the vehicle whose catching up TestCatchUpThroughput measures; 0: none")

// F21, A13, C7: a vehicle has fallen far behind. Its worker is killed with -9 while it catches up many positions a commit, another one goes on:
// each position has its one output, in order, and nothing is left prepared. In either durability mode.
func TestCatchUpSurvivesKill(t *testing.T) {
	for _, mode := range []string{"prepared", "deferred"} {
		t.Run(mode, func(t *testing.T) {
			const n = 3000
			j := newJob(t, useStack(t), 1)
			j.behind(t, n)
			out := j.stack.Client(t, kgo.ConsumeTopics(j.prefix+".matched"), kgo.FetchIsolationLevel(kgo.ReadCommitted()),
				kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
			first := j.worker(t, "first", "--mode", mode)
			first.WaitLine(time.Minute, "recovered")
			j.outputs(t, out, n/10)
			first.Kill()
			second := j.worker(t, "second", "--mode", mode)
			second.WaitLine(time.Minute, "recovered") // the first may have come to the end before it was killed
			if v := j.judged(t, 2*time.Minute); !v.Clean() || v.Outputs != n {
				t.Errorf("after the kill: %s", v)
			}
			if code := second.Terminate(30 * time.Second); code != 0 {
				t.Errorf("drain: exit code %d", code)
			}
			if left := j.preparedLeft(t); left != 0 {
				t.Errorf("%d commits left prepared after the drain", left)
			}
			if took := j.ledgerPositions(t); took > n/2 {
				t.Errorf("the ledger took %d positions for %d observations: the test shows little of runs", took, n)
			}
		})
	}
}

// F21: how fast one vehicle's backlog is worked off, one position a commit and many.
func TestCatchUpThroughput(t *testing.T) {
	if *backlog == 0 {
		t.Skip("measures only where -backlog says how many positions wait")
	}
	for _, mode := range []string{"prepared", "deferred"} {
		for _, run := range []int{1, 8, 64} {
			j := newJob(t, useStack(t), 1)
			j.behind(t, *backlog)
			out := j.stack.Client(t, kgo.ConsumeTopics(j.prefix+".matched"), kgo.FetchIsolationLevel(kgo.ReadCommitted()),
				kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
			w := j.worker(t, "worker", "--mode", mode, "--catch-up", strconv.Itoa(run))
			left := *backlog - j.outputs(t, out, 1)
			began := time.Now()
			j.outputs(t, out, left)
			took := time.Since(began)
			t.Logf("%s, up to %d a commit: %d positions in %s, %.0f a second", mode, run, left, took.Round(time.Millisecond), float64(left)/took.Seconds())
			if code := w.Terminate(30 * time.Second); code != 0 {
				t.Errorf("drain: exit code %d", code)
			}
		}
	}
}

// behind makes the topics and fills the raw one with positions of one vehicle, a second apart.
func (j *job) behind(t *testing.T, n int) {
	t.Helper()
	j.stack.NewTopic(t, j.prefix+".matched", 8)
	at := time.Now().Add(-time.Duration(n) * time.Second)
	for i := range n {
		j.produce(t, j.fleet.Drive(0, at.Add(time.Duration(i)*time.Second), time.Second))
	}
	must(t, j.client.Flush(t.Context()))
}

// outputs waits until so many more outputs are there, and gives how many came: more may come with the last of them.
func (j *job) outputs(t *testing.T, out *kgo.Client, n int) (got int) {
	t.Helper()
	ctx := stand.Limit(t, 5*time.Minute)
	for got < n {
		fetches := out.PollFetches(ctx)
		if err := ctx.Err(); err != nil {
			t.Fatalf("%d of %d outputs: %v", got, n, err)
		}
		got += fetches.NumRecords()
	}
	return got
}

// ledgerPositions is how many positions of the ledger were ever taken: a record and a marker a transaction.
func (j *job) ledgerPositions(t *testing.T) int64 {
	t.Helper()
	ends, err := kadm.NewClient(j.client).ListEndOffsets(stand.Limit(t, time.Minute), j.prefix+".ledger")
	must(t, err)
	var sum int64
	ends.Each(func(o kadm.ListedOffset) { sum += o.Offset })
	if sum == 0 {
		t.Fatal("nothing was ever written to the ledger")
	}
	return sum
}
