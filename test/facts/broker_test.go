package facts_test

import (
	"context"
	"os"
	"regexp"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"milepost/internal/devstack"
)

// What shows only when the broker dies or stands still, on a broker of its own.
func TestFactsOfABrokerThatFails(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a broker of its own and kills it")
	}
	broker(t) // where one real broker runs, another can
	kafka, err := devstack.StartKafka(t.Context(), devstack.KafkaConfig{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := kafka.Stop(); err != nil {
			t.Error(err)
		}
	})
	t.Run("a generation is issued twice", func(t *testing.T) { issuedTwice(t, kafka) })
	t.Run("what was acknowledged is in the log", func(t *testing.T) { acknowledged(t, kafka) })
}

// E7, P6, section 2 (3.1): a generation is persisted only when the leader has synced. A coordinator that dies between join and sync issues the
// same number a second time, to whoever joins then. That is why the ownership epoch, and not the generation, is the fence.
func issuedTwice(t *testing.T, kafka *devstack.Kafka) {
	t.Helper()
	w := newWorld(t, kafka.Addrs())
	w.session = 60_000
	a, b := w.member(""), w.member("")
	w.together(a)
	joined := make(chan error, 1)
	go func() { joined <- b.join() }()
	w.eventually("a rebalance is prepared", func() bool { return w.state() == "PreparingRebalance" })
	w.all([]*member{a}, (*member).join)
	if err := <-joined; err != nil {
		t.Fatal(err)
	}
	if a.generation != 2 || b.generation != 2 {
		t.Fatalf("joined: generations %d and %d, want 2", a.generation, b.generation)
	}
	if err := kafka.Kill(0); err != nil {
		t.Fatal(err)
	}
	if err := kafka.Restart(w.ctx(), 0); err != nil {
		t.Fatal(err)
	}
	w.eventually("the coordinator is back", func() bool {
		groups, err := w.admin.DescribeGroups(w.ctx(), w.group)
		return err == nil && groups[w.group].Err == nil && groups[w.group].State == "Stable"
	})
	c := w.member("")
	go func() { joined <- c.join() }()
	w.eventually("a rebalance is prepared", func() bool { return w.state() == "PreparingRebalance" })
	w.all([]*member{a}, (*member).join)
	if err := <-joined; err != nil {
		t.Fatal(err)
	}
	if a.generation != 2 || c.generation != 2 {
		t.Errorf("joined after the coordinator's death: generations %d and %d, want 2 a second time", a.generation, c.generation)
	}
}

// P23: a client that gives records up after a time while the broker stands still tells the truth: what it said was acknowledged is in the log
// where it said, once; what it gave up is there at most once. (franz-go before 1.22.2 acknowledged what was not written.)
func acknowledged(t *testing.T, kafka *devstack.Kafka) {
	t.Helper()
	w := newWorld(t, kafka.Addrs())
	producer := w.newClient(
		kgo.RecordDeliveryTimeout(time.Second), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerLinger(0),
		kgo.ProduceRequestTimeout(time.Second), kgo.RequestTimeoutOverhead(time.Second), kgo.MaxBufferedRecords(200),
	)
	ctx := context.WithoutCancel(t.Context())
	var mu sync.Mutex
	acked, given := map[string]int64{}, 0
	over := make(chan struct{})
	for n := range 6000 {
		if n == 2000 {
			if err := kafka.Pause(0); err != nil {
				t.Fatal(err)
			}
			go func() {
				defer close(over)
				for range 300 { // until the client has given something up
					time.Sleep(100 * time.Millisecond)
					mu.Lock()
					enough := given > 0
					mu.Unlock()
					if enough {
						break
					}
				}
				if err := kafka.Resume(0); err != nil {
					t.Error(err)
				}
			}()
		}
		value := strconv.Itoa(n)
		producer.Produce(ctx, &kgo.Record{Topic: w.topic, Partition: 0, Value: []byte(value)}, func(r *kgo.Record, err error) {
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				given++
				return
			}
			acked[value] = r.Offset
		})
	}
	<-over
	if err := producer.Flush(w.ctx()); err != nil {
		t.Fatal(err)
	}
	times := map[string]int{}
	at := map[string]int64{}
	for _, r := range w.read(kgo.ReadUncommitted()) {
		times[string(r.Value)]++
		at[string(r.Value)] = r.Offset
	}
	t.Logf("%d acknowledged, %d given up, %d in the log", len(acked), given, len(times))
	if given == 0 || len(acked) == 0 {
		t.Fatal("the pause was not felt, or nothing came through")
	}
	for value, n := range times {
		if n != 1 {
			t.Errorf("record %s is in the log %d times", value, n)
		}
	}
	for value, offset := range acked {
		if got, there := at[value]; !there || got != offset {
			t.Errorf("record %s was acknowledged at offset %d, and is at %d (%v)", value, offset, got, there)
		}
	}
}

// P23: franz-go is at least 1.22.3.
func TestClientVersion(t *testing.T) {
	mod, err := os.ReadFile("../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`(?m)^\tgithub\.com/twmb/franz-go v(\d+)\.(\d+)\.(\d+)$`).FindSubmatch(mod)
	if m == nil {
		t.Fatal("go.mod does not require franz-go by a plain version")
	}
	version := 0
	for _, part := range m[1:] {
		n, err := strconv.Atoi(string(part))
		if err != nil {
			t.Fatal(err)
		}
		version = version*1000 + n
	}
	if version < 1_022_003 {
		t.Errorf("go.mod requires franz-go %s.%s.%s: versions before 1.22.3 lose or double records", m[1], m[2], m[3])
	}
}
