package consumer

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// P18: a coordinator that takes members and assigns nothing: a member that sees that nobody has a partition leaves, joins anew and works.
func TestIdleGroupIsJoinedAnew(t *testing.T) {
	bubbleWith(t, ConsumerGroup, 2, func(r *rig) {
		t := r.t
		var idle atomic.Bool
		idle.Store(true)
		r.cluster.ControlKey(int16(kmsg.ConsumerGroupHeartbeat), func(request kmsg.Request) (kmsg.Response, error, bool) {
			r.cluster.KeepControl()
			if !idle.Load() {
				return nil, nil, false
			}
			req := request.(*kmsg.ConsumerGroupHeartbeatRequest)
			resp := req.ResponseKind().(*kmsg.ConsumerGroupHeartbeatResponse)
			resp.MemberID, resp.MemberEpoch, resp.HeartbeatIntervalMillis = &req.MemberID, 1, 1000
			if req.MemberEpoch < 0 { // it leaves: what comes after it is another member
				idle.Store(false)
				resp.MemberEpoch = -1
			}
			return resp, nil, true
		})
		began := time.Now()
		p := r.start("one", func(c *Config, _ *Deps) { c.StuckAfter = 30 * time.Second })
		r.eventually("running", p.running(2))
		if took := time.Since(began); took < 30*time.Second || took > 90*time.Second {
			t.Errorf("joined anew after %s, want one to three times 30 s", took)
		}
		r.produce(0, "a=0")
		r.eventually("output", func() bool { return len(r.values("a")) == 1 })
		if err := p.stop(); err != nil {
			t.Error(err)
		}
	})
}

// P18: a member that has nothing because others have everything stays where it is, in either protocol.
func TestSpareMemberStays(t *testing.T) {
	onProtocols(t, 1, func(r *rig) {
		t := r.t
		p1 := r.start("one")
		r.eventually("running", p1.running(1))
		p2 := r.start("two", func(c *Config, _ *Deps) { c.StuckAfter = 30 * time.Second })
		member := ""
		r.eventually("a member", func() bool {
			member, _ = p2.deps.Membership.Generation()
			return member != ""
		})
		time.Sleep(5 * time.Minute) // of virtual time
		if now, _ := p2.deps.Membership.Generation(); now != member {
			t.Errorf("member %s has become %s", member, now)
		}
		for _, p := range []*process{p1, p2} {
			if err := p.stop(); err != nil {
				t.Error(err)
			}
		}
	})
}
