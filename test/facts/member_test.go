package facts_test

import (
	"context"
	"crypto/rand"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// broker names the broker that the tests share.
func broker(t *testing.T) []string {
	t.Helper()
	b := os.Getenv("MILEPOST_TEST_BROKERS")
	if b == "" {
		t.Skip("MILEPOST_TEST_BROKERS is not set: make test starts a real broker (it needs Java 17 and Maven), or name one that runs, host:port")
	}
	return strings.Split(b, ",")
}

// world is a broker with a topic and a group that no other test uses.
type world struct {
	t            *testing.T
	brokers      []string
	topic, group string
	client       *kgo.Client
	admin        *kadm.Client
	session      int32 // milliseconds; no member here heartbeats by itself
}

const partitions = 4

func newWorld(t *testing.T, brokers []string) *world {
	t.Helper()
	name := "facts-" + strings.ToLower(rand.Text()[:8])
	w := &world{t: t, brokers: brokers, topic: name + ".raw", group: name, session: 60_000}
	w.client = w.newClient()
	w.admin = kadm.NewClient(w.client)
	if _, err := w.admin.CreateTopic(w.ctx(), partitions, 1, nil, w.topic); err != nil {
		t.Fatal(err)
	}
	w.eventually("the topic has leaders", func() bool {
		ends, err := w.admin.ListEndOffsets(w.ctx(), w.topic)
		return err == nil && ends.Error() == nil && len(ends[w.topic]) == partitions
	})
	return w
}

func (w *world) newClient(opts ...kgo.Opt) *kgo.Client {
	w.t.Helper()
	c, err := kgo.NewClient(append([]kgo.Opt{kgo.SeedBrokers(w.brokers...), kgo.AlwaysRetryEOF()}, opts...)...)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(c.Close)
	return c
}

func (w *world) ctx() context.Context {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(w.t.Context()), 3*time.Minute)
	w.t.Cleanup(cancel)
	return ctx
}

func (w *world) eventually(what string, cond func() bool) {
	w.t.Helper()
	deadline := time.After(2 * time.Minute)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !cond() {
		select {
		case <-deadline:
			w.t.Fatalf("not within two minutes: %s", what)
		case <-tick.C:
		}
	}
}

func (w *world) state() string {
	groups, err := w.admin.DescribeGroups(w.ctx(), w.group)
	if err != nil {
		w.t.Fatal(err)
	}
	return groups[w.group].State
}

// member is one of a classic group that the test moves request by request.
type member struct {
	w          *world
	client     *kgo.Client
	id         string
	instance   *string
	generation int32
	leader     bool
	others     []string // the leader's: every member
}

func (w *world) member(instance string) *member {
	m := &member{w: w, client: w.newClient()}
	if instance != "" {
		m.instance = new(instance)
	}
	return m
}

// join sends a JoinGroup and takes the answer, which comes when the group's members have all joined.
func (m *member) join() error {
	for {
		req := kmsg.NewPtrJoinGroupRequest()
		req.Group, req.MemberID, req.InstanceID, req.ProtocolType = m.w.group, m.id, m.instance, "consumer"
		req.SessionTimeoutMillis, req.RebalanceTimeoutMillis = m.w.session, 60_000
		meta := kmsg.NewConsumerMemberMetadata()
		meta.Version, meta.Topics = 1, []string{m.w.topic}
		p := kmsg.NewJoinGroupRequestProtocol()
		p.Name, p.Metadata = "range", meta.AppendTo(nil)
		req.Protocols = append(req.Protocols, p)
		resp, err := req.RequestWith(m.w.ctx(), m.client)
		if err == nil {
			err = kerr.ErrorForCode(resp.ErrorCode)
		}
		if errors.Is(err, kerr.MemberIDRequired) {
			m.id = resp.MemberID
			continue
		}
		if err != nil {
			return err
		}
		m.id, m.generation, m.leader, m.others = resp.MemberID, resp.Generation, resp.LeaderID == resp.MemberID, nil
		for _, o := range resp.Members {
			m.others = append(m.others, o.MemberID)
		}
		return nil
	}
}

// sync ends the rebalance; the leader's has an assignment for everybody.
func (m *member) sync() error {
	req := kmsg.NewPtrSyncGroupRequest()
	req.Group, req.MemberID, req.InstanceID, req.Generation = m.w.group, m.id, m.instance, m.generation
	req.ProtocolType, req.Protocol = new("consumer"), new("range")
	for _, id := range m.others {
		a := kmsg.NewSyncGroupRequestGroupAssignment()
		a.MemberID, a.MemberAssignment = id, (&kmsg.ConsumerMemberAssignment{}).AppendTo(nil)
		req.GroupAssignment = append(req.GroupAssignment, a)
	}
	resp, err := req.RequestWith(m.w.ctx(), m.client)
	if err != nil {
		return err
	}
	return kerr.ErrorForCode(resp.ErrorCode)
}

func (m *member) beat(generation int32) error {
	req := kmsg.NewPtrHeartbeatRequest()
	req.Group, req.MemberID, req.InstanceID, req.Generation = m.w.group, m.id, m.instance, generation
	resp, err := req.RequestWith(m.w.ctx(), m.client)
	if err != nil {
		return err
	}
	return kerr.ErrorForCode(resp.ErrorCode)
}

func (m *member) leave() {
	m.w.t.Helper()
	req := kmsg.NewPtrLeaveGroupRequest()
	req.Group = m.w.group
	l := kmsg.NewLeaveGroupRequestMember()
	l.MemberID, l.InstanceID = m.id, m.instance
	req.Members = append(req.Members, l)
	if _, err := req.RequestWith(m.w.ctx(), m.client); err != nil {
		m.w.t.Fatal(err)
	}
}

// commit is a plain offset commit of a partition.
func (m *member) commit(generation, partition int32, at int64) error {
	req := kmsg.NewPtrOffsetCommitRequest()
	req.Group, req.MemberID, req.InstanceID, req.Generation = m.w.group, m.id, m.instance, generation
	t := kmsg.NewOffsetCommitRequestTopic()
	t.Topic = m.w.topic
	t.TopicID = m.w.topicID()
	p := kmsg.NewOffsetCommitRequestTopicPartition()
	p.Partition, p.Offset = partition, at
	t.Partitions = append(t.Partitions, p)
	req.Topics = append(req.Topics, t)
	resp, err := req.RequestWith(m.w.ctx(), m.client)
	if err != nil {
		return err
	}
	return kerr.ErrorForCode(resp.Topics[0].Partitions[0].ErrorCode)
}

func (w *world) topicID() [16]byte {
	topics, err := w.admin.ListTopics(w.ctx(), w.topic)
	if err != nil {
		w.t.Fatal(err)
	}
	return topics[w.topic].ID
}

// together joins and syncs members as one rebalance; those that are in the group already hear of it by themselves.
func (w *world) together(members ...*member) {
	w.t.Helper()
	w.all(members, (*member).join)
	w.all(members, (*member).sync)
}

// all does one step for all members at once, for each waits for the others.
func (w *world) all(members []*member, step func(*member) error) {
	w.t.Helper()
	errs := make(chan error, len(members)) // one each
	for _, m := range members {
		go func() { errs <- step(m) }()
	}
	for range members {
		if err := <-errs; err != nil {
			w.t.Fatal(err)
		}
	}
}

func want(t *testing.T, what string, got error, want *kerr.Error) {
	t.Helper()
	if want == nil && got != nil || want != nil && !errors.Is(got, want) {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}
