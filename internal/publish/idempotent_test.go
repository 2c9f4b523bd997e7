package publish

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kmsg"

	"milepost/internal/commit"
	"milepost/internal/commit/committest"
	"milepost/internal/stream"
)

// onBrokersIdempotent is onBrokers for publishers of mode idempotent.
func onBrokersIdempotent(t *testing.T, test func(r *rig)) {
	t.Helper()
	tune := func(c *Config) { c.Mode, c.TransactionTimeout = commit.Idempotent, 2*time.Second }
	t.Run("kfake", func(t *testing.T) {
		t.Parallel()
		test(newRig(t, fakeBroker(t), tune))
	})
	t.Run("kafka", func(t *testing.T) {
		t.Parallel()
		test(newRig(t, realBrokers(t), tune))
	})
}

// acquired begins a tenure of partition 0 that the store holds for the instance.
func (r *rig) acquired(s *committest.MemoryStore, instance string) (*commit.Tenure, commit.Start) {
	r.t.Helper()
	p := stream.Partition{Topic: r.raw}
	rows, err := s.Epochs(r.ctx(), r.group, []stream.Partition{p})
	if err != nil {
		r.t.Fatal(err)
	}
	claim := commit.Claim{
		Group: r.group, Partition: p, Expected: rows[0].Epoch, Nonce: stream.Nonce(random(16)), Generation: 1, MemberID: "m",
		Instance: instance, TopicID: r.info.Raw.ID, TopicGeneration: 1, LedgerTopicID: r.info.Ledger.ID, Partitions: rigPartitions,
		PublishMode: commit.Idempotent, First: stream.Frontier{Next: stream.Revision{Generation: 1}, LeaderEpoch: -1},
	}
	if won, err := s.Acquire(r.ctx(), []commit.Claim{claim}); err != nil || !won[0] {
		r.t.Fatalf("acquire: %v %v", won, err)
	}
	member, _ := r.who.Generation()
	t := commit.NewTenure(commit.Ownership{
		Group: r.group, Partition: p, TopicGeneration: 1, Epoch: rows[0].Epoch + 1, Nonce: claim.Nonce, MemberID: member,
	})
	starts, err := s.Start(r.ctx(), []*commit.Tenure{t})
	if err != nil {
		r.t.Fatal(err)
	}
	return t, starts[0]
}

// isLedger reports whether a produce request writes the ledger.
func (r *rig) isLedger(key kmsg.Key, request []byte) bool {
	l := r.info.Ledger
	return key == kmsg.Produce && (bytes.Contains(request, l.ID[:]) || bytes.Contains(request, []byte(l.Name)))
}

// H13, A2: a process that dies between its outputs and their ledger entry leaves prepared commits that the next owner's recovery
// publishes again: the same bytes a second time, entered once, promoted.
func TestIdempotentCrashBeforeLedger(t *testing.T) {
	t.Parallel()
	onBrokersIdempotent(t, func(r *rig) {
		t := r.t
		store := committest.NewMemoryStore()
		first, _ := r.acquired(store, "a")
		batch := r.commits(first, 0, 3)
		if _, err := store.Prepare(r.ctx(), batch); err != nil {
			t.Fatal(err)
		}
		a := r.publisher("a")
		dying, die := context.WithCancel(r.ctx())
		r.net.mu.Lock()
		r.net.cutRequest = func(key kmsg.Key, request []byte) cutting {
			if r.isLedger(key, request) {
				die()
				return loseRequest
			}
			return pass
		}
		r.net.mu.Unlock()
		if out, err := a.Publish(dying, 0, batch); err == nil {
			t.Fatalf("published %+v, want broken off", out)
		}
		if got := len(r.ids(r.topics.Matched())); got != 3 {
			t.Fatalf("%d outputs are visible before the recovery, want 3", got)
		}

		next, start := r.acquired(store, "b")
		b := r.publisherB()
		pipeline := commit.NewPipeline(commit.DefaultPipelineConfig(), store, b)
		running, stop := context.WithCancel(r.ctx())
		ended := make(chan error, 1) // capacity 1: ends once
		go func() { ended <- pipeline.Run(running) }()
		recovery := commit.Recovery{Store: store, Owners: store, Ledger: b.Ledger(), Pipeline: pipeline}
		report, err := recovery.Run(r.ctx(), next, start)
		stop()
		if err := errors.Join(err, <-ended); err != nil {
			t.Fatal(err)
		}
		if report.Published != 3 || report.Promoted != 0 {
			t.Errorf("report %+v, want 3 published", report)
		}
		r.wantRepeats(batch, 2)
		if entries, _ := r.entries(b, 0, 0); len(entries) != 3 {
			t.Errorf("%d entries, want 3", len(entries))
		}
		for key, row := range store.Checkpoints(r.group, next.Partition) {
			if row.Prepared != nil || row.Checkpoint.Revision.IsZero() {
				t.Errorf("%s is not promoted: %+v", key, row)
			}
		}

		// Once in the ledger nothing is published again, by anyone.
		third, start := r.acquired(store, "c")
		if report, err = recovery.Run(r.ctx(), third, start); err != nil || report.Published != 0 {
			t.Errorf("the next recovery: %+v, %v", report, err)
		}
		r.wantRepeats(batch, 2)
	})
}

