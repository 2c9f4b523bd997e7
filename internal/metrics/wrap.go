package metrics

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"milepost/internal/commit"
	"milepost/internal/partition"
	"milepost/internal/stream"
)

// planSample is how many plans one is timed of: a plan takes microseconds, and there is one an observation.
const planSample = 32

// timed measures a stage's call and counts its failure.
func (m *Metrics) timed(stage string, began time.Time, err error) {
	m.stages.WithLabelValues(stage).Observe(time.Since(began).Seconds())
	if err != nil {
		m.stageErrors.WithLabelValues(stage).Inc()
	}
}

// Store measures every statement of a store.
func (m *Metrics) Store(s commit.Store) commit.Store { return &timedStore{Store: s, m: m} }

type timedStore struct {
	commit.Store
	m *Metrics
}

func (t *timedStore) Prepare(ctx context.Context, batch []commit.Commit) ([]commit.PrepareVerdict, error) {
	began := time.Now()
	verdicts, err := t.Store.Prepare(ctx, batch)
	t.m.timed(stagePrepare, began, err)
	t.m.batches.WithLabelValues(stagePrepare).Observe(float64(len(batch)))
	return verdicts, err
}

func (t *timedStore) Promote(ctx context.Context, batch []commit.Promotion) ([]error, error) {
	began := time.Now()
	errs, err := t.Store.Promote(ctx, batch)
	t.m.timed(stagePromote, began, err)
	t.m.batches.WithLabelValues(stagePromote).Observe(float64(len(batch)))
	return errs, err
}

func (t *timedStore) Restore(ctx context.Context, tenure *commit.Tenure, keys []stream.Key) ([]commit.Restored, error) {
	began := time.Now()
	rows, err := t.Store.Restore(ctx, tenure, keys)
	t.m.timed(stageRestore, began, err)
	t.m.batches.WithLabelValues(stageRestore).Observe(float64(len(keys)))
	return rows, err
}

func (t *timedStore) SaveFrontier(ctx context.Context, batch []commit.FrontierWrite) ([]error, error) {
	began := time.Now()
	errs, err := t.Store.SaveFrontier(ctx, batch)
	t.m.timed(stageFrontier, began, err)
	return errs, err
}

func (t *timedStore) Quarantine(ctx context.Context, batch []commit.Quarantined) ([]error, error) {
	began := time.Now()
	errs, err := t.Store.Quarantine(ctx, batch)
	t.m.timed(stageQuarantine, began, err)
	return errs, err
}

// Workload measures how long plans take, one of many.
func (m *Metrics) Workload(w partition.Workload) partition.Workload {
	return &timedWorkload{Workload: w, m: m}
}

type timedWorkload struct {
	partition.Workload
	m     *Metrics
	plans atomic.Uint64
}

func (t *timedWorkload) Plan(k partition.KeyState, o partition.Observation, d partition.Decision) (commit.Plan, error) {
	if t.plans.Add(1)%planSample != 1 {
		return t.Workload.Plan(k, o, d)
	}
	began := time.Now()
	p, err := t.Workload.Plan(k, o, d)
	t.m.stages.WithLabelValues(stagePlan).Observe(time.Since(began).Seconds())
	return p, err
}

// How a publication ended.
const (
	publishedAll     = "all"
	publishedPart    = "part"
	publishedNone    = "none"
	publishedUnknown = "unknown" // it was ended before it was known
)

// Publisher measures every transaction of a publisher and what its lanes are doing.
func (m *Metrics) Publisher(p commit.Publisher) commit.Publisher {
	m.lanes.reset(p.Lanes())
	return &timedPublisher{Publisher: p, m: m}
}

type timedPublisher struct {
	commit.Publisher
	m *Metrics
}

func (t *timedPublisher) Publish(ctx context.Context, lane int, batch []commit.Commit) (commit.Published, error) {
	began := time.Now()
	t.m.lanes.set(lane, laneBusy)
	out, err := t.Publisher.Publish(ctx, lane, batch)
	outcome, state := publishedAll, laneIdle
	switch {
	case err != nil:
		outcome, state = publishedUnknown, laneFailing
	case len(out.Failed) == len(batch):
		outcome, state = publishedNone, laneFailing
	case len(out.Failed) > 0:
		outcome = publishedPart
	}
	t.m.lanes.set(lane, state)
	t.m.stages.WithLabelValues(stagePublish).Observe(time.Since(began).Seconds())
	if state == laneFailing {
		t.m.stageErrors.WithLabelValues(stagePublish).Inc()
	}
	t.m.transactions.WithLabelValues(outcome).Inc()
	t.m.batches.WithLabelValues(stagePublish).Observe(float64(len(batch)))
	return out, err
}

// What a lane is doing.
const (
	laneIdle    = "idle"
	laneBusy    = "publishing"
	laneFailing = "failing" // its last call published nothing
)

// lanes remembers what each lane is doing.
type lanes struct {
	mu     sync.Mutex
	states []string
}

func (l *lanes) reset(n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.states = make([]string, n)
	for i := range l.states {
		l.states[i] = laneIdle
	}
}

func (l *lanes) set(lane int, state string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if lane >= 0 && lane < len(l.states) {
		l.states[lane] = state
	}
}

func (l *lanes) count() map[string]int {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := map[string]int{laneIdle: 0, laneBusy: 0, laneFailing: 0}
	for _, s := range l.states {
		n[s]++
	}
	return n
}
