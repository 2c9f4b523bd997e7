package publish

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"go.uber.org/goleak"

	"milepost/internal/commit"
	"milepost/internal/stream"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// onBrokers runs the test on kfake, and on the real broker that MILEPOST_TEST_BROKERS names.
func onBrokers(t *testing.T, test func(r *rig)) {
	t.Helper()
	t.Run("kfake", func(t *testing.T) {
		t.Parallel()
		test(newRig(t, fakeBroker(t), nil))
	})
	t.Run("kafka", func(t *testing.T) {
		t.Parallel()
		test(newRig(t, realBrokers(t), nil))
	})
}

func realBrokers(tb testing.TB) []string {
	tb.Helper()
	b := os.Getenv("MILEPOST_TEST_BROKERS")
	if b == "" {
		tb.Skip("MILEPOST_TEST_BROKERS is not set: make test starts a real broker (it needs Java 17 and Maven), or name one that runs, host:port")
	}
	return strings.Split(b, ",")
}

func fakeBroker(tb testing.TB, opts ...kfake.Opt) []string {
	tb.Helper()
	return fakeCluster(tb, opts...).ListenAddrs()
}

func fakeCluster(tb testing.TB, opts ...kfake.Opt) *kfake.Cluster {
	tb.Helper()
	c, err := kfake.NewCluster(append([]kfake.Opt{kfake.NumBrokers(1)}, opts...)...)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(c.Close)
	return c
}

// rig is a group with one member, its topics, and a publisher whose connections can be watched and cut.
type rig struct {
	t        testing.TB
	brokers  []string
	net      *wire
	topics   Topics
	raw      string
	group    string
	admin    *kgo.Client
	member   *kgo.Client
	assigned chan struct{} // one for each assignment
	who      *who
	owners   *owners
	info     TopicsInfo
	tune     func(*Config)
	virtual  *kfake.VirtualNetwork // nil: TCP
}

const rigPartitions = 4

func newRig(tb testing.TB, brokers []string, tune func(*Config)) *rig {
	tb.Helper()
	return newRigOn(tb, nil, brokers, tune)
}

// inBubble runs the test in virtual time on a kfake cluster of its own.
func inBubble(t *testing.T, test func(r *rig, c *kfake.Cluster)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		network := &kfake.VirtualNetwork{}
		c := fakeCluster(t, kfake.ListenFn(network.Listen), kfake.Ports(9092))
		test(newRigOn(t, network, []string{"127.0.0.1:9092"}, nil), c)
	})
}

func newRigOn(tb testing.TB, virtual *kfake.VirtualNetwork, brokers []string, tune func(*Config)) *rig {
	tb.Helper()
	name := fmt.Sprintf("t%x", random(5))
	r := &rig{
		t: tb, brokers: brokers, net: &wire{}, topics: Topics{Prefix: name}, raw: name + ".raw", group: name + ".group",
		assigned: make(chan struct{}, 100), owners: &owners{}, tune: tune, virtual: virtual,
	}
	if virtual != nil {
		r.net.base = virtual.DialContext
	}
	r.admin = r.client()
	info, err := EnsureTopics(r.ctx(), r.admin, TopicsSpec{Topics: r.topics, Raw: r.raw, Create: true, RawPartitions: rigPartitions})
	if err != nil {
		tb.Fatal(err)
	}
	r.info = info
	r.member = r.join()
	r.who = &who{ask: r.member.GroupMetadata}
	<-r.assigned
	return r
}

func random(n int) []byte {
	b := make([]byte, n)
	_, _ = rand.Read(b)
	return b
}

func (r *rig) ctx() context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	r.t.Cleanup(cancel)
	return ctx
}

func (r *rig) client(opts ...kgo.Opt) *kgo.Client {
	r.t.Helper()
	if r.virtual != nil {
		opts = append(opts, kgo.Dialer(r.virtual.DialContext))
	}
	c, err := kgo.NewClient(append(ClientOptions(ClientConfig{Brokers: r.brokers}), opts...)...)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(c.Close)
	return c
}

