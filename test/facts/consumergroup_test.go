package facts_test

import (
	"crypto/rand"
	"errors"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// newMember is one of a KIP-848 group.
type newMember struct {
	w        *world
	id       string
	instance *string
	epoch    int32
}

func (w *world) newMember(instance string) *newMember {
	m := &newMember{w: w, id: rand.Text()}
	if instance != "" {
		m.instance = new(instance)
	}
	return m
}

// beat sends a heartbeat: epoch 0 joins, -1 leaves, -2 leaves and keeps the instance's place.
func (m *newMember) beat(epoch int32, instance *string) error {
	req := kmsg.NewPtrConsumerGroupHeartbeatRequest()
	req.Group, req.MemberID, req.MemberEpoch, req.InstanceID = m.w.group, m.id, epoch, instance
	if epoch == 0 {
		req.RebalanceTimeoutMillis, req.SubscribedTopicNames, req.ServerAssignor = 60_000, []string{m.w.topic}, new("uniform")
		req.Topics = []kmsg.ConsumerGroupHeartbeatRequestTopic{}
	}
	for {
		resp, err := req.RequestWith(m.w.ctx(), m.w.client)
		if err == nil {
			err = kerr.ErrorForCode(resp.ErrorCode)
		}
		if errors.Is(err, kerr.CoordinatorNotAvailable) || errors.Is(err, kerr.CoordinatorLoadInProgress) || errors.Is(err, kerr.NotCoordinator) {
			time.Sleep(20 * time.Millisecond) // a broker that has just started
			continue
		}
		if err == nil {
			m.epoch = resp.MemberEpoch
		}
		return err
	}
}

// P4, section 2 (3.2, 3.3): the epochs of a KIP-848 group begin anew when the group was deleted, and a group that changes its protocol while it is
// empty goes on counting.
func TestFactConsumerGroupEpochs(t *testing.T) {
	t.Parallel()
	w := newWorld(t, broker(t))
	first := w.newMember("")
	want(t, "join", first.beat(0, nil), nil)
	start := first.epoch
	if start < 1 {
		t.Errorf("a new group's first member has epoch %d", start)
	}
	second := w.newMember("")
	want(t, "join of another", second.beat(0, nil), nil)
	w.eventually("the second member has a later epoch", func() bool { return second.epoch > start || second.beat(second.epoch, nil) != nil })
	want(t, "leave", second.beat(-1, nil), nil)
	want(t, "leave", first.beat(-1, nil), nil)
	w.eventually("the group is deleted", func() bool {
		deleted, err := w.admin.DeleteGroup(w.ctx(), w.group)
		return err == nil && deleted.Err == nil
	})
	again := w.newMember("")
	want(t, "join after the group was deleted", again.beat(0, nil), nil)
	if again.epoch != start {
		t.Errorf("after the group was deleted its first member has epoch %d, want %d again", again.epoch, start)
	}
	want(t, "leave", again.beat(-1, nil), nil)

	classic := w.member("")
	w.together(classic)
	if classic.generation <= again.epoch {
		t.Errorf("the group became classic with generation %d after epoch %d: want it carried on", classic.generation, again.epoch)
	}
	classic.leave()
}

// E2, section 2 (3.5): a static member of a KIP-848 group that leaves without naming its instance is refused, and its place is taken until the
// session ends: that is what franz-go does up to 1.22.3, and why static members are refused with this protocol.
func TestFactConsumerGroupStaticMember(t *testing.T) {
	t.Parallel()
	w := newWorld(t, broker(t))
	a := w.newMember("inst-1")
	want(t, "join", a.beat(0, a.instance), nil)
	epoch := a.epoch
	want(t, "leaving for a while without the instance's name", a.beat(-2, nil), kerr.InvalidRequest)
	b := w.newMember("inst-1")
	want(t, "the next process of the instance", b.beat(0, b.instance), kerr.UnreleasedInstanceID)
	want(t, "heartbeat of the former", a.beat(epoch, a.instance), nil)
	want(t, "leaving for a while with the instance's name", a.beat(-2, a.instance), nil)
	want(t, "the next process of the instance, then", b.beat(0, b.instance), nil)
	want(t, "leave", b.beat(-1, b.instance), nil)
}
