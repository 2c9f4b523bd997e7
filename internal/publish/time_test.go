package publish

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"milepost/internal/commit"
	"milepost/internal/stream"
)

// P26: a topic that accepts nothing for want of replicas holds back its own commits, within the transaction's bound, and
// the others go out.
func TestSlowTopic(t *testing.T) {
	inBubble(t, func(r *rig, c *kfake.Cluster) {
		t := r.t
		slow := r.topics.Prefix + ".slow"
		r.makeTopic(slow, nil)
		c.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Topic: slow, Err: kerr.NotEnoughReplicas, Count: -1})
		p := r.publisher("a")
		ten := r.tenure(0, 1)
		batch := r.commits(ten, 0, 5)
		batch[3] = with(batch[3], r.output(slow, ten, batch[3].Key, batch[3].Revision, 10))
		began := time.Now()
		out, err := p.Publish(r.ctx(), 0, batch)
		if err != nil {
			t.Fatal(err)
		}
		wantClasses(t, out, map[int]commit.Class{3: commit.Transient})
		if took := time.Since(began); took > 10*time.Second {
			t.Errorf("took %s, want at most the transaction timeout", took)
		}
		r.wantOnce(r.topics.Matched(), without(batch, 3))
	})
}

// A broker that is away for a quarter of an hour costs a handful of log lines, and the call goes on when it is back.
func TestLongOutage(t *testing.T) {
	inBubble(t, func(r *rig, _ *kfake.Cluster) {
		t := r.t
		log := &logged{}
		r.tune = func(c *Config) { c.Log = slog.New(log) }
		p := r.publisher("a")
		batch := r.commits(r.tenure(0, 1), 0, 2)
		r.mustPublish(p, 0, r.commits(r.tenure(1, 1), 0, 1))
		r.net.unplug()
		time.AfterFunc(15*time.Minute, r.net.plug)
		ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
		defer cancel()
		out, err := p.Publish(ctx, 0, batch)
		if err != nil || len(out.Failed) > 0 {
			t.Fatalf("%v, failed %v", err, out.Failed)
		}
		if n := log.count("publishing waits, nothing is lost"); n != 1 {
			t.Errorf("said %d times that it waits", n)
		}
		if n := log.count("kafka client"); n > 15*2*4 {
			t.Errorf("%d lines of the Kafka client in 15 minutes", n)
		}
		if n := len(r.ids(r.topics.Matched())); n != 3 {
			t.Errorf("%d outputs visible, want 3", n)
		}
	})
}

// H15g: a broker that finds our records' timestamps out of range complains of this process's clock, not of the records: nothing is
// permanent, and they go out once the clock is right. A clock 30 days ahead put healthy keys into quarantine.
func TestWrongClock(t *testing.T) {
	t.Parallel()
	for _, mode := range []commit.PublishMode{commit.Transactional, commit.Idempotent} {
		t.Run(string(mode), func(t *testing.T) {
			inBubble(t, func(r *rig, c *kfake.Cluster) {
				t := r.t
				r.tune = func(c *Config) { c.Mode = mode }
				c.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Topic: r.topics.Matched(), Err: kerr.InvalidTimestamp, Count: 5})
				p := r.publisher("a")
				batch := r.commits(r.tenure(0, 1), 0, 5)
				out, err := p.Publish(r.ctx(), 0, batch)
				if err != nil || len(out.Failed) > 0 {
					t.Fatalf("%v, failed %v", err, out.Failed)
				}
				r.wantOnce(r.topics.Matched(), batch)
			})
		})
	}
}

// P19, H15j: a transaction that hangs outside the lanes we know is waited out until the broker ends it, and said.
func TestHangingTransaction(t *testing.T) {
	inBubble(t, func(r *rig, _ *kfake.Cluster) {
		t := r.t
		log := &logged{}
		r.tune = func(c *Config) { c.Log = slog.New(log) }
		p := r.publisher("a")
		r.hang("somebody", 0, false)
		began := time.Now()
		end, err := p.Ledger().Settled(r.ctx(), stream.Partition{Topic: r.raw, Number: 0}, 0, func(int64, commit.Entry) error {
			t.Error("an uncommitted entry was read")
			return nil
		})
		if err != nil || end != 1 {
			t.Fatalf("end %d, %v: want the end noted before the marker", end, err)
		}
		if took := time.Since(began); took < 5*time.Second || log.count("an open transaction holds the ledger back") != 1 {
			t.Errorf("took %s, said %d times", took, log.count("an open transaction holds the ledger back"))
		}
	})
}

// P7: while the group has no generation for us nothing is sent however long it takes, and the first one that comes is used.
func TestLongRebalance(t *testing.T) {
	inBubble(t, func(r *rig, _ *kfake.Cluster) {
		t := r.t
		p := r.publisher("a")
		ten := r.tenure(0, 1)
		batch := r.commits(ten, 0, 1)
		r.who.see(func() (string, int32) { return "", -1 })
		time.AfterFunc(5*time.Minute, func() { r.who.see(nil) })
		began := time.Now()
		ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
		defer cancel()
		if out, err := p.Publish(ctx, 0, batch); err != nil || len(out.Failed) > 0 {
			t.Fatalf("%v, failed %v", err, out.Failed)
		}
		if took := time.Since(began); took < 5*time.Minute || took > 5*time.Minute+time.Second {
			t.Errorf("took %s, want 5m", took)
		}
		r.wantOnce(r.topics.Matched(), batch)
	})
}