// join adds a member to the group.
func (r *rig) join() *kgo.Client {
	return r.client(
		kgo.ConsumerGroup(r.group), kgo.ConsumeTopics(r.raw), kgo.DisableAutoCommit(), kgo.Balancers(kgo.CooperativeStickyBalancer()),
		kgo.OnPartitionsAssigned(func(context.Context, *kgo.Client, map[string][]int32) { r.assigned <- struct{}{} }),
		kgo.OnPartitionsRevoked(func(context.Context, *kgo.Client, map[string][]int32) {}),
		kgo.OnPartitionsLost(func(context.Context, *kgo.Client, map[string][]int32) {}),
		kgo.HeartbeatInterval(100*time.Millisecond),
	)
}

// publisher makes a publisher of a process named so.
func (r *rig) publisher(instance string) *Publisher {
	r.t.Helper()
	cfg := Config{
		Client: ClientConfig{Brokers: r.brokers, Options: []kgo.Opt{kgo.Dialer(r.net.dial)}},
		Group:  r.group, Raw: r.raw, Topics: r.topics, Instance: instance,
	}
	if r.tune != nil {
		r.tune(&cfg)
	}
	p, err := New(cfg, r.who, r.owners)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(p.Close)
	return p
}

// tenure begins one under the member id that the group has now.
func (r *rig) tenure(partition int32, epoch stream.Epoch) *commit.Tenure {
	member, _ := r.who.Generation()
	t := commit.NewTenure(commit.Ownership{
		Group: r.group, Partition: stream.Partition{Topic: r.raw, Number: partition}, TopicGeneration: 1, Epoch: epoch,
		Nonce: stream.Nonce(random(16)), MemberID: member,
	})
	return t
}

// commits makes n commits of the tenure, with an output each, from the offset on.
func (r *rig) commits(t *commit.Tenure, from int64, n int) []commit.Commit {
	var batch []commit.Commit
	for i := range int64(n) {
		key := stream.Key(fmt.Sprintf("k%d-%d", t.Partition.Number, from+i))
		rev := stream.Revision{Generation: 1, Offset: from + i}
		batch = append(batch, commit.NewCommit(t, key, stream.Revision{}, commit.Plan{
			Next:    commit.Checkpoint{Revision: rev, Segment: 1, State: []byte("s")},
			Outputs: []commit.Output{r.output(r.topics.Matched(), t, key, rev, 100)},
		}))
	}
	return batch
}

func (r *rig) output(topic string, t *commit.Tenure, key stream.Key, rev stream.Revision, size int) commit.Output {
	e := stream.CloudEvent{
		Type: "test", Group: r.group, Identity: stream.Identity{Partition: t.Partition, Revision: rev}, Subject: key, Epoch: t.Epoch,
	}
	return commit.Output{Topic: topic, Key: []byte(key), Value: random(size), Headers: e.Headers()}
}

func (r *rig) mustPublish(p *Publisher, lane int, batch []commit.Commit) commit.Published {
	r.t.Helper()
	out, err := p.Publish(r.ctx(), lane, batch)
	if err != nil {
		r.t.Fatal(err)
	}
	for i, err := range out.Failed {
		r.t.Fatalf("commit %d failed: %v", i, err)
	}
	return out
}

// ids reads the topic read_committed to its end and gives the outputs' ids in the partitions' order.
func (r *rig) ids(topic string) []string {
	r.t.Helper()
	var ids []string
	for _, rec := range r.records(topic) {
		for _, h := range rec.Headers {
			if h.Key == stream.HeaderID {
				ids = append(ids, string(h.Value))
			}
		}
	}
	return ids
}

