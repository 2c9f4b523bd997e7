package consumer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"milepost/internal/commit"
	"milepost/internal/partition"
	"milepost/internal/stream"
)

// Consumer is one process's membership in the raw topic's group, over as many sessions as it takes.
type Consumer struct {
	cfg  Config
	deps Deps
	log  *slog.Logger

	workload atomic.Pointer[partition.Workload] // in force; see Replace

	// Shared by all workers, so that partitions' writes share statements.
	promotions  *batcher[promotion]
	persists    *batcher[persisting]
	frontiers   *batcher[frontierSave]
	quarantines *batcher[quarantining]

	mu        sync.Mutex
	session   *session                              // nil between sessions
	unsettled map[stream.Partition][]*commit.Tenure // own ended tenures that may have commits in the pipeline (G5)
}

// New checks the configuration and makes a consumer that has not joined yet.
func New(cfg Config, deps Deps) (*Consumer, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if cfg.StateRetention > 0 && (deps.Retention == nil || deps.Tail == nil) {
		return nil, errors.New("consumer: a state retention needs a store that lets go of states, and a workload's tail")
	}
	// The machine ends its drain by itself shortly before the consumer would drop it, so that its report is whole.
	cfg.Partition.DrainGrace = min(cfg.Partition.DrainGrace, max(cfg.DrainGrace-2*cfg.Partition.Tick, cfg.DrainGrace/2))
	if deps.Membership == nil {
		deps.Membership = &Membership{}
	}
	c := &Consumer{
		cfg: cfg, deps: deps,
		log:       deps.Log.With(slog.String("group", cfg.Group), slog.String("topic", cfg.Topic)),
		unsettled: map[stream.Partition][]*commit.Tenure{},
	}
	c.workload.Store(&deps.Workload)
	return c, nil
}

// Run joins the group and works until ctx ends; then it drains every partition, releases them, leaves the group and returns
// nil. It returns an error only when going on would be wrong or useless: a *commit.RefusedError, ErrStuck, a client
// that cannot be made; and, after ctx has ended, a *commit.FencedError when ownership was lost during the final drain, or one
// that wraps ErrUnreleased.
func (c *Consumer) Run(ctx context.Context) error {
	// The work outlives the intake: drains run after ctx has ended.
	work, stop := context.WithCancel(context.WithoutCancel(ctx))
	c.persists = newBatcher(1, 100, func(b []persisting) { c.persist(work, b) })
	c.promotions = newBatcher(1, 1000, func(b []promotion) { c.promote(work, b) })
	c.frontiers = newBatcher(1, 1000, func(b []frontierSave) { c.saveFrontiers(work, b) })
	c.quarantines = newBatcher(1, 200, func(b []quarantining) { c.quarantine(work, b) })
	defer func() {
		stop()
		c.promotions.wait()
		c.persists.wait()
		c.frontiers.wait()
		c.quarantines.wait()
	}()
	for attempt := 0; ; attempt++ {
		err := c.runSession(ctx, work)
		if !errors.Is(err, errLeave) {
			return err
		}
		pause := c.backoff(attempt)
		c.log.WarnContext(ctx, "left the group; joining again", slog.Any("err", err), slog.Duration("backoff", pause))
		if !sleep(ctx, pause) {
			return nil
		}
	}
}

// runSession is one membership, from joining to having left.
func (c *Consumer) runSession(ctx, work context.Context) error {
	s, err := c.newSession(work)
	if err != nil {
		return fmt.Errorf("join group %s: %w", c.cfg.Group, err)
	}
	c.mu.Lock()
	c.session = s
	c.mu.Unlock()
	defer func() {
		c.deps.Membership.client.Store(nil)
		c.mu.Lock()
		c.session = nil
		c.mu.Unlock()
	}()
	return s.run(ctx, work)
}

// noteUnsettled remembers an ended tenure that may still have commits in the pipeline.
func (c *Consumer) noteUnsettled(t *commit.Tenure) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.unsettled[t.Partition] = append(c.unsettled[t.Partition], t)
}

// settleOlder waits until no commit of this process's older tenures of the partitions is in the pipeline (G5).
func (c *Consumer) settleOlder(ctx context.Context, ps []stream.Partition) error {
	var older []*commit.Tenure
	c.mu.Lock()
	for _, p := range ps {
		older = append(older, c.unsettled[p]...)
	}
	c.mu.Unlock()
	if len(older) == 0 {
		return nil
	}
	if err := c.deps.Pipeline.Settle(ctx, older); err != nil {
		return fmt.Errorf("settle %d older tenures of this process: %w", len(older), err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range ps {
		delete(c.unsettled, p)
	}
	return nil
}

// backoff doubles from the shortest to the longest, with up to a quarter of jitter.
func (c *Consumer) backoff(attempt int) time.Duration {
	d := c.cfg.AcquireRetryMin << min(attempt, 20)
	if d <= 0 || d > c.cfg.AcquireRetryMax {
		d = c.cfg.AcquireRetryMax
	}
	return d + c.jitter(d/4)
}

// jitter gives a duration in [0, limit).
func (c *Consumer) jitter(limit time.Duration) time.Duration {
	var b [2]byte
	if _, err := c.deps.Rand.Read(b[:]); err != nil || limit <= 0 {
		return 0
	}
	return limit * time.Duration(uint16(b[0])<<8|uint16(b[1])) >> 16
}

// sleep waits; false means that ctx ended first.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
