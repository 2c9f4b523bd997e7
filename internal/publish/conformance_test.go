package publish

import (
	"bytes"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"milepost/internal/commit"
	"milepost/internal/commit/committest"
	"milepost/internal/stream"
)

// A11, P25, H13: both modes pass the suite that the memory broker passes, on kfake and on a real broker.
func TestConformance(t *testing.T) {
	t.Parallel()
	for _, mode := range []commit.PublishMode{commit.Transactional, commit.Idempotent} {
		for name, brokers := range map[string]func(*testing.T) []string{
			"kfake": func(t *testing.T) []string { t.Helper(); return fakeBroker(t) },
			"kafka": func(t *testing.T) []string { t.Helper(); return realBrokers(t) },
		} {
			t.Run(string(mode)+"/"+name, func(t *testing.T) {
				t.Parallel()
				fresh := func(t *testing.T) *committest.Publishing {
					t.Helper()
					return publishing(t, brokers(t), mode)
				}
				committest.RunPublisher(t, fresh)
				committest.RunUnanswered(t, fresh)
			})
		}
	}
}

func publishing(t *testing.T, brokers []string, mode commit.PublishMode) *committest.Publishing {
	t.Helper()
	r := newRig(t, brokers, func(c *Config) {
		if c.Mode = mode; mode == commit.Idempotent {
			c.TransactionTimeout = 2 * time.Second // a lost answer is waited for so long
		}
	})
	p := r.publisher("a")
	absent := r.topics.Prefix + ".absent"
	epoch := stream.Epoch(0)
	return &committest.Publishing{
		Publisher: p, Ledger: p.Ledger(), Mode: mode, Topic: r.topics.Matched(), DeadLetters: r.topics.DeadLetter(), Absent: absent,
		TooLarge: 1_200_000,
		Tenure: func(partition int32) *commit.Tenure {
			epoch++
			return r.tenure(partition, epoch)
		},
		Take: r.owners.take,
		Create: func() {
			r.makeTopic(absent, nil)
		},
		Visible:    r.seen,
		Unanswered: r.unanswered,
	}
}

// seen reads a topic; one that does not exist is empty.
func (r *rig) seen(topic string) []committest.Seen {
	r.t.Helper()
	var all []committest.Seen
	for _, rec := range r.records(topic) {
		s := committest.Seen{
			Output:  commit.Output{Topic: rec.Topic, Key: rec.Key, Value: rec.Value},
			Landing: commit.Landing{Topic: rec.Topic, Partition: rec.Partition, Offset: rec.Offset},
		}
		for _, h := range rec.Headers {
			s.Headers = append(s.Headers, stream.Header{Key: h.Key, Value: h.Value})
		}
		all = append(all, s)
	}
	return all
}

// unanswered loses the answers to whatever makes the next batch final, until the publisher gives the client up.
func (r *rig) unanswered(done bool) {
	ledger := r.info.Ledger
	gaveUp, first := false, true
	r.net.mu.Lock()
	defer r.net.mu.Unlock()
	r.net.cutRequest = func(key kmsg.Key, request []byte) cutting {
		final := key == kmsg.EndTxn
		if key == kmsg.InitProducerID {
			gaveUp = true
		}
		if r.tunedIdempotent() {
			final = key == kmsg.Produce && (bytes.Contains(request, ledger.ID[:]) || bytes.Contains(request, []byte(ledger.Name)))
		}
		if gaveUp || !final {
			return pass
		}
		if done && first {
			first = false
			return loseAnswer
		}
		return loseRequest
	}
}

func (r *rig) tunedIdempotent() bool {
	var c Config
	if r.tune != nil {
		r.tune(&c)
	}
	return c.Mode == commit.Idempotent
}