func (r *rig) records(topic string) []*kgo.Record {
	r.t.Helper()
	ctx := r.ctx()
	ends, err := kadm.NewClient(r.admin).ListEndOffsets(ctx, topic)
	if err != nil {
		r.t.Fatal(err)
	}
	read := reader{client: r.admin, topic: topic}
	var records []*kgo.Record
	for n := range int32(rigPartitions) {
		end, ok := ends.Lookup(topic, n)
		if !ok || end.Err != nil {
			r.t.Fatalf("no end of %s/%d: %v", topic, n, end.Err)
		}
		start, err := read.bound(ctx, n, atStart)
		if err != nil {
			r.t.Fatal(err)
		}
		for at := start; at < end.Offset; {
			fp, next, err := read.fetch(ctx, n, at)
			if err != nil {
				r.t.Fatal(err)
			}
			records, at = append(records, fp.Records...), next
		}
	}
	return records
}

// wantOnce fails unless each of the commits' outputs, and nothing else, is visible exactly once.
func (r *rig) wantOnce(topic string, batches ...[]commit.Commit) {
	r.t.Helper()
	var want []string
	for _, batch := range batches {
		for i := range batch {
			want = append(want, stream.Identity{Partition: batch[i].Tenure.Partition, Revision: batch[i].Revision}.OutputID(0))
		}
	}
	got := r.ids(topic)
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		r.t.Fatalf("visible outputs:\n got %d %v\nwant %d %v", len(got), got, len(want), want)
	}
}

// entries reads the ledger of a partition from the floor.
func (r *rig) entries(p *Publisher, partition int32, floor int64) (entries []commit.Entry, end int64) {
	r.t.Helper()
	end, err := p.Ledger().Settled(r.ctx(), stream.Partition{Topic: r.raw, Number: partition}, floor, func(_ int64, e commit.Entry) error {
		entries = append(entries, e)
		return nil
	})
	if err != nil {
		r.t.Fatal(err)
	}
	return entries, end
}

// who is the group as a test lets the publisher see it.
type who struct {
	ask func() (string, int32)

	mu    sync.Mutex
	asked int
	pin   func() (string, int32) // instead of ask
	note  func(string)
}

func (w *who) Generation() (string, int32) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.asked++
	if w.note != nil {
		w.note("generation")
	}
	if w.pin != nil {
		return w.pin()
	}
	return w.ask()
}

// see makes the publisher see this member and generation; nil ends that.
func (w *who) see(pin func() (string, int32)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.pin = pin
}

// until waits until Generation was asked n more times.
func (w *who) until(tb testing.TB, n int) {
	tb.Helper()
	w.mu.Lock()
	from := w.asked
	w.mu.Unlock()
	eventually(tb, func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		return w.asked >= from+n
	})
}

func eventually(tb testing.TB, cond func() bool) {
	tb.Helper()
	deadline := time.After(30 * time.Second)
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for !cond() {
		select {
		case <-deadline:
			tb.Fatal("the condition never came true")
		case <-tick.C:
		}
	}
}

// owners answers for the owner rows: those in taken have a newer epoch.
type owners struct {
	mu    sync.Mutex
	taken map[*commit.Tenure]bool
	asked [][]*commit.Tenure
	fail  error
	note  func(string)
}

func (o *owners) Holds(_ context.Context, tenures []*commit.Tenure) ([]bool, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.note != nil {
		o.note("epochs")
	}
	if o.fail != nil {
		return nil, o.fail
	}
	o.asked = append(o.asked, tenures)
	holds := make([]bool, len(tenures))
	for i, t := range tenures {
		holds[i] = !o.taken[t]
	}
	return holds, nil
}

func (o *owners) take(t *commit.Tenure) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.taken == nil {
		o.taken = map[*commit.Tenure]bool{}
	}
	o.taken[t] = true
}

func (o *owners) asks() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.asked)
}

func (o *owners) failWith(err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.fail = err
}

