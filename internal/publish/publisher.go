package publish

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"milepost/internal/commit"
	"milepost/internal/stream"
)

// Group tells who we are in the consumer group, as the group client knows it now.
type Group interface {
	// Generation gives the member id and its generation or member epoch; an empty id while there is none.
	Generation() (memberID string, generation int32)
}

// Owners answers for each tenure whether its owner row still has its epoch and nonce.
type Owners interface {
	Holds(ctx context.Context, tenures []*commit.Tenure) ([]bool, error)
}

// Config is what a Publisher needs to know.
type Config struct {
	Client ClientConfig
	Group  string // the consumer group
	Raw    string // the raw topic
	Topics Topics
	// Mode is how outputs are made visible; empty: transactional.
	Mode commit.PublishMode
	// Instance is unique per process start: lane ids derive from it.
	Instance string
	Lanes    int // 0: 3
	// TransactionTimeout is after how long the broker may abort a transaction of ours; 0: 10 s, at most that.
	TransactionTimeout time.Duration
	// MaxRecordBytes bounds a record and a produce batch; 0: 1,000,012, the broker's own default.
	MaxRecordBytes int32
	// OffsetMetadata is the string that goes with committed offsets; empty: "milepost".
	OffsetMetadata string
	// SkipTransactionV2 lets Check pass on a broker without transaction.version 2. Exactly-once is then not proven.
	SkipTransactionV2 bool
	Log               *slog.Logger
}

func (c Config) withDefaults() Config {
	if c.Mode == "" {
		c.Mode = commit.Transactional
	}
	if c.Lanes == 0 {
		c.Lanes = 3
	}
	if c.TransactionTimeout == 0 {
		c.TransactionTimeout = maxTransactionTimeout
	}
	if c.MaxRecordBytes == 0 {
		c.MaxRecordBytes = 1_000_012
	}
	if c.OffsetMetadata == "" {
		c.OffsetMetadata = "milepost"
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Client.Log == nil {
		c.Client.Log = c.Log
	}
	return c
}

// Validate says what is wrong with the configuration.
func (c Config) Validate() error {
	switch {
	case c.Group == "" || c.Raw == "" || c.Instance == "" || c.Topics.Prefix == "":
		return errors.New("publish: group, raw topic, instance and prefix must be set")
	case c.Mode != "" && c.Mode != commit.Transactional && c.Mode != commit.Idempotent:
		return fmt.Errorf("publish: mode is %q, must be %s or %s", c.Mode, commit.Transactional, commit.Idempotent)
	case c.Lanes < 0 || c.Lanes > 64:
		return fmt.Errorf("publish: lanes is %d, must be 1 to 64", c.Lanes)
	case c.TransactionTimeout < 0 || c.TransactionTimeout > maxTransactionTimeout:
		return fmt.Errorf("publish: transaction timeout is %s, must be at most 10s", c.TransactionTimeout)
	case c.MaxRecordBytes < 0:
		return fmt.Errorf("publish: max record bytes is %d", c.MaxRecordBytes)
	}
	return nil
}

// Publisher is commit.Publisher over a ring of producers.
type Publisher struct {
	cfg    Config
	group  Group
	owners Owners
	admin  *kgo.Client // shared, not transactional: raw requests, the ledger, metadata
	lanes  []*lane
	ledger *Ledger
	known  topicCache
	away   *outage

	mu      sync.Mutex
	changed chan struct{} // closed and replaced by Notify
}

// New makes a publisher. It does no I/O.
func New(cfg Config, g Group, o Owners) (*Publisher, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	cfg = cfg.withDefaults()
	opts := ClientOptions(cfg.Client)
	admin, err := kgo.NewClient(append(slices.Clip(opts), kgo.MetadataMinAge(100*time.Millisecond))...)
	if err != nil {
		return nil, fmt.Errorf("publish: %w", err)
	}
	p := &Publisher{
		cfg: cfg, group: g, owners: o, admin: admin,
		ledger:  NewLedger(admin, cfg.Group, cfg.Raw, cfg.Topics.Ledger(), cfg.Log),
		known:   topicCache{client: admin},
		away:    &outage{log: cfg.Log},
		changed: make(chan struct{}),
	}
	producer := cfg.laneOptions(opts)
	for n := range cfg.Lanes {
		p.lanes = append(p.lanes, &lane{
			id: LaneID(cfg.Group, cfg.Raw, cfg.Instance, n), opts: producer, plain: cfg.Mode == commit.Idempotent,
		})
	}
	return p, nil
}

// LaneID is the transactional id of a lane.
func LaneID(group, raw, instance string, lane int) string {
	return fmt.Sprintf("%s.%s.%s.%d", group, raw, instance, lane)
}

func (c Config) laneOptions(base []kgo.Opt) []kgo.Opt {
	opts := slices.Clip(base)
	if c.Mode != commit.Idempotent {
		opts = append(opts, kgo.TransactionTimeout(c.TransactionTimeout),
			// The next transaction of a lane meets the last one's markers; franz-go asks again every 20 ms by default.
			kgo.ConcurrentTransactionsBackoff(2*time.Millisecond))
	}
	return append(opts,
		kgo.RequiredAcks(kgo.AllISRAcks()),
		kgo.ProducerLinger(0),
		kgo.ProducerBatchMaxBytes(c.MaxRecordBytes),
		kgo.RecordPartitioner(partitioner{ledger: c.Topics.Ledger()}),
		kgo.UnknownTopicRetries(2),
		kgo.MetadataMinAge(100*time.Millisecond),
		kgo.RetryBackoffFn(func(int) time.Duration { return 20 * time.Millisecond }),
	)
}

// Lanes implements commit.Publisher.
func (p *Publisher) Lanes() int { return len(p.lanes) }

// Ledger reads back what was published, over the publisher's own connection.
func (p *Publisher) Ledger() *Ledger { return p.ledger }

// Instance is what this process's lane ids derive from, for the claim.
func (p *Publisher) Instance() string { return p.cfg.Instance }

// Notify says that the group called back, or that a tenure ended: whoever waits for the group looks again.
func (p *Publisher) Notify() {
	p.mu.Lock()
	defer p.mu.Unlock()
	close(p.changed)
	p.changed = make(chan struct{})
}

func (p *Publisher) changes() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.changed
}

