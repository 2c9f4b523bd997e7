package consumer

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"

	"milepost/internal/commit"
	"milepost/internal/stream"
)

// P4, answer 7: the group knows our members as KIP-848's: the broker divided the partitions.
func TestConsumerProtocolIsUsed(t *testing.T) {
	bubbleWith(t, ConsumerGroup, 2, func(r *rig) {
		t := r.t
		p := r.start("one")
		r.eventually("running", p.running(2))
		groups, err := r.admin.DescribeConsumerGroups(t.Context(), groupName)
		if err != nil || len(groups[groupName].Members) != 1 {
			t.Fatalf("described as %+v, %v, want a consumer group of one member", groups, err)
		}
		member, epoch := p.deps.Membership.Generation()
		if got := groups[groupName].Members[0]; got.MemberID != member || got.MemberEpoch != epoch {
			t.Errorf("member %s at epoch %d, the group says %s at %d", member, epoch, got.MemberID, got.MemberEpoch)
		}
		if err := p.stop(); err != nil {
			t.Error(err)
		}
	})
}

// refuseFetch answers the proof's OffsetFetch (it names no topics) with an error, so many times.
func (r *rig) refuseFetch(refusal *kerr.Error, times int) (hits func() int) {
	left, n := times, 0
	r.cluster.ControlKey(int16(kmsg.OffsetFetch), func(req kmsg.Request) (kmsg.Response, error, bool) {
		r.cluster.KeepControl()
		of := req.(*kmsg.OffsetFetchRequest)
		if left == 0 || len(of.Groups) != 1 || of.Groups[0].MemberID == nil || len(of.Groups[0].Topics) > 0 {
			return nil, nil, false
		}
		left--
		n++
		resp := req.ResponseKind().(*kmsg.OffsetFetchResponse)
		g := kmsg.NewOffsetFetchResponseGroup()
		g.Group, g.ErrorCode = groupName, refusal.Code
		resp.Groups = append(resp.Groups, g)
		return resp, nil, true
	})
	return func() int { return n }
}

