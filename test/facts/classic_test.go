package facts_test

import (
	"context"
	"errors"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// P4, section 2 (3.1, 3.3): a classic generation is the group's and grows by one with each rebalance and with the last leave; a deleted group
// begins anew at 1, below what was stored of it.
func TestFactGenerations(t *testing.T) {
	t.Parallel()
	w := newWorld(t, broker(t))
	a, b := w.member(""), w.member("")
	w.together(a)
	if a.generation != 1 {
		t.Errorf("a new group's first generation is %d, want 1", a.generation)
	}
	joined := make(chan error, 1)
	go func() { joined <- b.join() }()
	w.eventually("a rebalance", func() bool { return w.state() == "PreparingRebalance" })
	if err := a.join(); err != nil {
		t.Fatal(err)
	}
	if err := <-joined; err != nil {
		t.Fatal(err)
	}
	w.all([]*member{a, b}, (*member).sync)
	if a.generation != 2 || b.generation != 2 {
		t.Errorf("after the second member came: generations %d and %d, want 2", a.generation, b.generation)
	}
	a.leave()
	b.leave()
	w.eventually("the group is empty", func() bool { return w.state() == "Empty" })
	c := w.member("")
	w.together(c)
	if c.generation < 4 {
		t.Errorf("joined again after the group was empty: generation %d, want 4 or more: emptying adds one", c.generation)
	}
	c.leave()
	w.eventually("the group is empty", func() bool { return w.state() == "Empty" })
	if _, err := w.admin.DeleteGroup(w.ctx(), w.group); err != nil {
		t.Fatal(err)
	}
	d := w.member("")
	w.together(d)
	if d.generation != 1 {
		t.Errorf("after the group was deleted: generation %d, want 1 again", d.generation)
	}
	d.leave()
}

// E1, P3, answer 6: what the coordinator checks of a plain commit is member and generation, in each of the group's states, and never whose the
// partition is. While a rebalance is prepared a heartbeat tells the right generation from a wrong one, so it is a proof.
func TestFactChecksByState(t *testing.T) {
	t.Parallel()
	w := newWorld(t, broker(t))
	a, b := w.member(""), w.member("")
	w.together(a)
	want(t, "stable: commit of a partition that nobody gave us", a.commit(1, 2, 7), nil)
	want(t, "stable: commit of another generation", a.commit(2, 2, 8), kerr.IllegalGeneration)
	want(t, "stable: heartbeat", a.beat(1), nil)
	want(t, "stable: heartbeat of another generation", a.beat(2), kerr.IllegalGeneration)
	joined := make(chan error, 1)
	go func() { joined <- b.join() }()
	w.eventually("a rebalance is prepared", func() bool { return w.state() == "PreparingRebalance" })
	want(t, "preparing: heartbeat of the current generation", a.beat(1), kerr.RebalanceInProgress)
	want(t, "preparing: heartbeat of another generation", a.beat(2), kerr.IllegalGeneration)
	want(t, "preparing: commit of the current generation", a.commit(1, 2, 9), nil)
	if err := a.join(); err != nil {
		t.Fatal(err)
	}
	if err := <-joined; err != nil {
		t.Fatal(err)
	}
	w.eventually("the rebalance waits for the leader", func() bool { return w.state() == "CompletingRebalance" })
	want(t, "completing: plain commit", a.commit(2, 2, 10), kerr.RebalanceInProgress)
	w.all([]*member{a, b}, (*member).sync)
	want(t, "stable again: commit of the former generation", a.commit(1, 2, 11), kerr.IllegalGeneration)
	want(t, "stable again: commit of the new one", a.commit(2, 2, 11), nil)
	offsets, err := w.admin.FetchOffsets(w.ctx(), w.group) // by nobody in particular: an OffsetFetch of a classic group is not checked
	if o, ok := offsets.Lookup(w.topic, 2); err != nil || !ok || o.At != 11 {
		t.Errorf("the group's offset is %v, %v, want 11", o.At, err)
	}
	a.leave()
	b.leave()
}

// E2, P5, section 2 (3.5): a static member that starts again gets another member id and the same generation, without a rebalance: a generation
// is no fence. The former process hears of it with its next request to the group, not before.
func TestFactStaticMember(t *testing.T) {
	t.Parallel()
	w := newWorld(t, broker(t))
	a := w.member("inst-1")
	w.together(a)
	again := w.member("inst-1")
	w.together(again)
	if again.generation != a.generation || again.id == a.id {
		t.Errorf("restarted: generation %d, then %d; member %s, then %s: want the same generation and another member", a.generation, again.generation, a.id, again.id)
	}
	want(t, "heartbeat of the former process", a.beat(a.generation), kerr.FencedInstanceID)
	want(t, "heartbeat of the new one", again.beat(again.generation), nil)
	again.leave()
}

// Section 2 (3.1, kgo): a member whose partitions all stay gets a callback with nothing while the generation moves on. A tenure must therefore
// look at the member id and generation itself, and does so in empty callbacks too (G2).
func TestFactRetainedPartitionsGetAnEmptyCallback(t *testing.T) {
	t.Parallel()
	w := newWorld(t, broker(t))
	type call struct {
		partitions int
		generation int32
	}
	calls := make(chan call, 100) // more than there can be rebalances
	w.newClient(append(w.cooperative(), kgo.OnPartitionsAssigned(func(_ context.Context, cl *kgo.Client, got map[string][]int32) {
		_, generation := cl.GroupMetadata()
		calls <- call{len(got[w.topic]), generation}
	}))...)
	var seen []call
	next := func() call {
		c := <-calls
		seen = append(seen, c)
		return c
	}
	got := next()
	for got.partitions == 0 {
		got = next()
	}
	if got.partitions != partitions {
		t.Fatalf("alone in the group: %v, want all partitions", seen)
	}
	second := w.newClient(w.cooperative()...)
	for c := next(); ; c = next() {
		if c.partitions > 0 {
			t.Fatalf("partitions came to one that had them all: %v", seen)
		}
		if c.generation > got.generation {
			break
		}
	}
	second.Close()
}

func (w *world) cooperative() []kgo.Opt {
	return []kgo.Opt{
		kgo.ConsumerGroup(w.group), kgo.ConsumeTopics(w.topic), kgo.DisableAutoCommit(), kgo.Balancers(kgo.CooperativeStickyBalancer()),
		kgo.OnPartitionsRevoked(func(context.Context, *kgo.Client, map[string][]int32) {}),
		kgo.OnPartitionsLost(func(context.Context, *kgo.Client, map[string][]int32) {}),
	}
}

// Section 2 (3.4): an offset that an open transaction commits makes a fetch that asks for stable offsets fail, and one that does not ask gets the
// former offset: kadm asks only when its context says so (H15e).
func TestFactUnstableOffsets(t *testing.T) {
	t.Parallel()
	w := newWorld(t, broker(t))
	a := w.member("")
	w.together(a)
	want(t, "commit", a.commit(1, 0, 5), nil)
	x := w.transaction(w.group+"-x", 60_000)
	x.addOffset(a.id, a.generation, 0, 9)
	if err := w.fetchOffset(true, 0, nil); !errors.Is(err, kerr.UnstableOffsetCommit) {
		t.Errorf("stable fetch beside an open transaction: %v, want %v", err, kerr.UnstableOffsetCommit)
	}
	var at int64
	if err := w.fetchOffset(false, 0, &at); err != nil || at != 5 {
		t.Errorf("plain fetch beside an open transaction: %d, %v, want 5", at, err)
	}
	want(t, "end", x.end(true), nil)
	w.eventually("the offset is stable", func() bool { return w.fetchOffset(true, 0, &at) == nil && at == 9 })
	a.leave()
}

func (w *world) fetchOffset(stable bool, partition int32, at *int64) error {
	req := kmsg.NewPtrOffsetFetchRequest()
	req.RequireStable = stable
	g := kmsg.NewOffsetFetchRequestGroup()
	g.Group = w.group
	t := kmsg.NewOffsetFetchRequestGroupTopic()
	t.Topic, t.TopicID, t.Partitions = w.topic, w.topicID(), []int32{partition}
	g.Topics = append(g.Topics, t)
	req.Groups = append(req.Groups, g)
	resp, err := req.RequestWith(w.ctx(), w.client)
	if err != nil {
		return err
	}
	if err := kerr.ErrorForCode(resp.Groups[0].ErrorCode); err != nil {
		return err
	}
	p := resp.Groups[0].Topics[0].Partitions[0]
	if at != nil {
		*at = p.Offset
	}
	return kerr.ErrorForCode(p.ErrorCode)
}
