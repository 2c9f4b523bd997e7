package metrics

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"milepost/internal/commit"
	"milepost/internal/partition"
	"milepost/internal/stream"
)

// The stages that are timed.
const (
	stageRestore    = "restore"
	stageSolve      = "solve" // from handing a job out to its answer
	stagePlan       = "plan"
	stagePrepare    = "prepare"
	stagePublish    = "publish"
	stagePromote    = "promote"
	stageFrontier   = "frontier"
	stageQuarantine = "quarantine"
)

// Stages lists the stages of a record that are timed.
func Stages() []string {
	return []string{
		stageRestore, stageSolve, stagePlan, stagePrepare, stagePublish, stagePromote, stageFrontier, stageQuarantine,
	}
}

// Metrics are a worker's metrics.
type Metrics struct {
	lists partition.Lists

	acquisitions, recoveries, latency prometheus.Histogram
	stages, turns, batches            *prometheus.HistogramVec
	ended, recovered, transactions    *prometheus.CounterVec
	solverErrors, stageErrors         *prometheus.CounterVec
	fetchErrors, gaps, differences    prometheus.Counter
	lost, expired                     prometheus.Counter
	lanes                             lanes

	mu      sync.Mutex
	source  Source
	past    counts                            // of tenures that have ended
	ends    map[stream.Partition]stream.Epoch // the last ended one
	highest counts                            // that were scraped
}

// counts are the machines' counters.
type counts struct {
	stats   partition.Stats
	reasons partition.Reasons
}

func (c counts) plus(s partition.Stats, r partition.Reasons) counts {
	return counts{stats: c.stats.Plus(s), reasons: c.reasons.Plus(r)}
}

// Config says what is known beforehand.
type Config struct {
	Reasons partition.Lists // the workload's closed lists
	Turns   []string        // the kinds of turns of a worker's loop
}

// New registers the metrics. Until Watch is called the partitions' are empty.
func New(reg prometheus.Registerer, cfg Config) *Metrics {
	f := promauto.With(reg)
	seconds := prometheus.ExponentialBuckets(0.0005, 2, 16) // 0.5 ms to 16 s
	histogram := func(name, help string, buckets []float64) prometheus.Histogram {
		return f.NewHistogram(prometheus.HistogramOpts{Name: "milepost_" + name, Help: help, Buckets: buckets})
	}
	histograms := func(name, help, label string, buckets []float64) *prometheus.HistogramVec {
		return f.NewHistogramVec(prometheus.HistogramOpts{Name: "milepost_" + name, Help: help, Buckets: buckets}, []string{label})
	}
	counter := func(name, help string) prometheus.Counter {
		return f.NewCounter(prometheus.CounterOpts{Name: "milepost_" + name, Help: help})
	}
	counters := func(name, help, label string) *prometheus.CounterVec {
		return f.NewCounterVec(prometheus.CounterOpts{Name: "milepost_" + name, Help: help}, []string{label})
	}
	m := &Metrics{
		lists:        cfg.Reasons,
		ends:         map[stream.Partition]stream.Epoch{},
		acquisitions: histogram("acquisition_seconds", "From the group's assignment to the ownership epoch.", seconds),
		recoveries:   histogram("recovery_seconds", "From the ownership epoch to the first record.", seconds),
		latency: histogram("commit_latency_seconds", "From a record's Kafka timestamp to its outputs being durable; negative ones are not recorded.",
			prometheus.ExponentialBuckets(0.001, 2, 18)), // to 131 s
		stages:  histograms("stage_seconds", "Time in a stage: a query, a transaction, a job's round trip; of plan, one in 32.", "stage", prometheus.ExponentialBuckets(0.00005, 2, 20)),
		turns:   histograms("loop_turn_seconds", "Turns of partitions' loops by what they were given; one in 32, but every tick.", "kind", prometheus.ExponentialBuckets(0.000002, 4, 12)),
		batches: histograms("batch_commits", "Commits that share a statement or a transaction.", "stage", prometheus.ExponentialBuckets(1, 2, 12)),
		ended:   counters("tenures_ended_total", "Ended ownerships of partitions.", "end"),
		recovered: counters("recovered_commits_total",
			"Prepared commits that a former owner left.", "outcome"),
		transactions: counters("publications_total", "Calls of a lane to publish a batch: Kafka transactions, unless the publish mode is idempotent.", "outcome"),
		solverErrors: counters("solver_errors_total", "Jobs that were answered with an error, by its class.", "class"),
		stageErrors:  counters("stage_errors_total", "Statements and publications that failed as a whole; they are tried again.", "stage"),
		fetchErrors:  counter("fetch_errors_total", "Errors of fetches from the raw topic."),
		gaps:         counter("fetch_gaps_total", "Fetches that did not begin at the expected offset and were fetched again."),
		differences:  counter("offset_differences_total", "Acquisitions that found the group's committed offset elsewhere than the frontier; the frontier counts."),
		lost:         counter("lost_observations_total", "Observations that retention deleted before they were done, passed over by --on-data-loss reset."),
		expired:      counter("expired_states_total", "States of keys that were let go of by --state-retention; their keys' next observations begin a segment."),
	}
	m.zero(cfg.Turns)
	reg.MustRegister(newCollector(m))
	return m
}

