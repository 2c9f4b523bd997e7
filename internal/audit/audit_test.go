package audit_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/goleak"

	"milepost/internal/audit"
	"milepost/internal/stream"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is a broker with a raw and an output topic, and an auditor at work.
type world struct {
	addrs   []string
	client  *kgo.Client
	auditor *audit.Auditor
}

func newWorld(t *testing.T) *world {
	t.Helper()
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(2, "raw"), kfake.SeedTopics(1, "out"), kfake.SeedTopics(1, "dead"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cluster.Close)
	w := &world{addrs: cluster.ListenAddrs()}
	w.client, err = kgo.NewClient(kgo.SeedBrokers(w.addrs...), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.client.Close)
	w.auditor = audit.New(audit.Config{Client: []kgo.Opt{kgo.SeedBrokers(w.addrs...)}, Raw: "raw", Outputs: []string{"out", "dead"}})
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- w.auditor.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return w
}

func (w *world) produce(t *testing.T, rs ...*kgo.Record) {
	t.Helper()
	if err := w.client.ProduceSync(t.Context(), rs...).FirstErr(); err != nil {
		t.Fatal(err)
	}
}

func raw(partition int32, n int) []*kgo.Record {
	var rs []*kgo.Record
	for range n {
		rs = append(rs, &kgo.Record{Topic: "raw", Partition: partition, Value: []byte("x")})
	}
	return rs
}

func output(topic string, partition int32, offset int64, subject, reason string) *kgo.Record {
	e := stream.CloudEvent{
		Type: "t", Group: "g", Subject: stream.Key(subject), Epoch: 1, Reason: reason,
		Identity: stream.Identity{Partition: stream.Partition{Topic: "raw", Number: partition}, Revision: stream.Revision{Generation: 1, Offset: offset}},
	}
	r := &kgo.Record{Topic: topic}
	for _, h := range e.Headers() {
		r.Headers = append(r.Headers, kgo.RecordHeader{Key: h.Key, Value: h.Value})
	}
	return r
}

func (w *world) report(t *testing.T) audit.Report {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if err := w.auditor.CaughtUp(ctx); err != nil {
		t.Fatal(err)
	}
	return w.auditor.Report()
}

// P25, A19: a clean history is clean, with dead letters counted as outputs and a latency.
func TestCleanHistory(t *testing.T) {
	w := newWorld(t)
	w.produce(t, append(raw(0, 3), raw(1, 1)...)...)
	w.produce(t, output("out", 0, 0, "a", ""), output("dead", 0, 1, "a", "undecodable"), output("out", 0, 2, "a", ""), output("out", 1, 0, "b", ""))
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if err := w.auditor.Answered(ctx); err != nil {
		t.Fatal(err)
	}
	got := w.report(t)
	if !got.Clean() || got.Observations != 4 || got.Outputs != 4 || got.DeadLetters != 1 || got.P99 <= 0 || got.P50 > got.P99 {
		t.Errorf("report: %+v", got)
	}
}

// P25: each kind of fault is found and named.
func TestFindings(t *testing.T) {
	w := newWorld(t)
	w.produce(t, raw(0, 4)...)
	w.produce(t,
		output("out", 0, 1, "a", ""), output("out", 0, 0, "a", ""), // disordered
		output("out", 0, 1, "a", ""), // repeated
		output("out", 0, 9, "z", ""), // foreign
		&kgo.Record{Topic: "out"},    // unreadable
	)
	got := w.report(t)
	want := audit.Report{Observations: 4, Outputs: 3, Lost: 2, Repeated: 1, Foreign: 1, Disordered: 1, Unreadable: 1}
	got.P50, got.P99 = 0, 0
	examples := strings.Join(got.Examples, "\n")
	got.Examples = nil
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("report: %+v\nwant:   %+v", got, want)
	}
	for _, name := range []string{"repeated raw/1/0/1/0", "output of 0@9", "no output of 0@2", "revision 1.0 after 1.1", "unreadable output out/0@4"} {
		if !strings.Contains(examples, name) {
			t.Errorf("no example says %q:\n%s", name, examples)
		}
	}
	if got.Clean() {
		t.Error("a faulty history is called clean")
	}
}

// U1: what a transaction aborted is not an output.
func TestReadCommitted(t *testing.T) {
	w := newWorld(t)
	w.produce(t, raw(0, 1)...)
	txn, err := kgo.NewClient(kgo.SeedBrokers(w.addrs...), kgo.TransactionalID("t"))
	if err != nil {
		t.Fatal(err)
	}
	defer txn.Close()
	for _, end := range []kgo.TransactionEndTry{kgo.TryAbort, kgo.TryCommit} {
		if err := txn.BeginTransaction(); err != nil {
			t.Fatal(err)
		}
		if err := txn.ProduceSync(t.Context(), output("out", 0, 0, "a", "")).FirstErr(); err != nil {
			t.Fatal(err)
		}
		if err := txn.EndTransaction(t.Context(), end); err != nil {
			t.Fatal(err)
		}
	}
	if got := w.report(t); !got.Clean() || got.Outputs != 1 {
		t.Errorf("report: %+v", got)
	}
}
