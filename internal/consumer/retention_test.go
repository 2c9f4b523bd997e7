package consumer

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"milepost/internal/commit"
	"milepost/internal/partition"
	"milepost/internal/stream"
)

// historian is a workload whose outputs say what it knew of the key: nothing, its state, only a tail of it, or bytes that it cannot read.
type historian struct{ tally }

func (historian) Open(k partition.KeyState, _ partition.Observation, _ ...partition.Observation) partition.Opening {
	knew := "never seen"
	switch {
	case k.Expired:
		knew = "expired " + string(k.Checkpoint.State)
	case k.Checkpoint.Revision.IsZero():
	case bytes.HasPrefix(k.Checkpoint.State, []byte("ok ")):
		knew = "present"
	default:
		knew = "lost"
	}
	return partition.Opening{Request: []byte(knew)}
}

func (historian) Plan(_ partition.KeyState, o partition.Observation, d partition.Decision) (commit.Plan, error) {
	state := "ok " + o.Value.(string)
	if o.Value == "broken" {
		state = "#"
	}
	return commit.Plan{
		Next:    commit.Checkpoint{Revision: o.Identity.Revision, Segment: 1, State: []byte(state)},
		Outputs: []commit.Output{{Topic: "out.matched", Key: []byte(o.Key), Value: d.Answer}},
	}, nil
}

func tailOf(state []byte) []byte {
	if !bytes.HasPrefix(state, []byte("ok ")) {
		return nil
	}
	return append([]byte("tail of "), state[len("ok "):]...)
}

// A5, F8: the state of a key that has been quiet for the retention is let go of, by the owner and fenced; the key's next observation is told
// that it has expired, and what the tail keeps. A key that moves on keeps its state, a state that nobody can read stays lost, and a
// key never seen is none of these; in the process that let go and in the next one.
func TestStateRetention(t *testing.T) {
	bubble(t, 2, func(r *rig) {
		t := r.t
		var expired atomic.Int64
		keeping := func(c *Config, d *Deps) {
			c.Partition.EvictIdle, c.Partition.EvictSweep, c.StateRetention = 5*time.Second, time.Second, 40*time.Second
			d.Workload, d.Retention, d.Tail = historian{}, r.store, tailOf
			d.Observer.Expired = func(n int) { expired.Add(int64(n)) }
		}
		p := r.start("one", keeping)
		r.produce(0, "quiet=1", "quiet=2", "bad=broken", "busy=0")
		r.produce(1, "other=7")
		r.eventually("outputs", func() bool { return len(r.broker.Values()) == 5 })
		last := time.Now()
		r.eventually("two states to expire", func() bool {
			if time.Since(last) > 10*time.Second {
				last = time.Now()
				r.produce(0, "busy=1")
			}
			return expired.Load() == 2
		})
		if rows := r.store.Checkpoints(groupName, part(0)); !rows["quiet"].Expired || rows["busy"].Expired || rows["bad"].Expired {
			t.Errorf("rows %+v", rows)
		}
		before := len(r.broker.Values())
		r.produce(0, "quiet=3", "bad=4", "busy=2", "new=1")
		r.eventually("outputs after it", func() bool { return len(r.broker.Values()) == before+4 })
		if err := p.stop(); err != nil {
			t.Fatal(err)
		}
		p = r.start("two", keeping)
		r.produce(1, "other=8", "other=9")
		r.eventually("outputs of the next owner", func() bool { return len(r.broker.Values()) == before+6 })
		if err := p.stop(); err != nil {
			t.Fatal(err)
		}
		got := map[string]string{} // the last but one of other, the last of all else
		for _, v := range r.broker.Values() {
			if key, knew, _ := strings.Cut(v, "="); key != "other" || knew != "present" {
				got[key] = knew
			}
		}
		want := map[string]string{
			"quiet": "expired tail of 2", "bad": "lost", "busy": "present", "new": "never seen", "other": "expired tail of 7",
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("what the workload knew (-want +got):\n%s", d)
		}
	})
}

// A5: a store that is away, or an owner that is none any more, costs the sweep a page: it goes on where it was, and nothing else notices.
func TestRetentionRetries(t *testing.T) {
	bubble(t, 1, func(r *rig) {
		t := r.t
		var asked atomic.Int64
		var expired atomic.Int64
		p := r.start("one", func(c *Config, d *Deps) {
			c.Partition.EvictIdle, c.StateRetention = 5*time.Second, 20*time.Second
			d.Workload, d.Tail = historian{}, tailOf
			d.Retention = &flaky{Retention: r.store, asked: &asked}
			d.Observer.Expired = func(n int) { expired.Add(int64(n)) }
		})
		r.produce(0, "k=1")
		r.eventually("the state to expire after failures", func() bool { return expired.Load() == 1 })
		if asked.Load() < 4 || !p.log.has("states past their retention stay for now") {
			t.Errorf("asked %d times", asked.Load())
		}
		if err := p.stop(); err != nil {
			t.Fatal(err)
		}
	})
}

// flaky fails its first three calls.
type flaky struct {
	commit.Retention
	asked *atomic.Int64
}

func (f *flaky) Quiet(ctx context.Context, t *commit.Tenure, after stream.Key, age time.Duration, limit int) ([]commit.Quiet, stream.Key, error) {
	if f.asked.Add(1) <= 3 {
		return nil, "", errors.New("the database is away")
	}
	return f.Retention.Quiet(ctx, t, after, age, limit)
}

// A1: a retention below twice the time that an idle key stays in memory is refused, and so is one without the parts for it.
func TestRetentionLimits(t *testing.T) {
	cfg := DefaultConfig()
	cfg.Group, cfg.Topic, cfg.LedgerTopic, cfg.Instance = "g", "raw", "l", "i"
	cfg.StateRetention = 2*cfg.Partition.EvictIdle - 1
	if err := cfg.Validate(); err == nil || !strings.Contains(err.Error(), "state retention") {
		t.Errorf("a retention of %s: %v", cfg.StateRetention, err)
	}
	cfg.StateRetention++
	if err := cfg.Validate(); err != nil {
		t.Error(err)
	}
	if _, err := New(cfg, Deps{}); err == nil || !strings.Contains(err.Error(), "tail") {
		t.Errorf("without the parts: %v", err)
	}
	cfg.StateRetention = 0
	if err := cfg.Validate(); err != nil {
		t.Error(err)
	}
}
