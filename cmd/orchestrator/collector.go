package main

import (
	"strconv"

	"github.com/prometheus/client_golang/prometheus"

	"milepost/internal/commit"
	"milepost/internal/consumer"
	"milepost/internal/fleet"
	"milepost/internal/partition"
)

// collector reads the partitions at each scrape, so that series of a partition that is gone are gone too (P33).
type collector struct {
	metrics  *metrics
	consumer *consumer.Consumer
	pipeline *commit.Pipeline
	pool     *fleet.Pool

	events, frontier, epoch, keys, queued, oldest, waiting *prometheus.Desc
}

func newCollector(m *metrics) *collector {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("milepost_"+name, help, labels, nil)
	}
	return &collector{
		metrics:  m,
		events:   desc("events_total", "What became of observations, jobs and commits, since the process started.", "event"),
		frontier: desc("frontier", "Next offset to do; everything below it is durably done.", "partition"),
		epoch:    desc("ownership_epoch", "Ownership epoch of a partition of this process.", "partition"),
		keys:     desc("keys", "Keys in memory, by what they do.", "state"),
		queued:   desc("queued_observations", "Observations in hand that wait for their turn."),
		oldest:   desc("oldest_pending_timestamp_seconds", "Since when the oldest observation in hand waits, as Unix time; 0: none."),
		waiting:  desc("pipeline_commits", "Commits that wait in a stage.", "stage"),
	}
}

// Describe implements prometheus.Collector.
func (c *collector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{c.events, c.frontier, c.epoch, c.keys, c.queued, c.oldest, c.waiting} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (c *collector) Collect(ch chan<- prometheus.Metric) {
	c.metrics.mu.Lock()
	cons, pipeline, pool, sum := c.consumer, c.pipeline, c.pool, c.metrics.past
	c.metrics.mu.Unlock()
	if cons == nil {
		return
	}
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	var all partition.View
	oldest := 0.0
	for _, s := range cons.Status() {
		number := strconv.Itoa(int(s.Partition.Number))
		gauge(c.frontier, float64(s.Saved), number)
		gauge(c.epoch, float64(s.Epoch), number)
		all.Keys += s.View.Keys
		all.Waiting += s.View.Waiting
		all.Active += s.View.Active
		all.Committing += s.View.Committing
		all.Blocked += s.View.Blocked
		all.Quarantined += s.View.Quarantined
		all.Queued += s.View.Queued
		if t := s.View.OldestPending; !t.IsZero() && (oldest == 0 || float64(t.UnixMilli())/1000 < oldest) {
			oldest = float64(t.UnixMilli()) / 1000
		}
		sum = sum.Plus(s.View.Stats)
	}
	for name, v := range sum.All() {
		ch <- prometheus.MustNewConstMetric(c.events, prometheus.CounterValue, float64(v), name)
	}
	for state, n := range map[string]int{
		"known": all.Keys, "waiting": all.Waiting, "solving": all.Active, "committing": all.Committing,
		"blocked": all.Blocked, "quarantined": all.Quarantined,
	} {
		gauge(c.keys, float64(n), state)
	}
	gauge(c.queued, float64(all.Queued))
	gauge(c.oldest, oldest)
	prepare, publish := pipeline.Depth()
	gauge(c.waiting, float64(prepare), "prepare")
	gauge(c.waiting, float64(publish), "publish")
	gauge(c.waiting, float64(pool.Queued()), "solve")
}
