package consumer

import (
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"milepost/internal/partition"
	"milepost/internal/stream"
)

// P33, A17: a stranger's open transaction lets the log's end run away and holds the stable end where it is; the frontier
// reaches the stable end. A process without partitions has no status.
func TestEndsOfTheLog(t *testing.T) {
	bubble(t, 1, func(r *rig) {
		t := r.t
		r.produce(0, numbered("a", 0, 10)...)
		stranger := r.newClient(kgo.TransactionalID("stranger"), kgo.RecordPartitioner(kgo.ManualPartitioner()))
		defer stranger.Close()
		if err := stranger.BeginTransaction(); err != nil {
			t.Fatal(err)
		}
		for range 5 {
			if err := stranger.ProduceSync(t.Context(), &kgo.Record{Topic: rawTopic, Key: []byte("b"), Value: []byte("x")}).FirstErr(); err != nil {
				t.Fatal(err)
			}
		}
		p := r.start("one")
		r.eventually("ends", func() bool {
			st := p.Status()
			return len(st) == 1 && st[0].Saved == 10 && st[0].End == 15 && st[0].Stable == 10
		})
		if err := stranger.EndTransaction(t.Context(), kgo.TryCommit); err != nil {
			t.Fatal(err)
		}
		r.eventually("both ends", func() bool {
			st := p.Status()
			return len(st) == 1 && st[0].End == 16 && st[0].Stable == 16 // with the marker
		})
		if err := p.stop(); err != nil {
			t.Fatal(err)
		}
		if st := p.Status(); len(st) != 0 {
			t.Errorf("status after the end: %v", st)
		}
	})
}

// A17: round trips, commits since the records' Kafka timestamps and the loop's turns are told; a latency that skewed clocks make
// negative is not; the end of a tenure brings its statistics, also without a drain, and logs them.
func TestObserverMeasures(t *testing.T) {
	bubble(t, 1, func(r *rig) {
		t := r.t
		// Broker and worker share the bubble's clock; these records come from a clock an hour ahead.
		skewed := r.newClient(kgo.RecordPartitioner(kgo.ManualPartitioner()))
		defer skewed.Close()
		rec := &kgo.Record{Topic: rawTopic, Key: []byte("a"), Value: []byte("early"), Timestamp: time.Now().Add(time.Hour)}
		if err := skewed.ProduceSync(t.Context(), rec).FirstErr(); err != nil {
			t.Fatal(err)
		}
		r.produce(0, numbered("a", 0, 40)...)
		var solved, committed, ticks atomic.Int64
		var stats partition.Stats
		p := r.start("one", func(_ *Config, d *Deps) {
			d.Observer = Observer{
				Solved: func(time.Duration, error) { solved.Add(1) },
				Committed: func(latency time.Duration) {
					committed.Add(1)
					if latency < 0 {
						t.Errorf("latency %s", latency)
					}
				},
				Turned: func(kind string, _ time.Duration) {
					if !slices.Contains(Turns(), kind) || kind == "other" {
						t.Errorf("a turn of kind %q", kind)
					}
					if kind == "tick" {
						ticks.Add(1)
					}
				},
				Ended: func(_ stream.Partition, _ stream.Epoch, _ bool, _ error, r partition.Report) {
					stats = stats.Plus(r.Stats)
				},
			}
		})
		r.eventually("outputs", func() bool { return len(r.broker.Values()) == 41 })
		r.eventually("a tick", func() bool { return ticks.Load() > 0 })
		r.steal(0)
		r.produce(0, numbered("a", 40, 1)...)
		r.eventually("outputs", func() bool { return len(r.broker.Values()) == 42 })
		if err := p.stop(); err != nil {
			t.Fatal(err)
		}
		if solved.Load() < 42 || committed.Load() != 41 {
			t.Errorf("told of %d answers and %d commits, want 42 or more and 41", solved.Load(), committed.Load())
		}
		if stats.Committed != 42 || stats.Offered < 42 {
			t.Errorf("statistics of both tenures: %+v, want 42 committed", stats)
		}
		if !p.log.has("statistics=[") || !p.log.has("committed=") {
			t.Error("the end of a tenure does not log its statistics")
		}
	})
}
