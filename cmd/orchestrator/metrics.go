package main

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"milepost/internal/commit"
	"milepost/internal/consumer"
	"milepost/internal/fleet"
	"milepost/internal/partition"
	"milepost/internal/stream"
)

// metrics are the worker's Prometheus metrics. Gauges are read from the partitions at scrape; counters are the machines'
// statistics, those of ended tenures added up.
type metrics struct {
	membership consumer.Membership

	acquisitions, recoveries prometheus.Histogram
	ended                    *prometheus.CounterVec
	recovered                *prometheus.CounterVec
	fetchErrors              prometheus.Counter

	mu    sync.Mutex
	past  partition.Stats // of tenures that have ended
	parts *collector
}

func newMetrics(reg prometheus.Registerer) *metrics {
	f := promauto.With(reg)
	seconds := prometheus.ExponentialBuckets(0.001, 2, 15)
	m := &metrics{
		acquisitions: f.NewHistogram(prometheus.HistogramOpts{
			Name: "milepost_acquisition_seconds", Help: "From the group's assignment to the ownership epoch.", Buckets: seconds,
		}),
		recoveries: f.NewHistogram(prometheus.HistogramOpts{
			Name: "milepost_recovery_seconds", Help: "From the ownership epoch to the first record.", Buckets: seconds,
		}),
		ended: f.NewCounterVec(prometheus.CounterOpts{
			Name: "milepost_tenures_ended_total", Help: "Ended ownerships of partitions.",
		}, []string{"end"}),
		recovered: f.NewCounterVec(prometheus.CounterOpts{
			Name: "milepost_recovered_commits_total", Help: "Prepared commits that a former owner left.",
		}, []string{"outcome"}),
		fetchErrors: f.NewCounter(prometheus.CounterOpts{
			Name: "milepost_fetch_errors_total", Help: "Errors of fetches from the raw topic.",
		}),
	}
	m.parts = newCollector(m)
	reg.MustRegister(m.parts)
	return m
}

// observer gives what the consumer tells, counted; changed is called when the group may have changed.
func (m *metrics) observer(changed func()) consumer.Observer {
	return consumer.Observer{
		GroupChanged: changed,
		Acquired:     func(_ stream.Partition, _ stream.Epoch, took time.Duration) { m.acquisitions.Observe(took.Seconds()) },
		Recovered: func(r commit.RecoveryReport, took time.Duration) {
			m.recoveries.Observe(took.Seconds())
			m.recovered.WithLabelValues("promoted").Add(float64(r.Promoted))
			m.recovered.WithLabelValues("published").Add(float64(r.Published))
			m.recovered.WithLabelValues("failed").Add(float64(len(r.Failed)))
		},
		Ended: func(_ stream.Partition, _ stream.Epoch, released bool, cause error, r partition.Report) {
			end := "unreleased"
			switch {
			case cause == nil && released:
				end = "released"
			case cause != nil && commit.ClassOf(cause) == commit.Fenced:
				end = "fenced"
			}
			m.ended.WithLabelValues(end).Inc()
			m.mu.Lock()
			m.past = m.past.Plus(r.Stats)
			m.mu.Unlock()
		},
		FetchError: func(error) { m.fetchErrors.Inc() },
	}
}

// watch lets the collector read the running parts.
func (m *metrics) watch(c *consumer.Consumer, p *commit.Pipeline, pool *fleet.Pool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.parts.consumer, m.parts.pipeline, m.parts.pool = c, p, pool
}
