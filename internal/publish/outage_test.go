package publish

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"milepost/internal/commit"
)

// A broker that goes away in the middle of a transaction is waited out: said once, nothing lost, nothing twice (issue: a broker
// that goes away).
func TestBrokerAway(t *testing.T) {
	t.Parallel()
	onBrokers(t, func(r *rig) {
		t := r.t
		log := &logged{}
		r.tune = func(c *Config) { c.Log, c.Client.Log = slog.New(log), slog.New(slog.DiscardHandler) }
		p := r.publisher("a")
		ten := r.tenure(0, 1)
		first, batch := r.commits(ten, 0, 2), r.commits(ten, 2, 3)
		r.mustPublish(p, 0, first)
		armed := make(chan struct{})
		r.net.mu.Lock()
		r.net.cut = func(k kmsg.Key) cutting {
			if k != kmsg.TxnOffsetCommit {
				return pass
			}
			r.net.down = true
			select {
			case <-armed:
			default:
				close(armed)
			}
			return loseRequest
		}
		r.net.mu.Unlock()
		done := make(chan error, 1)
		go func() {
			out, err := p.Publish(r.ctx(), 0, batch)
			if err == nil && len(out.Failed) > 0 {
				err = errors.New("commits failed")
			}
			done <- err
		}()
		<-armed
		r.net.unplug()
		eventually(t, func() bool { return log.count("publishing waits, nothing is lost") == 1 })
		r.net.mu.Lock()
		r.net.cut = nil
		r.net.mu.Unlock()
		r.net.plug()
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		r.wantOnce(r.topics.Matched(), first, batch)
		if w, b := log.count("publishing waits, nothing is lost"), log.count("publishing goes on"); w != 1 || b != 1 {
			t.Errorf("said %d times that it waits and %d times that it goes on, want once each", w, b)
		}
	})
}

// The database that is away at the reading of the epochs is waited out too; a tenure that ends meanwhile comes back fenced
// at once.
func TestOwnersAway(t *testing.T) {
	t.Parallel()
	onBrokers(t, func(r *rig) {
		t := r.t
		p := r.publisher("a")
		t0, t1 := r.tenure(0, 1), r.tenure(1, 1)
		r.owners.failWith(errors.New("the database is away"))
		batch := append(r.commits(t0, 0, 1), r.commits(t1, 0, 1)...)
		done := make(chan commit.Published, 1)
		go func() {
			out, err := p.Publish(r.ctx(), 0, batch)
			if err != nil {
				t.Error(err)
			}
			done <- out
		}()
		t1.Lose(errors.New("revoked"))
		r.owners.failWith(nil)
		wantClasses(t, <-done, map[int]commit.Class{1: commit.Fenced})
		r.wantOnce(r.topics.Matched(), batch[:1])
	})
}

// A lane that was never reached can be given up: the call ends with its context, and a closed publisher refuses.
func TestEnds(t *testing.T) {
	t.Parallel()
	r := newRig(t, fakeBroker(t), nil)
	p := r.publisher("a")
	batch := r.commits(r.tenure(0, 1), 0, 1)
	r.net.unplug()
	ctx, cancel := context.WithCancel(r.ctx())
	done := make(chan error, 1)
	go func() {
		_, err := p.Publish(ctx, 0, batch)
		done <- err
	}()
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want canceled", err)
	}
	p.Close()
	if _, err := p.Publish(r.ctx(), 0, batch); !errors.Is(err, ErrClosed) {
		t.Errorf("got %v, want closed", err)
	}
}

// The Kafka client's own warnings reach the log once, not once a try.
func TestBridge(t *testing.T) {
	t.Parallel()
	log := &logged{}
	b := &bridge{log: slog.New(log), said: map[string]time.Time{}}
	for range 5 {
		b.Log(kgo.LogLevelWarn, "unable to dial", "err", errCut)
	}
	b.Log(kgo.LogLevelError, "something else")
	if n := log.count("kafka client"); n != 2 {
		t.Errorf("%d lines, want 2", n)
	}
}
