package publish

import (
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"milepost/internal/commit"
	"milepost/internal/stream"
)

// with gives the commit other outputs.
func with(c commit.Commit, outputs ...commit.Output) commit.Commit {
	return commit.NewCommit(c.Tenure, c.Key, c.Base, commit.Plan{Next: c.Next, Outputs: outputs})
}

// wantClasses fails unless exactly these commits failed, with these classes.
func wantClasses(tb testing.TB, out commit.Published, want map[int]commit.Class) {
	tb.Helper()
	for i, class := range want {
		if err := out.Failed[i]; err == nil || commit.ClassOf(err) != class {
			tb.Errorf("commit %d: %v, want class %s", i, err, class)
		}
	}
	if len(out.Failed) != len(want) {
		tb.Errorf("failed: %v, want only %v", out.Failed, want)
	}
}

func without(batch []commit.Commit, drop ...int) []commit.Commit {
	var left []commit.Commit
next:
	for i := range batch {
		for _, d := range drop {
			if d == i {
				continue next
			}
		}
		left = append(left, batch[i])
	}
	return left
}

// H15g: a record that no broker takes is permanent for its own commit, the others are published once.
func TestRecordTooLarge(t *testing.T) {
	t.Parallel()
	onBrokers(t, func(r *rig) {
		t := r.t
		p := r.publisher("a")
		t0, t1 := r.tenure(0, 1), r.tenure(1, 1)
		batch := append(r.commits(t0, 0, 4), r.commits(t1, 0, 4)...)
		c := batch[5]
		batch[5] = with(c, r.output(r.topics.Matched(), t1, c.Key, c.Revision, 1_200_000))
		out, err := p.Publish(r.ctx(), 0, batch)
		if err != nil {
			t.Fatal(err)
		}
		wantClasses(t, out, map[int]commit.Class{5: commit.Permanent})
		r.wantOnce(r.topics.Matched(), without(batch, 5))
	})
}

// H15g: where the broker refuses a whole produce request, innocents that shared it are found by halving and published once.
func TestHalving(t *testing.T) {
	t.Parallel()
	onBrokers(t, func(r *rig) {
		t := r.t
		small := r.topics.Prefix + ".small"
		limits := map[string]*string{"max.message.bytes": new("4000")}
		r.makeTopic(small, limits)
		p := r.publisher("a")
		ten := r.tenure(0, 1)
		batch := r.commits(ten, 0, 9)
		for i, c := range batch {
			size := 100
			if i == 6 {
				size = 6000
			}
			o := r.output(small, ten, c.Key, c.Revision, size)
			o.Key = []byte("one partition") // so that all share a request
			batch[i] = with(c, o)
		}
		out, err := p.Publish(r.ctx(), 0, batch)
		if err != nil {
			t.Fatal(err)
		}
		wantClasses(t, out, map[int]commit.Class{6: commit.Permanent})
		r.wantOnce(small, without(batch, 6))
		// All positions' entries are at or above the one that is given, so a floor there misses none.
		entries, _ := r.entries(p, 0, out.Positions[ten.Partition])
		if len(entries) != 8 {
			t.Errorf("%d entries from the position given, want 8", len(entries))
		}
	})
}

// P26: an output topic that does not exist holds back its own commits only, and they go out once it is made.
func TestMissingTopic(t *testing.T) {
	t.Parallel()
	onBrokers(t, func(r *rig) {
		t := r.t
		p := r.publisher("a")
		ten := r.tenure(0, 1)
		batch := r.commits(ten, 0, 5)
		later := r.topics.Prefix + ".later"
		c := batch[2]
		batch[2] = with(c, r.output(later, ten, c.Key, c.Revision, 10))
		out, err := p.Publish(r.ctx(), 0, batch)
		if err != nil {
			t.Fatal(err)
		}
		wantClasses(t, out, map[int]commit.Class{2: commit.Transient})
		if !strings.Contains(out.Failed[2].Error(), later) {
			t.Errorf("%q does not name the topic", out.Failed[2])
		}
		r.wantOnce(r.topics.Matched(), without(batch, 2))
		r.makeTopic(later, nil)
		eventually(t, func() bool {
			out, err := p.Publish(r.ctx(), 0, batch[2:3])
			return err == nil && len(out.Failed) == 0
		})
		r.wantOnce(later, batch[2:3])
	})
}

