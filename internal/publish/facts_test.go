package publish

import (
	"errors"
	"flag"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// What the protocol rests on, pinned on whichever broker is there.

// E8: after the initialisation of its id by somebody else, the old producer's records, offset commit and end are all refused,
// and its open transaction is gone for readers.
func TestFactFencedProducer(t *testing.T) {
	t.Parallel()
	onBrokers(t, func(r *rig) {
		t := r.t
		p := r.publisher("b")
		id := LaneID(r.group, r.raw, "old", 0)
		l := r.hang(id, 0, true)
		began := time.Now()
		if err := p.initID(r.ctx(), id); err != nil {
			t.Fatal(err)
		}
		t.Logf("initialised in %s", time.Since(began))
		member, generation := r.who.Generation()
		err := p.commitOffsets(r.ctx(), l, []share{{tenure: r.tenure(1, 1)}}, member, generation)
		if !is(err, kerr.InvalidProducerEpoch, kerr.ProducerFenced) {
			t.Errorf("offset commit of the old producer: %v", err)
		}
		errs := l.send(r.ctx(), []*kgo.Record{{Topic: r.topics.Ledger(), Partition: 0, Value: []byte("late")}})
		if !is(errs[0], kerr.InvalidProducerEpoch, kerr.ProducerFenced) {
			t.Errorf("record of the old producer: %v", errs[0])
		}
		if err := l.end(r.ctx(), 5*time.Second); err == nil {
			t.Error("the old producer's end was answered with success")
		}
		if records := r.records(r.topics.Ledger()); len(records) != 0 {
			t.Errorf("%d records visible", len(records))
		}
	})
}

// H16: an empty member id with generation -1 is accepted without a check while the group is stable; that is why it is never
// sent. A wrong generation and a wrong member are refused.
func TestFactGroupChecks(t *testing.T) {
	t.Parallel()
	onBrokers(t, func(r *rig) {
		t := r.t
		p := r.publisher("a")
		member, generation := r.who.Generation()
		for n, c := range []struct {
			member     string
			generation int32
			want       *kerr.Error
		}{
			{member, generation, nil},
			{member, generation + 1, kerr.IllegalGeneration},
			{member, generation - 1, kerr.IllegalGeneration},
			{"nobody", generation, kerr.UnknownMemberID},
			{"", -1, nil},
		} {
			l := r.hang(LaneID(r.group, r.raw, "facts", n), 0, false)
			err := p.commitOffsets(r.ctx(), l, []share{{tenure: r.tenure(0, 1)}}, c.member, c.generation)
			if c.want == nil && err != nil || c.want != nil && !errors.Is(err, c.want) {
				t.Errorf("member %q, generation %+d: got %v, want %v", c.member, c.generation-generation, err, c.want)
			}
			l.drop()
			if err := p.initID(r.ctx(), l.id); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// P3, E1: the coordinator checks member and generation, not whose partition it is: the committed offset is a hint.
func TestFactForeignPartition(t *testing.T) {
	t.Parallel()
	onBrokers(t, func(r *rig) {
		t := r.t
		other := r.join()
		eventually(t, func() bool {
			groups, err := kadm.NewClient(r.admin).DescribeGroups(r.ctx(), r.group)
			return err == nil && groups[r.group].State == "Stable" && len(groups[r.group].Members) == 2
		})
		p := r.publisher("a")
		var member string
		var generation int32
		l := r.hang(LaneID(r.group, r.raw, "foreign", 0), 0, false)
		eventually(t, func() bool {
			member, generation = other.GroupMetadata()
			return generation > 0
		})
		var shares []share
		for n := range int32(rigPartitions) {
			shares = append(shares, share{tenure: r.tenure(n, 1)})
		}
		eventually(t, func() bool {
			member, generation = other.GroupMetadata()
			return p.commitOffsets(r.ctx(), l, shares, member, generation) == nil
		})
	})
}

// H11: franz-go answers a commit with nil although it aborted, when no record was acknowledged: acknowledgements are
// counted, its answer alone is not believed.
func TestFactCommitOfNothing(t *testing.T) {
	t.Parallel()
	onBrokers(t, func(r *rig) {
		t := r.t
		p := r.publisher("a")
		l := &lane{id: "nothing-" + r.group, opts: p.cfg.laneOptions(ClientOptions(p.cfg.Client))}
		if err := l.prepare(r.ctx()); err != nil {
			t.Fatal(err)
		}
		defer l.drop()
		if err := l.begin(); err != nil {
			t.Fatal(err)
		}
		errs := l.send(r.ctx(), []*kgo.Record{{Topic: r.topics.Matched(), Value: make([]byte, 2_000_000)}})
		if !errors.Is(errs[0], kerr.MessageTooLarge) {
			t.Fatalf("got %v", errs[0])
		}
		if err := l.client.EndTransaction(r.ctx(), kgo.TryCommit); err != nil {
			t.Errorf("got %v: franz-go has changed, the rule may be loosened", err)
		}
	})
}

// transactions is P22's scale: a producer epoch has 15 bits, so 40,000 on two lanes exhaust it on each, as a nightly run does.
var transactions = flag.Int64("transactions", 300, "how many transactions TestManyTransactions makes; nightly: 80000")

// P22: many small transactions on one id go on although each takes a producer epoch; when the epochs are used up the broker gives the lane
// another producer id, and nobody notices.
func TestManyTransactions(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("300 transactions")
	}
	n := *transactions
	onBrokers(t, func(r *rig) {
		t := r.t
		p := r.publisher("a")
		ten := r.tenure(0, 1)
		// A broker that is still loading is asked more than once for the first initialisation of a lane.
		for lane := range int64(2) {
			r.mustPublish(p, int(lane), r.commits(ten, lane, 1))
		}
		inits := 0
		r.net.mu.Lock()
		r.net.note = func(k kmsg.Key) {
			if k == kmsg.InitProducerID {
				inits++
			}
		}
		r.net.mu.Unlock()
		ids := map[int64]bool{}
		slowest := time.Duration(0)
		for i := int64(2); i < n; i++ {
			began := time.Now()
			r.mustPublish(p, int(i%2), r.commits(ten, i, 1))
			slowest = max(slowest, time.Since(began))
			id, _, err := p.lanes[i%2].client.ProducerID(r.ctx())
			if err != nil {
				t.Fatal(err)
			}
			ids[id] = true
		}
		t.Logf("%d transactions, the slowest took %s, %d producer ids, %d initialisations", n, slowest, len(ids), inits)
		if inits != 0 {
			t.Errorf("%d initialisations after the start", inits)
		}
		if slowest > 10*time.Second {
			t.Errorf("a transaction took %s", slowest)
		}
		seen := map[string]int{}
		for _, id := range r.ids(r.topics.Matched()) {
			seen[id]++
		}
		if int64(len(seen)) != n {
			t.Errorf("%d outputs visible, want %d", len(seen), n)
		}
		for id, times := range seen {
			if times != 1 {
				t.Errorf("%s is visible %d times", id, times)
			}
		}
	})
}