// zero makes every series that is known beforehand (Q6).
func (m *Metrics) zero(turns []string) {
	for _, s := range Stages() {
		m.stages.WithLabelValues(s)
		if s != stageSolve && s != stagePlan {
			m.stageErrors.WithLabelValues(s)
		}
	}
	for _, k := range turns {
		m.turns.WithLabelValues(k)
	}
	for _, s := range []string{stagePrepare, stagePublish, stagePromote, stageRestore} {
		m.batches.WithLabelValues(s)
	}
	for _, e := range []string{endReleased, endFenced, endUnreleased} {
		m.ended.WithLabelValues(e)
	}
	for _, o := range []string{"promoted", "published", "failed"} {
		m.recovered.WithLabelValues(o)
	}
	for _, o := range []string{publishedAll, publishedPart, publishedNone, publishedUnknown} {
		m.transactions.WithLabelValues(o)
	}
	for c := commit.Transient; c <= commit.Poison; c++ {
		m.solverErrors.WithLabelValues(c.String())
	}
}

// How tenures end.
const (
	endReleased   = "released"
	endFenced     = "fenced"
	endUnreleased = "unreleased"
)

// Acquired counts an acquisition.
func (m *Metrics) Acquired(_ stream.Partition, _ stream.Epoch, took time.Duration) {
	m.acquisitions.Observe(took.Seconds())
}

// Recovered counts a recovery.
func (m *Metrics) Recovered(r commit.RecoveryReport, took time.Duration) {
	m.recoveries.Observe(took.Seconds())
	m.recovered.WithLabelValues("promoted").Add(float64(r.Promoted))
	m.recovered.WithLabelValues("published").Add(float64(r.Published))
	m.recovered.WithLabelValues("failed").Add(float64(len(r.Failed)))
}

// Ended counts the end of a tenure and keeps what its machine has counted.
func (m *Metrics) Ended(p stream.Partition, epoch stream.Epoch, released bool, cause error, r partition.Report) {
	end := endUnreleased
	switch {
	case cause == nil && released:
		end = endReleased
	case cause != nil && commit.ClassOf(cause) == commit.Fenced:
		end = endFenced
	}
	m.ended.WithLabelValues(end).Inc()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.past = m.past.plus(r.Stats, r.Reasons)
	m.ends[p] = max(m.ends[p], epoch)
}

// FetchError counts an error of a fetch.
func (m *Metrics) FetchError(error) { m.fetchErrors.Inc() }

// Gap counts a fetch that did not begin where it should.
func (m *Metrics) Gap(stream.Partition, int64, int64) { m.gaps.Inc() }

// Difference counts a committed offset that is not the frontier.
func (m *Metrics) Difference(stream.Partition, int64, int64) { m.differences.Inc() }

// DataLoss counts observations that retention deleted before they were done.
func (m *Metrics) DataLoss(_ stream.Partition, frontier, start int64) {
	m.lost.Add(float64(start - frontier))
}

// Expired counts states that were let go of by their age.
func (m *Metrics) Expired(n int) { m.expired.Add(float64(n)) }

// Solved measures a job's round trip.
func (m *Metrics) Solved(took time.Duration, err error) {
	m.stages.WithLabelValues(stageSolve).Observe(took.Seconds())
	if err != nil {
		m.solverErrors.WithLabelValues(commit.ClassOf(err).String()).Inc()
	}
}

// Committed measures from a record's Kafka timestamp to its commit. Negative ones are dropped (Q5).
func (m *Metrics) Committed(latency time.Duration) {
	if latency >= 0 {
		m.latency.Observe(latency.Seconds())
	}
}

// Turned measures a turn of a loop.
func (m *Metrics) Turned(kind string, took time.Duration) {
	m.turns.WithLabelValues(kind).Observe(took.Seconds())
}