// wantRepeats fails unless each commit's output is visible so many times, every copy the same bytes.
func (r *rig) wantRepeats(batch []commit.Commit, times int) {
	r.t.Helper()
	for i := range batch {
		n := 0
		for _, seen := range r.seen(batch[i].Outputs[0].Topic) {
			if !bytes.Equal(seen.Key, batch[i].Outputs[0].Key) {
				continue
			}
			n++
			if commit.OutputsDigest([]commit.Output{seen.Output}) != commit.OutputsDigest(batch[i].Outputs) {
				r.t.Errorf("copy %d of %q has other bytes", n, seen.Key)
			}
		}
		if n != times {
			r.t.Errorf("%q is visible %d times, want %d", batch[i].Key, n, times)
		}
	}
}

// H9, H13: what a zombie can do without transactions: a process that is stopped after its last look repeats what it had in hand, byte
// for byte, and learns at its next batch that it has lost the partition.
func TestIdempotentZombieRepeats(t *testing.T) {
	t.Parallel()
	onBrokersIdempotent(t, func(r *rig) {
		t := r.t
		a, b := r.publisher("a"), r.publisherB()
		ten := r.tenure(0, 1)
		r.mustPublish(a, 0, r.commits(ten, 0, 1))
		batch := r.commits(ten, 1, 2)
		var stopped atomic.Bool
		r.net.mu.Lock()
		r.net.cutRequest = func(key kmsg.Key, _ []byte) cutting {
			if key == kmsg.Produce && stopped.CompareAndSwap(false, true) {
				// While it is stopped a new owner publishes what stands prepared, under the old bytes.
				again := r.tenure(0, 2)
				for i := range batch {
					c := batch[i]
					c.Tenure = again
					r.mustPublish(b, 0, []commit.Commit{c})
				}
				r.owners.take(ten)
			}
			return pass
		}
		r.net.mu.Unlock()
		r.mustPublish(a, 0, batch)
		r.wantRepeats(batch, 2)
		a.lanes[0].drop() // any error would have done that
		out, err := a.Publish(r.ctx(), 0, r.commits(ten, 3, 1))
		if err != nil {
			t.Fatal(err)
		}
		wantClasses(t, out, map[int]commit.Class{0: commit.Fenced})
	})
}

// H9, P19: after a change of mode the former owner may have been a transactional one that died: its open transaction is ended by
// the initialisation of its lanes all the same, before anything is published.
func TestIdempotentAfterTransactional(t *testing.T) {
	t.Parallel()
	onBrokersIdempotent(t, func(r *rig) {
		t := r.t
		p := r.publisher("b")
		r.hang(LaneID(r.group, r.raw, "dead", 1), 0, true)
		if err := p.InitFormers(r.ctx(), r.raw, []commit.Former{{Instance: "dead", Lanes: 3}}); err != nil {
			t.Fatal(err)
		}
		batch := r.commits(r.tenure(0, 2), 0, 2)
		out := r.mustPublish(p, 0, batch)
		if entries, _ := r.entries(p, 0, 0); len(entries) != 2 || out.Positions[batch[0].Tenure.Partition] < 1 {
			t.Errorf("entries %+v at %v, want the batch's two behind the aborted record", entries, out.Positions)
		}
		r.wantOnce(r.topics.Matched(), batch)
	})
}

