package publish

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// epochMember is a member of a KIP-848 group that the test moves by raw heartbeats.
type epochMember struct {
	r     *rig
	group string
	id    string
	epoch int32
	owned []int32
}

// beat sends a heartbeat that says what the member owns, and takes what the broker answers. epoch 0 joins, -1 leaves.
func (m *epochMember) beat(epoch int32) error {
	req := kmsg.NewPtrConsumerGroupHeartbeatRequest()
	req.Group, req.MemberID, req.MemberEpoch, req.RebalanceTimeoutMillis = m.group, m.id, epoch, 60_000
	req.SubscribedTopicNames, req.ServerAssignor = []string{m.r.raw}, new("uniform")
	req.Topics = []kmsg.ConsumerGroupHeartbeatRequestTopic{}
	if epoch > 0 && len(m.owned) > 0 {
		t := kmsg.NewConsumerGroupHeartbeatRequestTopic()
		t.TopicID, t.Partitions = m.r.info.Raw.ID, m.owned
		req.Topics = append(req.Topics, t)
	}
	resp, err := req.RequestWith(m.r.ctx(), m.r.admin)
	if err == nil {
		err = kerr.ErrorForCode(resp.ErrorCode)
	}
	if err != nil {
		return err
	}
	m.epoch = resp.MemberEpoch
	if resp.Assignment != nil {
		m.owned = nil
		for _, t := range resp.Assignment.Topics {
			m.owned = append(m.owned, t.Partitions...)
		}
		slices.Sort(m.owned)
	}
	return nil
}

func (m *epochMember) must(t *testing.T, epoch int32) {
	t.Helper()
	if err := m.beat(epoch); err != nil {
		t.Fatal(err)
	}
}

// commits the offsets of partitions in a transaction under the member id and an epoch, and gives the broker's answer.
func (m *epochMember) commits(t *testing.T, p *Publisher, n *int, epoch int32, partitions ...int32) error {
	t.Helper()
	*n++
	l := m.r.hang(LaneID(m.group, m.r.raw, "epochs", *n), 0, false)
	var shares []share
	for _, part := range partitions {
		shares = append(shares, share{tenure: m.r.tenure(part, 1)})
	}
	err := p.commitOffsets(m.r.ctx(), l, shares, m.id, epoch)
	l.drop()
	if err := p.initID(m.r.ctx(), l.id); err != nil {
		t.Fatal(err)
	}
	return err
}

// Answer 7, H2, P3, section 2 (3.2): what a member epoch proves, pinned on the real broker (kfake takes the newest epoch only). An older epoch
// is good while every partition of the request has been the member's since; with one lost partition the whole request is stale; the newest
// epoch commits even a partition that is another's; joining again in place gives the same epoch.
func TestFactMemberEpochs(t *testing.T) {
	t.Parallel()
	r := newRig(t, realBrokers(t), nil)
	group := r.group + ".epochs"
	publisher, err := New(Config{
		Client: ClientConfig{Brokers: r.brokers}, Group: group, Raw: r.raw, Topics: r.topics, Instance: "epochs",
	}, r.who, r.owners)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(publisher.Close)
	lanes := 0
	a := &epochMember{r: r, group: group, id: "a-" + strconv.Itoa(int(random(1)[0]))}
	b := &epochMember{r: r, group: group, id: "b-" + strconv.Itoa(int(random(1)[0]))}
	a.must(t, 0)
	eventually(t, func() bool { a.must(t, a.epoch); return len(a.owned) == rigPartitions })
	a.must(t, a.epoch) // acknowledged
	first := a.epoch
	if err := a.beat(0); err != nil || a.epoch != first {
		t.Errorf("joined again in place: epoch %d, %v, want %d again", a.epoch, err, first)
	}
	a.owned = []int32{0, 1, 2, 3}
	a.must(t, a.epoch)

	// B joins; A gives two partitions up, B gets them, and both end on the same epoch.
	b.must(t, 0)
	eventually(t, func() bool { a.must(t, a.epoch); return len(a.owned) < rigPartitions })
	kept := slices.Clone(a.owned)
	lost := int32(slices.IndexFunc([]int32{0, 1, 2, 3}, func(n int32) bool { return !slices.Contains(kept, n) }))
	eventually(t, func() bool {
		a.must(t, a.epoch)
		b.must(t, b.epoch)
		return len(b.owned) == rigPartitions/2 && a.epoch != first
	})
	a.must(t, a.epoch)
	b.must(t, b.epoch)
	if a.epoch != b.epoch {
		t.Errorf("the former owner is at epoch %d, the new one at %d: want one number", a.epoch, b.epoch)
	}
	for _, c := range []struct {
		name       string
		epoch      int32
		partitions []int32
		want       *kerr.Error
	}{
		{"the newest epoch, kept partitions", a.epoch, kept, nil},
		{"an older epoch, kept partitions", first, kept, nil},
		{"an older epoch, one partition lost", first, append(slices.Clone(kept), lost), kerr.StaleMemberEpoch},
		{"the newest epoch, a partition of another", a.epoch, []int32{lost}, nil},
		{"an epoch that was never given", a.epoch + 1, kept, kerr.StaleMemberEpoch},
	} {
		err := a.commits(t, publisher, &lanes, c.epoch, c.partitions...)
		if c.want == nil && err != nil || c.want != nil && !errors.Is(err, c.want) {
			t.Errorf("%s: got %v, want %v", c.name, err, c.want)
		}
		if refused := (*refusedError)(nil); c.want != nil && !errors.As(err, &refused) {
			t.Errorf("%s: %v is not taken for a refused generation", c.name, err)
		}
	}
	// An OffsetFetch takes the newest epoch only: that is the proof of an acquisition.
	for epoch, want := range map[int32]*kerr.Error{a.epoch: nil, first: kerr.StaleMemberEpoch, a.epoch + 1: kerr.StaleMemberEpoch} {
		if err := a.proves(r.ctx(), r.admin, epoch); want == nil && err != nil || want != nil && !errors.Is(err, want) {
			t.Errorf("OffsetFetch at epoch %d (newest %d): got %v, want %v", epoch, a.epoch, err, want)
		}
	}
	for _, m := range []*epochMember{a, b} {
		m.must(t, -1)
	}
}

func (m *epochMember) proves(ctx context.Context, client *kgo.Client, epoch int32) error {
	req := kmsg.NewPtrOffsetFetchRequest()
	g := kmsg.NewOffsetFetchRequestGroup()
	g.Group, g.MemberID, g.MemberEpoch, g.Topics = m.group, &m.id, epoch, []kmsg.OffsetFetchRequestGroupTopic{}
	req.Groups = append(req.Groups, g)
	resp, err := req.RequestWith(ctx, client)
	if err != nil {
		return err
	}
	return kerr.ErrorForCode(resp.Groups[0].ErrorCode)
}