// Close ends the lanes' clients. It waits for calls of Publish: their contexts must have ended.
func (p *Publisher) Close() {
	for _, l := range p.lanes {
		l.mu.Lock()
		l.closed = true
		l.drop()
		l.mu.Unlock()
	}
	p.admin.Close()
}

// Publish implements commit.Publisher.
func (p *Publisher) Publish(ctx context.Context, n int, batch []commit.Commit) (commit.Published, error) {
	l := p.lanes[n]
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return commit.Published{}, ErrClosed
	}
	b := &batchState{
		commits: batch, landed: map[int][]commit.Landing{}, entered: map[int]bool{},
		out: commit.Published{Positions: map[stream.Partition]int64{}, Failed: map[int]error{}},
	}
	all := make([]int, len(batch))
	for i := range all {
		all[i] = i
	}
	work := [][]int{all}
	var err error
	for len(work) > 0 && err == nil {
		var more [][]int
		more, err = p.finish(ctx, l, b, work[0])
		work = append(more, work[1:]...)
	}
	p.tidy(ctx, l)
	if err != nil {
		return commit.Published{}, err
	}
	return b.out, nil
}

// batchState is a batch on its way, with what is already decided of it.
type batchState struct {
	commits []commit.Commit
	out     commit.Published
	// Without transactions a try keeps what it got done: commits whose outputs are all acknowledged, and where they landed,
	// and those that the ledger has.
	landed  map[int][]commit.Landing
	entered map[int]bool
}

// live gives the indices that have no verdict and whose tenure holds; those of lost tenures get theirs.
func (b *batchState) live(part []int) []int {
	left := make([]int, 0, len(part))
	for _, i := range part {
		if _, failed := b.out.Failed[i]; failed || b.entered[i] {
			continue
		}
		if t := b.commits[i].Tenure; t.Err() != nil {
			b.fence(i, "the tenure ended: "+t.Err().Error())
			continue
		}
		left = append(left, i)
	}
	return left
}