// Acquisition, step 3: when the group refuses the member epoch nothing is swapped, and it is tried again.
func TestEpochProofRefused(t *testing.T) {
	for _, refusal := range []*kerr.Error{kerr.UnknownMemberID, kerr.StaleMemberEpoch, kerr.FencedMemberEpoch} {
		t.Run(refusal.Message, func(t *testing.T) {
			bubbleWith(t, ConsumerGroup, 1, func(r *rig) {
				t := r.t
				hits := r.refuseFetch(refusal, 3)
				p := r.start("one")
				r.eventually("the proof was refused", func() bool { return p.log.has("the group refuses member") })
				r.produce(0, "a=0")
				r.eventually("outputs", func() bool { return len(r.values("a")) == 1 })
				if hits() != 3 {
					t.Errorf("%d proofs were refused, want 3", hits())
				}
				if got, want := r.epoch(0), stream.Epoch(1); got != want {
					t.Errorf("epoch = %d, want %d: a refused proof swaps nothing", got, want)
				}
				if err := p.stop(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// The broker's own judgement of a proof: only the member's current epoch passes.
func TestEpochProof(t *testing.T) {
	bubbleWith(t, ConsumerGroup, 1, func(r *rig) {
		t := r.t
		p := r.start("one")
		r.eventually("running", p.running(1))
		member, epoch := p.deps.Membership.Generation()
		p.mu.Lock()
		s := p.session
		p.mu.Unlock()
		for _, c := range []struct {
			name   string
			member string
			epoch  int32
			want   error
		}{
			{"current", member, epoch, nil},
			{"older", member, epoch - 1, kerr.StaleMemberEpoch},
			{"never given", member, epoch + 1, kerr.StaleMemberEpoch},
			{"another member", "nobody", epoch, kerr.UnknownMemberID},
		} {
			err := s.prove(t.Context(), c.member, c.epoch)
			if (err == nil) != (c.want == nil) || c.want != nil && !strings.Contains(err.Error(), c.want.Error()) {
				t.Errorf("%s: got %v, want %v", c.name, err, c.want)
			}
		}
		// An acquisition that captured an epoch which has moved since captures it anew, for the same member only.
		stale := &MemberError{MemberID: member, Generation: epoch - 1, Err: kerr.StaleMemberEpoch}
		if next, ok := s.advanced(stale, member, epoch-1); !ok || next != epoch {
			t.Errorf("advanced() = %d, %t, want %d", next, ok, epoch)
		}
		for name, c := range map[string]struct {
			err    error
			member string
			epoch  int32
		}{
			"not moved": {stale, member, epoch}, "another member": {stale, "nobody", epoch - 1},
			"unknown member": {&MemberError{Err: kerr.UnknownMemberID}, member, epoch - 1},
		} {
			if next, ok := s.advanced(c.err, c.member, c.epoch); ok {
				t.Errorf("%s: advanced() = %d, want none", name, next)
			}
		}
		facts, err := s.readFacts(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if tenures, err := s.swapAll(t.Context(), []stream.Partition{part(0)}, member, epoch-1, facts); err != nil || len(tenures) != 1 {
			t.Errorf("swapAll() under an epoch that has moved = %v, %v, want one tenure", tenures, err)
		}
		if _, err := s.swapAll(t.Context(), []stream.Partition{part(0)}, "nobody", epoch-1, facts); err == nil {
			t.Error("swapAll() of a member that does not exist passed")
		}
		r.eventually("it acquired again", func() bool { return p.running(1)() && r.epoch(0) > 2 })
		if err := p.stop(); err != nil {
			t.Error(err)
		}
	})
}

// H2: fenced and joined again at epoch 0 the member gets the same id, the same epoch and the same partitions. The old tenures are over all the
// same: new ones begin, only after the transaction that was under way is settled, and nothing is published twice.
func TestSameEpochRejoin(t *testing.T) {
	bubbleWith(t, ConsumerGroup, 1, func(r *rig) {
		t := r.t
		gate := make(chan struct{})
		held := make(chan struct{}, 1)
		r.broker.Gate = func(context.Context, int, []commit.Commit) error {
			select {
			case held <- struct{}{}: // the first transaction: past its last check, not yet committed
				<-gate
			default:
			}
			return nil
		}
		var ends endings
		p := r.start("one", func(_ *Config, d *Deps) { ends.note(d) })
		r.eventually("running", p.running(1))
		member, epoch := p.deps.Membership.Generation()
		r.produce(0, "a=0")
		r.eventually("a transaction is under way", func() bool { return len(held) == 1 })
		r.cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.ConsumerGroupHeartbeat}, Group: groupName, Err: kerr.FencedMemberEpoch, Count: 1})
		r.eventually("the tenure has ended", func() bool { _, _, ok := ends.first(); return ok })
		time.Sleep(3 * time.Second)
		if p.running(1)() {
			t.Error("a new tenure runs while the old one's transaction is not settled")
		}
		close(gate)
		r.produce(0, "a=1")
		r.eventually("outputs", func() bool { return len(r.values("a")) >= 2 })
		r.exact("a", 2)
		if now, e := p.deps.Membership.Generation(); now != member || e != epoch {
			t.Errorf("member %s at %d joined again as %s at %d: this test is about the same member and epoch", member, epoch, now, e)
		}
		if got := r.epoch(0); got < 2 {
			t.Errorf("ownership epoch = %d, want a new one", got)
		}
		if err := p.stop(); err != nil {
			t.Error(err)
		}
	})
}

// H2: a heartbeat at epoch 0 under a live member's id, from elsewhere, joins that member again in place. Whatever the broker and franz-go make
// of it, no output is lost or repeated.
func TestForeignHeartbeatAtEpochZero(t *testing.T) {
	bubbleWith(t, ConsumerGroup, 2, func(r *rig) {
		t := r.t
		p := r.start("one")
		r.eventually("running", p.running(2))
		n := 0
		for range 10 {
			member, _ := p.deps.Membership.Generation()
			join := kmsg.NewPtrConsumerGroupHeartbeatRequest()
			join.Group, join.MemberID, join.MemberEpoch, join.RebalanceTimeoutMillis = groupName, member, 0, 60_000
			join.SubscribedTopicNames, join.Topics = []string{rawTopic}, []kmsg.ConsumerGroupHeartbeatRequestTopic{}
			join.ServerAssignor = new("uniform")
			resp, err := join.RequestWith(t.Context(), r.client)
			if err == nil {
				err = kerr.ErrorForCode(resp.ErrorCode)
			}
			if err != nil {
				t.Fatal(err)
			}
			r.produce(0, numbered("a", n, 5)...)
			n += 5
			time.Sleep(3 * time.Second)
		}
		r.eventually("outputs", func() bool { return len(r.values("a")) >= n })
		r.exact("a", n)
		if err := p.stop(); err != nil {
			t.Error(err)
		}
	})
}

// P4: the member epoch starts again with the group, and may end on a number that was used before: ownership epochs do not.
func TestGroupDeletedUnderConsumerProtocol(t *testing.T) {
	bubbleWith(t, ConsumerGroup, 1, func(r *rig) {
		t := r.t
		for round := range 3 {
			p := r.start("one")
			r.eventually("running", p.running(1))
			r.produce(0, numbered("a", round*5, 5)...)
			r.eventually("outputs", func() bool { return len(r.values("a")) == (round+1)*5 })
			if err := p.stop(); err != nil {
				t.Error(err)
			}
			if _, err := r.admin.DeleteGroups(t.Context(), groupName); err != nil {
				t.Fatal(err)
			}
			if got, want := r.epoch(0), stream.Epoch(round+1); got != want {
				t.Errorf("ownership epoch = %d, want %d", got, want)
			}
		}
		r.exact("a", 15)
	})
}

// P17: static membership does not go with KIP-848, and the refusal says why.
func TestStaticMembershipRefused(t *testing.T) {
	cfg := DefaultConfig()
	cfg.Group, cfg.Topic, cfg.LedgerTopic, cfg.Instance = "g", "t", "l", "i"
	cfg.Client = []kgo.Opt{kgo.InstanceID("static")}
	if err := cfg.Validate(); err != nil {
		t.Errorf("with protocol classic: %v", err)
	}
	cfg.Protocol = ConsumerGroup
	if err := cfg.Validate(); err == nil || !strings.Contains(err.Error(), "static membership") {
		t.Errorf("got %v, want static membership refused", err)
	}
	cfg.Client = nil
	if err := cfg.Validate(); err != nil {
		t.Errorf("with a dynamic member: %v", err)
	}
}

// Design 3: brokers that cannot do KIP-848 are told apart at start, where franz-go would fall back without a word.
func TestCheckProtocol(t *testing.T) {
	for _, c := range []struct {
		name string
		opts []kfake.Opt
		want string
	}{
		{"able", nil, ""},
		{"too old", []kfake.Opt{kfake.MaxVersions(kversion.V3_8_0())}, "from Kafka 4.3"},
	} {
		t.Run(c.name, func(t *testing.T) {
			cluster, err := kfake.NewCluster(append(slices.Clip(c.opts), kfake.NumBrokers(1))...)
			if err != nil {
				t.Fatal(err)
			}
			defer cluster.Close()
			client, err := kgo.NewClient(kgo.SeedBrokers(cluster.ListenAddrs()...))
			if err != nil {
				t.Fatal(err)
			}
			defer client.Close()
			if err := CheckProtocol(t.Context(), client, Classic); err != nil {
				t.Errorf("classic: %v", err)
			}
			err = CheckProtocol(t.Context(), client, ConsumerGroup)
			if (err == nil) != (c.want == "") || c.want != "" && (!strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "--protocol classic")) {
				t.Errorf("got %v, want %q with the remedy", err, c.want)
			}
		})
	}
}

// H9: a row that was owned in another publish mode is refused with the remedy, and nothing of it is touched.
func TestPublishModeRefused(t *testing.T) {
	onProtocols(t, 1, func(r *rig) {
		t := r.t
		p := r.start("one")
		r.produce(0, "a=0")
		r.eventually("outputs", func() bool { return len(r.values("a")) == 1 })
		other := r.start("other", func(c *Config, _ *Deps) { c.PublishMode, c.Lanes = commit.Idempotent, 0 })
		if err := p.stop(); err != nil {
			t.Error(err)
		}
		err := <-other.done
		if err == nil || !strings.Contains(err.Error(), "publish mode is idempotent") || !strings.Contains(err.Error(), "group is empty") {
			t.Errorf("got %v, want the publish mode refused with its remedy", err)
		}
		if got, want := r.epoch(0), stream.Epoch(1); got != want {
			t.Errorf("epoch = %d, want %d", got, want)
		}
	})
}

// H13: without transactions the group's offset of a busy partition follows by hints.
func TestHintsOfBusyPartitions(t *testing.T) {
	onProtocols(t, 1, func(r *rig) {
		t := r.t
		p := r.start("one", func(c *Config, _ *Deps) { c.PublishMode, c.Lanes = commit.Idempotent, 0 })
		r.eventually("running", p.running(1))
		seen := int64(0)
		for n := range 30 {
			r.produce(0, numbered("a", n, 1)...)
			time.Sleep(time.Second)
			if at := r.groupOffset(0); at > r.frontier(0) {
				t.Errorf("the group's offset %d leads the frontier %d", at, r.frontier(0))
			} else if at > 0 && n < 29 {
				seen = at
			}
		}
		if seen < 20 {
			t.Errorf("while the partition was busy the group's offset was last seen at %d, want it to follow within the hint interval", seen)
		}
		if err := p.stop(); err != nil {
			t.Error(err)
		}
	})
}
