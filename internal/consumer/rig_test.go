package consumer

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"milepost/internal/commit"
	"milepost/internal/commit/committest"
	"milepost/internal/partition"
	"milepost/internal/stream"
)

const (
	rawTopic    = "raw"
	ledgerTopic = "out.ledger"
	groupName   = "g"
)

// rig is a broker, a store and as many processes as a test starts, all in one bubble of virtual time.
type rig struct {
	t        *testing.T
	protocol Protocol
	net      *kfake.VirtualNetwork
	cluster  *kfake.Cluster
	store    *committest.MemoryStore
	broker   *committest.MemoryBroker
	client   *kgo.Client
	admin    *kadm.Client
	lanes    int // handed out to processes so far
}

// bubble runs a test in virtual time against a broker with so many raw partitions.
func bubble(t *testing.T, partitions int32, f func(r *rig)) {
	t.Helper()
	bubbleWith(t, Classic, partitions, f)
}

// onProtocols is bubble for each of the group's protocols.
func onProtocols(t *testing.T, partitions int32, f func(r *rig)) {
	t.Helper()
	for _, p := range []Protocol{Classic, ConsumerGroup} {
		t.Run(string(p), func(t *testing.T) { bubbleWith(t, p, partitions, f) })
	}
}

func bubbleWith(t *testing.T, protocol Protocol, partitions int32, f func(r *rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := &rig{t: t, protocol: protocol, net: &kfake.VirtualNetwork{}, store: committest.NewMemoryStore(), broker: committest.NewMemoryBroker(64)}
		cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.ListenFn(r.net.Listen), kfake.Ports(9092),
			kfake.GroupMinSessionTimeout(100*time.Millisecond),
			kfake.BrokerConfigs(map[string]string{
				"group.consumer.heartbeat.interval.ms": "2000", "group.consumer.session.timeout.ms": "10000",
			}),
			kfake.SeedTopics(partitions, rawTopic, ledgerTopic))
		if err != nil {
			t.Fatal(err)
		}
		defer cluster.Close()
		r.cluster = cluster
		r.client = r.newClient(kgo.RecordPartitioner(kgo.ManualPartitioner()))
		defer r.client.Close()
		r.admin = kadm.NewClient(r.client)
		f(r)
	})
}

func (r *rig) dial(ctx context.Context, network, address string) (net.Conn, error) {
	return r.net.DialContext(ctx, network, address)
}

func (r *rig) options() []kgo.Opt {
	return []kgo.Opt{kgo.SeedBrokers("localhost:9092"), kgo.Dialer(r.dial)}
}

func (r *rig) newClient(opts ...kgo.Opt) *kgo.Client {
	r.t.Helper()
	cl, err := kgo.NewClient(append(r.options(), opts...)...)
	if err != nil {
		r.t.Fatal(err)
	}
	return cl
}

// idler joins the group as a member that is given partitions and does nothing with them.
func (r *rig) idler() *kgo.Client {
	r.t.Helper()
	opts := []kgo.Opt{
		kgo.ConsumerGroup(groupName), kgo.ConsumeTopics(rawTopic), kgo.DisableAutoCommit(),
		kgo.Balancers(kgo.CooperativeStickyBalancer()), kgo.HeartbeatInterval(500 * time.Millisecond),
	}
	if r.protocol == ConsumerGroup {
		opts = append(opts, kgo.ServerSideBalancer())
	}
	return r.newClient(opts...)
}

// produce writes records key=value to a partition and returns the first one's offset.
func (r *rig) produce(p int32, records ...string) int64 {
	r.t.Helper()
	first := int64(-1)
	for _, kv := range records {
		k, v, _ := strings.Cut(kv, "=")
		rec := &kgo.Record{Topic: rawTopic, Partition: p, Key: []byte(k), Value: []byte(v)}
		if err := r.client.ProduceSync(r.t.Context(), rec).FirstErr(); err != nil {
			r.t.Fatal(err)
		}
		if first < 0 {
			first = rec.Offset
		}
	}
	return first
}

// numbered gives n records of one key: k=from, k=from+1 and so on.
func numbered(key string, from, n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = key + "=" + strconv.Itoa(from+i)
	}
	return out
}

