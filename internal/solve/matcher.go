package solve

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"milepost/internal/commit"
	"milepost/internal/partition"
)

// MatcherConfig holds the settings of a replica.
type MatcherConfig struct {
	Client   []kgo.Opt
	Group    string // of the region's replicas
	Requests string // topic
	Replies  string // topic
	Replica  string // unique per process start
	Secret   Secret
	// MaxInFlight bounds the requests that are taken and not answered.
	MaxInFlight    int
	Grace          time.Duration // to answer what is in flight when it is told to stop
	SessionTimeout time.Duration
	Log            *slog.Logger
}

// Pool solves. Submit returns at once; false: there is no room. done is called once, on any goroutine.
type Pool interface {
	Submit(request []byte, done func(partition.Decision, error)) bool
}

// Matcher is a replica: it takes its region's requests and answers them.
type Matcher struct {
	cfg    MatcherConfig
	pool   Pool
	client *kgo.Client
	slots  chan struct{} // capacity MaxInFlight: one is held for each request that is taken and not answered
	joined atomic.Bool

	requests, solved, missed, failed, malformed, forged, full, unsent, errs, inFlight atomic.Int64
}

// MatcherStats count requests and what became of them.
type MatcherStats struct {
	Requests, Solved, TripMisses, Failed int64
	Malformed, Forged                    int64 // dropped
	Full                                 int64 // dropped: the pool had no room
	Unsent                               int64 // replies that no broker took
	Errors                               int64 // of fetches
	InFlight                             int
}

// NewMatcher makes a replica; Run lets it work.
func NewMatcher(cfg MatcherConfig, pool Pool) (*Matcher, error) {
	if cfg.MaxInFlight < 1 {
		return nil, fmt.Errorf("solve: %d requests in flight, must be at least 1", cfg.MaxInFlight)
	}
	m := &Matcher{cfg: cfg, pool: pool, slots: make(chan struct{}, cfg.MaxInFlight)}
	opts := producing(append([]kgo.Opt{}, cfg.Client...))
	opts = append(opts,
		kgo.ConsumerGroup(cfg.Group), kgo.ConsumeTopics(cfg.Requests), kgo.Balancers(kgo.CooperativeStickyBalancer()),
		kgo.SessionTimeout(cfg.SessionTimeout), kgo.HeartbeatInterval(min(cfg.SessionTimeout/4, 2*time.Second)),
		// What is older than the retry time has been sent again; a bit more does no harm.
		kgo.ConsumeResetOffset(kgo.NewOffset().AfterMilli(time.Now().Add(-deliveryTimeout).UnixMilli())),
		kgo.MetadataMaxAge(30*time.Second), // within which lanes that were added find readers
		kgo.AutoCommitInterval(time.Second), kgo.FetchMaxWait(time.Second), kgo.FetchMaxBytes(16<<20),
		kgo.OnPartitionsAssigned(func(context.Context, *kgo.Client, map[string][]int32) { m.joined.Store(true) }),
	)
	client, err := kgo.NewClient(opts...)
	if err != nil {
		return nil, fmt.Errorf("solve: make a client: %w", err)
	}
	m.client = client
	return m, nil
}

// Run answers requests until ctx ends; then it answers what is in flight, leaves the group and returns nil. It is called once, and
// the pool must outlive it.
func (m *Matcher) Run(ctx context.Context) error {
	said := time.Time{}
	for {
		free, ok := m.claim(ctx)
		if !ok {
			break
		}
		fetches := m.client.PollRecords(ctx, free)
		failed := false
		fetches.EachError(func(_ string, _ int32, err error) {
			if ctx.Err() != nil {
				return
			}
			failed = true
			m.errs.Add(1)
			if time.Since(said) > 30*time.Second {
				said = time.Now()
				m.cfg.Log.LogAttrs(ctx, slog.LevelWarn, "requests could not be read; it goes on", slog.Any("err", err))
			}
		})
		fetches.EachRecord(func(r *kgo.Record) {
			free--
			m.take(r)
		})
		m.release(free)
		if failed && !pause(ctx, 100*time.Millisecond) {
			break
		}
	}
	m.drain(context.WithoutCancel(ctx))
	return nil
}

// claim waits for a free slot and takes all that are free; false: ctx ended first.
func (m *Matcher) claim(ctx context.Context) (n int, ok bool) {
	select {
	case <-ctx.Done():
		return 0, false
	case m.slots <- struct{}{}:
	}
	for n = 1; ; n++ {
		select {
		case m.slots <- struct{}{}:
		default:
			return n, true
		}
	}
}