func (b *batchState) fence(i int, reason string) {
	b.out.Failed[i] = fenced(b.commits[i].Tenure, reason)
}

// published notes the lowest position of a partition: the floor may not pass it before all is durable.
func (b *batchState) published(positions map[stream.Partition]int64) {
	for p, at := range positions {
		if have, ok := b.out.Positions[p]; !ok || at < have {
			b.out.Positions[p] = at
		}
	}
}

// finish brings the part to an end, or says into which parts it falls.
func (p *Publisher) finish(ctx context.Context, l *lane, b *batchState, part []int) ([][]int, error) {
	for try := 0; ; try++ {
		if part = b.live(part); len(part) == 0 {
			return nil, nil
		}
		changed := p.changes()
		err := p.try(ctx, l, b, part)
		if err == nil {
			return nil, nil
		}
		if ctx.Err() != nil {
			return nil, fmt.Errorf("publish broken off: %w", context.Cause(ctx))
		}
		var held *culprits
		var refused *refusedError
		switch {
		case errors.As(err, &held):
			return b.isolate(part, held), nil
		case errors.As(err, &refused):
			p.cfg.Log.LogAttrs(ctx, slog.LevelInfo, "the group refused our generation, waiting for the next",
				slog.Int("generation", int(refused.generation)), slog.Any("err", refused.cause))
			if l.client == nil {
				// Abort what is open before the wait: it would hold readers back.
				_ = p.abort(ctx, l)
			}
			p.awaitGroup(ctx, b, part, refused, changed)
		default:
			// A lane that was fenced is well again at the next try: that is no outage.
			if try > 0 {
				p.away.note(ctx, err)
			}
			p.wait(ctx, b, part, backoff(try))
		}
	}
}

// isolate separates commits that cannot be published from the others (X8).
func (b *batchState) isolate(part []int, held *culprits) [][]int {
	var good, bad []int
	for _, i := range part {
		if _, is := held.commits[i]; is {
			bad = append(bad, i)
		} else {
			good = append(good, i)
		}
	}
	var parts [][]int
	if len(good) > 0 {
		parts = append(parts, good)
	}
	if held.certain || len(bad) == 1 {
		for _, i := range bad {
			b.out.Failed[i] = held.commits[i]
		}
		return parts
	}
	half := len(bad) / 2
	return append(parts, bad[:half], bad[half:])
}

// awaitGroup waits until member or generation is another one, the group has called back, or no tenure is left.
func (p *Publisher) awaitGroup(ctx context.Context, b *batchState, part []int, r *refusedError, changed <-chan struct{}) {
	// The group client has no channel for this, so the wait looks again by itself too.
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-changed:
			return
		case <-tick.C:
			member, generation := p.group.Generation()
			if member != r.member || generation != r.generation || anyLost(b, part) {
				return
			}
		}
	}
}

// wait pauses for d, or until a tenure is lost or ctx ends.
func (p *Publisher) wait(ctx context.Context, b *batchState, part []int, d time.Duration) {
	deadline := time.NewTimer(d)
	defer deadline.Stop()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-deadline.C:
			return
		case <-tick.C:
			if anyLost(b, part) {
				return
			}
		}
	}
}

func anyLost(b *batchState, part []int) bool {
	for _, i := range part {
		if b.commits[i].Tenure.Err() != nil {
			return true
		}
	}
	return false
}

// backoff is 0 for the first repetition (a fenced lane needs no wait), then 25 ms doubling to 2 s, with jitter.
func backoff(try int) time.Duration {
	if try == 0 {
		return 0
	}
	d := min(25*time.Millisecond<<min(try-1, 10), 2*time.Second)
	return d/2 + rand.N(d/2+1)
}

// tidy aborts what a broken-off Publish left open, so that no reader waits for the transaction's timeout.
func (p *Publisher) tidy(ctx context.Context, l *lane) {
	if l.client == nil && l.open {
		_ = p.abort(context.WithoutCancel(ctx), l)
	}
}

// abort initialises the lane's id over the shared client. The lane's next client initialises it again.
func (p *Publisher) abort(ctx context.Context, l *lane) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	if err := p.initID(ctx, l.id); err != nil {
		return err
	}
	l.open = false
	return nil
}