// eventually waits in virtual time for a condition.
func (r *rig) eventually(what string, cond func() bool) {
	r.t.Helper()
	for range 60_000 {
		if cond() {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	r.t.Fatalf("after 5 minutes of virtual time still not: %s", what)
}

// values are the published outputs of a key, in order.
func (r *rig) values(key string) []string {
	var out []string
	for _, v := range r.broker.Values() {
		if k, _, _ := strings.Cut(v, "="); k == key {
			out = append(out, v)
		}
	}
	return out
}

func (r *rig) frontier(p int32) int64 {
	_, start, _ := r.store.Owner(groupName, part(p))
	return start.Frontier.Next.Offset
}

func (r *rig) epoch(p int32) stream.Epoch {
	row, _, _ := r.store.Owner(groupName, part(p))
	return row.Epoch
}

func (r *rig) released(p int32) bool {
	_, _, released := r.store.Owner(groupName, part(p))
	return released
}

// groupOffset is the group's committed offset, -1 without one.
func (r *rig) groupOffset(p int32) int64 {
	r.t.Helper()
	all, err := r.admin.FetchOffsets(r.t.Context(), groupName)
	if err != nil {
		r.t.Fatal(err)
	}
	if o, ok := all.Lookup(rawTopic, p); ok {
		return o.At
	}
	return -1
}

func part(n int32) stream.Partition { return stream.Partition{Topic: rawTopic, Number: n} }

// process is one orchestrator process: a consumer with a pipeline of its own.
type process struct {
	*Consumer
	r       *rig
	log     *logBook
	formers *formerBook
	away    *outageSwitch
	cancel  context.CancelFunc // SIGTERM
	done    chan error
	ended   atomic.Bool
	err     error
}

// start starts a process; tune may change its configuration and parts.
func (r *rig) start(name string, tune ...func(*Config, *Deps)) *process {
	r.t.Helper()
	p := &process{r: r, log: &logBook{}, formers: &formerBook{}, away: &outageSwitch{conns: map[net.Conn]bool{}}, done: make(chan error, 1)}
	cfg := DefaultConfig()
	cfg.Group, cfg.Topic, cfg.LedgerTopic, cfg.Instance, cfg.Lanes = groupName, rawTopic, ledgerTopic, name, 2
	cfg.Protocol = r.protocol
	cfg.Client = []kgo.Opt{kgo.SeedBrokers("localhost:9092"), kgo.Dialer(p.away.dialer(r.dial))}
	pub := &fencedLanes{MemoryBroker: r.broker, store: r.store, first: r.lanes, lanes: cfg.Lanes}
	r.lanes += cfg.Lanes
	pipe := commit.NewPipeline(commit.DefaultPipelineConfig(), r.store, pub)
	deps := Deps{
		Owners: r.store, Store: r.store, Pipeline: pipe, Formers: p.formers, Ledger: cutter{r},
		Recovery: commit.Recovery{Store: r.store, Owners: r.store, Ledger: r.broker, Pipeline: pipe, Backoff: backoffOnce},
		Solver:   echoSolver{}, Workload: tally{}, Rand: rand.Reader, Log: slog.New(p.log),
	}
	for _, f := range tune {
		f(&cfg, &deps)
	}
	c, err := New(cfg, deps)
	if err != nil {
		r.t.Fatal(err)
	}
	p.Consumer = c
	ctx, cancel := context.WithCancel(r.t.Context())
	pipeCtx, stopPipe := context.WithCancel(r.t.Context())
	p.cancel = cancel
	var pipeDone sync.WaitGroup
	pipeDone.Go(func() {
		if err := pipe.Run(pipeCtx); err != nil {
			r.t.Error(err)
		}
	})
	go func() {
		p.err = c.Run(ctx)
		stopPipe()
		pipeDone.Wait()
		p.ended.Store(true)
		p.done <- p.err
	}()
	return p
}

// stop stops the process gracefully and returns what Run gave.
func (p *process) stop() error {
	p.cancel()
	return <-p.done
}

func (p *process) running(n int) func() bool {
	return func() bool {
		count := 0
		for _, st := range p.Status() {
			if st.State == StateRunning {
				count++
			}
		}
		return count == n
	}
}

func backoffOnce(ctx context.Context, _ int) error {
	if !sleep(ctx, 10*time.Millisecond) {
		return ctx.Err()
	}
	return nil
}

// fencedLanes are a process's own lanes on the shared broker. As the real ones do, they ask whether the tenures hold
// before each transaction.
type fencedLanes struct {
	*committest.MemoryBroker
	store        *committest.MemoryStore
	first, lanes int
}

func (l *fencedLanes) Lanes() int { return l.lanes }

func (l *fencedLanes) Publish(ctx context.Context, lane int, batch []commit.Commit) (commit.Published, error) {
	var send []commit.Commit
	var from []int
	out := commit.Published{Positions: map[stream.Partition]int64{}, Failed: map[int]error{}}
	for i, c := range batch {
		holds, err := l.store.Holds(ctx, []*commit.Tenure{c.Tenure})
		if err != nil {
			return out, err
		}
		if !holds[0] {
			out.Failed[i] = &commit.FencedError{Partition: c.Tenure.Partition, Held: c.Tenure.Epoch}
			continue
		}
		send, from = append(send, c), append(from, i)
	}
	if len(send) == 0 {
		return out, nil
	}
	got, err := l.MemoryBroker.Publish(ctx, l.first+lane, send)
	if err != nil {
		return out, err
	}
	out.Positions = got.Positions
	for i, err := range got.Failed {
		out.Failed[from[i]] = err
	}
	return out, nil
}

// cutter truncates the ledger.
type cutter struct{ r *rig }

func (f cutter) DeleteBelow(_ context.Context, p stream.Partition, floor int64) error {
	f.r.broker.Truncate(p, floor)
	return nil
}

// formerBook notes whose lanes were initialised.
type formerBook struct {
	mu   sync.Mutex
	seen []string
}

func (b *formerBook) InitFormers(_ context.Context, topic string, formers []commit.Former) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, f := range formers {
		b.seen = append(b.seen, fmt.Sprintf("%s.%s.%d", topic, f.Instance, f.Lanes))
	}
	return nil
}

func (b *formerBook) names() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.seen)
}