// wire dials for the publisher's clients. It sees each request's API key and can cut connections.
type wire struct {
	base func(ctx context.Context, network, address string) (net.Conn, error) // nil: TCP
	mu   sync.Mutex
	down bool
	note func(key kmsg.Key)
	// cut says what to do with a request: nothing, refuse to write it, or write it and lose the answer.
	cut func(key kmsg.Key) cutting
	// cutRequest decides as cut does, with the request's bytes at hand.
	cutRequest func(key kmsg.Key, request []byte) cutting
	conns      map[*wiredConn]struct{}
}

type cutting uint8

const (
	pass cutting = iota
	loseRequest
	loseAnswer
)

var errCut = errors.New("connection cut by the test")

func (w *wire) dial(ctx context.Context, network, address string) (net.Conn, error) {
	w.mu.Lock()
	down := w.down
	w.mu.Unlock()
	if down {
		return nil, errCut
	}
	base := w.base
	if base == nil {
		base = (&net.Dialer{}).DialContext
	}
	c, err := base(ctx, network, address)
	if err != nil {
		return nil, err
	}
	wc := &wiredConn{Conn: c, wire: w}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.conns == nil {
		w.conns = map[*wiredConn]struct{}{}
	}
	w.conns[wc] = struct{}{}
	return wc, nil
}

// unplug cuts all connections and refuses new ones until plug.
func (w *wire) unplug() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.down = true
	for c := range w.conns {
		_ = c.Close()
	}
	clear(w.conns)
}

func (w *wire) plug() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.down = false
}

func (w *wire) saw(key kmsg.Key, request []byte) cutting {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.note != nil {
		w.note(key)
	}
	if w.cut != nil {
		return w.cut(key)
	}
	if w.cutRequest != nil {
		return w.cutRequest(key, request)
	}
	return pass
}

type wiredConn struct {
	net.Conn
	wire *wire
}

// Write sees whole requests: franz-go writes each with one call.
func (c *wiredConn) Write(b []byte) (int, error) {
	if len(b) < 6 {
		return c.Conn.Write(b)
	}
	switch c.wire.saw(kmsg.Key(binary.BigEndian.Uint16(b[4:])), b) {
	case loseRequest:
		_ = c.Close()
		return 0, errCut
	case loseAnswer:
		n, err := c.Conn.Write(b)
		if err == nil {
			// Once the answer has begun to arrive the broker has done it.
			_, _ = io.ReadFull(c.Conn, make([]byte, 4))
		}
		_ = c.Close()
		return n, err
	case pass:
	}
	return c.Conn.Write(b)
}

// logged collects log lines.
type logged struct {
	mu    sync.Mutex
	lines []string
}

func (l *logged) Enabled(context.Context, slog.Level) bool { return true }
func (l *logged) WithAttrs([]slog.Attr) slog.Handler       { return l }
func (l *logged) WithGroup(string) slog.Handler            { return l }
func (l *logged) Handle(_ context.Context, r slog.Record) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, r.Message)
	return nil
}

func (l *logged) count(message string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := 0
	for _, line := range l.lines {
		if line == message {
			n++
		}
	}
	return n
}

// makeTopic makes a topic and waits until its leaders serve it: a broker answers before that.
func (r *rig) makeTopic(name string, configs map[string]*string) {
	r.t.Helper()
	admin := kadm.NewClient(r.admin)
	if _, err := admin.CreateTopic(r.ctx(), rigPartitions, 1, configs, name); err != nil {
		r.t.Fatal(err)
	}
	eventually(r.t, func() bool {
		ends, err := admin.ListEndOffsets(r.ctx(), name)
		return err == nil && ends.Error() == nil && len(ends[name]) == rigPartitions
	})
}

// publisherB is another process's publisher, on connections that are not watched.
func (r *rig) publisherB() *Publisher {
	watched := r.net
	r.net = &wire{}
	defer func() { r.net = watched }()
	return r.publisher("b")
}