func (m *Matcher) release(n int) {
	for range n {
		<-m.slots
	}
}

// end gives a request's slot back.
func (m *Matcher) end() {
	m.inFlight.Add(-1)
	m.release(1)
}

// drain waits for what is in flight, within the grace, hands the replies to the broker and leaves the group.
func (m *Matcher) drain(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, m.cfg.Grace)
	defer cancel()
	defer m.client.CloseAllowingRebalance()
	for range m.cfg.MaxInFlight {
		select {
		case m.slots <- struct{}{}:
		case <-ctx.Done():
			m.cfg.Log.LogAttrs(ctx, slog.LevelWarn, "requests are left unanswered; they are asked again elsewhere", slog.Int64("in_flight", m.inFlight.Load()))
			return
		}
	}
	if err := m.client.Flush(ctx); err != nil {
		m.cfg.Log.LogAttrs(ctx, slog.LevelWarn, "replies could not be handed to the broker", slog.Any("err", err))
	}
	if err := m.client.LeaveGroupContext(ctx); err != nil {
		m.cfg.Log.LogAttrs(ctx, slog.LevelWarn, "leave the group", slog.Any("err", err))
	}
}

// take lets the pool solve one request. It holds a slot until it is answered or dropped.
func (m *Matcher) take(r *kgo.Record) {
	m.requests.Add(1)
	m.inFlight.Add(1)
	if err := m.cfg.Secret.verify(r); err != nil {
		m.forged.Add(1)
		m.end()
		return
	}
	j, err := decodeJob(r.Value)
	if err != nil {
		m.malformed.Add(1)
		m.end()
		return
	}
	out := &reply{job: j, replica: m.cfg.Replica, via: r.Partition}
	if j.replica != "" && j.replica != m.cfg.Replica {
		out.missed = true
		m.answer(out)
		return
	}
	if !m.pool.Submit(j.request, func(d partition.Decision, err error) { m.solvedOne(out, d, err) }) {
		m.full.Add(1)
		m.end()
	}
}

func (m *Matcher) solvedOne(out *reply, d partition.Decision, err error) {
	switch {
	case errors.Is(err, partition.ErrTripMiss):
		out.missed = true
	case err != nil:
		m.failed.Add(1)
		out.failure = &failure{commit.ClassOf(err) == commit.Permanent, err.Error()}
	default:
		m.solved.Add(1)
		out.decision = d
	}
	m.answer(out)
}

// answer hands a reply to the broker and gives the request's slot back.
func (m *Matcher) answer(out *reply) {
	defer m.end()
	if out.missed {
		m.missed.Add(1)
	}
	value, err := encodeReply(out)
	if err != nil {
		m.unsent.Add(1)
		return
	}
	m.client.TryProduce(context.Background(), m.cfg.Secret.record(m.cfg.Replies, out.job.raw.Number, []byte(out.job.key), value), func(_ *kgo.Record, err error) {
		if err == nil {
			return
		}
		m.unsent.Add(1)
		if errors.Is(err, kerr.MessageTooLarge) && out.failure == nil {
			m.tooLarge(out)
		}
	})
}

// tooLarge tells that an answer does not fit: no other replica's would.
func (m *Matcher) tooLarge(out *reply) {
	short := &reply{job: out.job, replica: out.replica, via: out.via, failure: &failure{true, "the answer is larger than the topic of replies takes"}}
	if value, err := encodeReply(short); err == nil {
		m.client.TryProduce(context.Background(), m.cfg.Secret.record(m.cfg.Replies, out.job.raw.Number, []byte(out.job.key), value), nil)
	}
}

// Ready is an error until the replica is a member of its group.
func (m *Matcher) Ready() error {
	if !m.joined.Load() {
		return errors.New("starting: not yet a member of the group of matchers")
	}
	return nil
}

// Stats gives the counts so far.
func (m *Matcher) Stats() MatcherStats {
	return MatcherStats{
		Requests: m.requests.Load(), Solved: m.solved.Load(), TripMisses: m.missed.Load(), Failed: m.failed.Load(),
		Malformed: m.malformed.Load(), Forged: m.forged.Load(), Full: m.full.Load(), Unsent: m.unsent.Load(), Errors: m.errs.Load(),
		InFlight: int(m.inFlight.Load()),
	}
}