// echoSolver answers with the request.
type echoSolver struct{}

func (echoSolver) Submit(job partition.Dispatch, done func(partition.Decision, error)) bool {
	go done(partition.Decision{Kind: partition.Solved, Answer: job.Request}, nil)
	return true
}

// tally is a workload whose state is the list of the key's values so far: a lost, repeated or swapped observation shows.
type tally struct{}

func (tally) Decode(r *stream.Record) (partition.Observation, error) {
	if len(r.Key) == 0 {
		return partition.Observation{}, &commit.PoisonError{Reason: "no_key", Detail: "the record has no key"}
	}
	return partition.Observation{Key: stream.Key(r.Key), Time: r.Timestamp, Record: r, Value: string(r.Value)}, nil
}

func (tally) Open(_ partition.KeyState, o partition.Observation, _ ...partition.Observation) partition.Opening {
	return partition.Opening{Request: []byte(o.Value.(string))}
}

func (tally) Plan(k partition.KeyState, o partition.Observation, d partition.Decision) (commit.Plan, error) {
	state := append(slices.Clone(k.Checkpoint.State), d.Answer...)
	return commit.Plan{
		Next:    commit.Checkpoint{Revision: o.Identity.Revision, Segment: 1, State: append(state, ' ')},
		Outputs: []commit.Output{{Topic: "out.matched", Key: []byte(o.Key), Value: d.Answer}},
	}, nil
}

func (tally) Diverged(state []byte) []byte { return state }

func (tally) DeadLetter(_ stream.Identity, _ stream.Epoch, r *stream.Record, _ *commit.PoisonError) commit.Output {
	return commit.Output{Topic: "out.dead-letter", Key: r.Key, Value: r.Value}
}

// logBook keeps log lines for assertions.
type logBook struct {
	mu    sync.Mutex
	lines []string
}

func (b *logBook) Enabled(context.Context, slog.Level) bool { return true }

func (b *logBook) Handle(_ context.Context, r slog.Record) error {
	line := r.Level.String() + " " + r.Message
	r.Attrs(func(a slog.Attr) bool { line += " " + a.String(); return true })
	b.mu.Lock()
	defer b.mu.Unlock()
	b.lines = append(b.lines, line)
	return nil
}

func (b *logBook) WithAttrs([]slog.Attr) slog.Handler { return b }
func (b *logBook) WithGroup(string) slog.Handler      { return b }

func (b *logBook) has(part string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.ContainsFunc(b.lines, func(l string) bool { return strings.Contains(l, part) })
}

// steal raises a partition's epoch behind its owner's back.
func (r *rig) steal(n int32) {
	r.t.Helper()
	rows, err := r.store.Epochs(r.t.Context(), groupName, []stream.Partition{part(n)})
	if err != nil {
		r.t.Fatal(err)
	}
	won, err := r.store.Acquire(r.t.Context(), []commit.Claim{{
		Group: groupName, Partition: part(n), Expected: rows[0].Epoch, Nonce: stream.Nonce{9}, Generation: 1, MemberID: "m",
		Instance: "thief", Lanes: 1, TopicID: rows[0].TopicID, TopicGeneration: rows[0].TopicGeneration,
		LedgerTopicID: rows[0].LedgerTopicID, Partitions: rows[0].Partitions,
	}})
	if err != nil || !won[0] {
		r.t.Fatalf("steal: %v, %v", won, err)
	}
}

// outageSwitch cuts one process's connections to the broker.
type outageSwitch struct {
	mu    sync.Mutex
	cut   bool
	conns map[net.Conn]bool
}

func (o *outageSwitch) dialer(dial func(context.Context, string, string) (net.Conn, error)) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		o.mu.Lock()
		defer o.mu.Unlock()
		if o.cut {
			return nil, &net.OpError{Op: "dial", Err: errors.New("network is cut")}
		}
		c, err := dial(ctx, network, address)
		if err == nil {
			o.conns[c] = true
		}
		return c, err
	}
}

// set cuts the network, or mends it.
func (o *outageSwitch) set(cut bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.cut = cut
	if cut {
		for c := range o.conns {
			_ = c.Close() // a connection that is closed already is cut as well
		}
		clear(o.conns)
	}
}

// offsets names one offset of a raw partition for an admin request.
func (r *rig) offsets(p int32, at int64) kadm.Offsets {
	var os kadm.Offsets
	os.AddOffset(rawTopic, p, at, -1)
	return os
}

// commitReport is what Observer.Ended is given.
type commitReport = partition.Report