// H9: dead letters are not prepared, so nothing but the publisher's own look stops a zombie's; it looks each time.
func TestIdempotentZombieDeadLetter(t *testing.T) {
	t.Parallel()
	onBrokersIdempotent(t, func(r *rig) {
		t := r.t
		p := r.publisher("a")
		ten := r.tenure(0, 1)
		dead := func(offset int64) commit.Commit {
			rev := stream.Revision{Generation: 1, Offset: offset}
			return commit.NewDeadLetter(ten, "k", rev, r.output(r.topics.DeadLetter(), ten, "k", rev, 10))
		}
		first := []commit.Commit{dead(7)}
		r.mustPublish(p, 0, first)
		r.owners.take(ten)
		out, err := p.Publish(r.ctx(), 0, []commit.Commit{dead(8)})
		if err != nil {
			t.Fatal(err)
		}
		wantClasses(t, out, map[int]commit.Class{0: commit.Fenced})
		r.wantOnce(r.topics.DeadLetter(), first)
	})
}

// H13: the ledger record goes out only after every output of the batch is acknowledged.
func TestIdempotentOrder(t *testing.T) {
	t.Parallel()
	onBrokersIdempotent(t, func(r *rig) {
		t := r.t
		p := r.publisher("a")
		ten := r.tenure(0, 1)
		early := 0
		r.net.mu.Lock()
		r.net.cutRequest = func(key kmsg.Key, request []byte) cutting {
			// The wire is asked before the request is written: what the ledger says must be visible by now.
			if r.isLedger(key, request) && len(r.ids(r.topics.Matched())) < 20 {
				early++
			}
			return pass
		}
		r.net.mu.Unlock()
		r.mustPublish(p, 0, r.commits(ten, 0, 20))
		if early != 0 {
			t.Errorf("%d ledger requests before the outputs were visible", early)
		}
	})
}

// A15: an outage in the middle is waited out; what was acknowledged before it is not sent again, and nothing is lost.
func TestIdempotentOutage(t *testing.T) {
	t.Parallel()
	onBrokersIdempotent(t, func(r *rig) {
		t := r.t
		p := r.publisher("a")
		ten := r.tenure(0, 1)
		var cut atomic.Bool
		r.net.mu.Lock()
		r.net.cutRequest = func(key kmsg.Key, request []byte) cutting {
			if r.isLedger(key, request) && cut.CompareAndSwap(false, true) {
				go func() {
					r.net.unplug()
					time.AfterFunc(3*time.Second, r.net.plug)
				}()
				return loseRequest
			}
			return pass
		}
		r.net.mu.Unlock()
		batch := r.commits(ten, 0, 5)
		out := r.mustPublish(p, 1, batch)
		r.wantOnce(r.topics.Matched(), batch)
		if entries, _ := r.entries(p, 0, out.Positions[ten.Partition]); len(entries) != 5 {
			t.Errorf("%d entries, want 5", len(entries))
		}
	})
}

// An idempotent publisher opens no transaction: a reader behind it never waits for one, and none of its ids is known to the broker.
func TestIdempotentOpensNoTransaction(t *testing.T) {
	t.Parallel()
	onBrokersIdempotent(t, func(r *rig) {
		t := r.t
		p := r.publisher("a")
		if err := p.Check(r.ctx()); err != nil {
			t.Fatal(err)
		}
		seen := map[kmsg.Key]int{}
		r.net.mu.Lock()
		r.net.note = func(k kmsg.Key) { seen[k]++ }
		r.net.mu.Unlock()
		r.mustPublish(p, 0, r.commits(r.tenure(0, 1), 0, 2))
		for _, k := range []kmsg.Key{kmsg.AddPartitionsToTxn, kmsg.EndTxn, kmsg.TxnOffsetCommit} {
			if seen[k] > 0 {
				t.Errorf("%s was sent", k.Name())
			}
		}
		all, err := kadm.NewClient(r.admin).ListTransactions(r.ctx(), nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, id := range all.TransactionalIDs() {
			if strings.HasPrefix(id, r.group) {
				t.Errorf("the broker knows transactional id %s", id)
			}
		}
	})
}