// P26: a dead letter is published and entered by its offset, in the same way.
func TestDeadLetter(t *testing.T) {
	t.Parallel()
	onBrokers(t, func(r *rig) {
		t := r.t
		p := r.publisher("a")
		ten := r.tenure(2, 1)
		rev := stream.Revision{Generation: 1, Offset: 41}
		dead := commit.NewDeadLetter(ten, "k", rev, r.output(r.topics.DeadLetter(), ten, "k", rev, 10))
		out := r.mustPublish(p, 0, []commit.Commit{dead})
		r.wantOnce(r.topics.DeadLetter(), []commit.Commit{dead})
		entries, _ := r.entries(p, 2, out.Positions[ten.Partition])
		if len(entries) != 1 || !entries[0].DeadLetter || entries[0].Offsets[0] != 41 {
			t.Errorf("entries: %+v", entries)
		}
	})
}

// A commit without outputs (a terminal) is entered in the ledger too.
func TestNoOutputs(t *testing.T) {
	t.Parallel()
	onBrokers(t, func(r *rig) {
		t := r.t
		p := r.publisher("a")
		ten := r.tenure(2, 1)
		r.mustPublish(p, 0, []commit.Commit{with(r.commits(ten, 3, 1)[0])})
		if entries, _ := r.entries(p, 2, 0); len(entries) != 1 || len(entries[0].Landed) != 0 {
			t.Errorf("entries: %+v", entries)
		}
	})
}

// P3: what one partition's offset commit aborts is sent again without it (here the coordinator refuses partition 1 alone).
func TestOnePartitionRefused(t *testing.T) {
	t.Parallel()
	cluster := fakeCluster(t)
	r := newRig(t, cluster.ListenAddrs(), nil)
	cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.TxnOffsetCommit}, Topic: r.raw, Partitions: []int32{1}, Err: kerr.UnknownTopicOrPartition, Count: -1})
	p := r.publisher("a")
	t0, t1 := r.tenure(0, 1), r.tenure(1, 1)
	batch := append(r.commits(t0, 0, 2), r.commits(t1, 0, 2)...)
	out, err := p.Publish(r.ctx(), 0, batch)
	if err != nil {
		t.Fatal(err)
	}
	wantClasses(t, out, map[int]commit.Class{2: commit.Transient, 3: commit.Transient})
	r.wantOnce(r.topics.Matched(), batch[:2])
}

// X2: franz-go initialises a fenced client anew by itself when the log's start has passed its last record, as it does on a
// ledger that the next owner's housekeeping has cut. Such a client commits nothing; the epochs are read again before
// anything goes out.
func TestClientInitialisesItself(t *testing.T) {
	t.Parallel()
	cluster := fakeCluster(t)
	r := newRig(t, cluster.ListenAddrs(), nil)
	p := r.publisher("a")
	ten := r.tenure(0, 1)
	first := r.commits(ten, 0, 1)
	r.mustPublish(p, 0, first)
	asks := r.owners.asks()
	r.owners.take(ten) // a newer owner has the partition
	cluster.ControlKey(int16(kmsg.Produce), func(kreq kmsg.Request) (kmsg.Response, error, bool) {
		req := kreq.(*kmsg.ProduceRequest)
		resp := req.ResponseKind().(*kmsg.ProduceResponse)
		for _, rt := range req.Topics {
			if rt.Topic != r.topics.Ledger() && rt.TopicID != r.info.Ledger.ID {
				return nil, nil, false
			}
			st := kmsg.NewProduceResponseTopic()
			st.Topic, st.TopicID = rt.Topic, rt.TopicID
			for _, rp := range rt.Partitions {
				sp := kmsg.NewProduceResponseTopicPartition()
				sp.Partition, sp.ErrorCode, sp.LogStartOffset = rp.Partition, kerr.InvalidProducerEpoch.Code, 1000
				st.Partitions = append(st.Partitions, sp)
			}
			resp.Topics = append(resp.Topics, st)
		}
		return resp, nil, true
	})
	inits := 0
	r.net.mu.Lock()
	r.net.note = func(k kmsg.Key) {
		if k == kmsg.InitProducerID {
			inits++
		}
	}
	r.net.mu.Unlock()
	out, err := p.Publish(r.ctx(), 0, r.commits(ten, 1, 1))
	if err != nil {
		t.Fatal(err)
	}
	wantClasses(t, out, map[int]commit.Class{0: commit.Fenced})
	if inits < 2 {
		t.Errorf("%d initialisations: the client did not do what this test is about", inits)
	}
	if r.owners.asks() == asks {
		t.Error("the epochs were not read again")
	}
	r.wantOnce(r.topics.Matched(), first)
}
