package main

import (
	"github.com/prometheus/client_golang/prometheus"

	"milepost/internal/fleet"
	"milepost/internal/metrics"
	"milepost/internal/solve"
)

// registerRemote makes the metrics of a worker whose jobs are decided by matchers.
func registerRemote(reg prometheus.Registerer, stats func() solve.RemoteStats, inForce func() *territory) {
	reg.MustRegister(
		newEvents("milepost_solve_records_total", "Requests to matchers and replies of theirs, by what became of them.", func() map[string]int64 {
			n := stats()
			return map[string]int64{
				"sent": n.Sent, "unsent": n.Unsent, "replied": n.Replies, "malformed": n.Malformed, "forged": n.Forged, "stray": n.Stray,
				"fetch_error": n.Errors,
			}
		}),
		&replicaBounds{inForce: inForce, desc: prometheus.NewDesc("milepost_matcher_replicas_wanted",
			"How many matchers a region is to have at least and at most, by the catalog.", []string{"region", "bound"}, nil)},
	)
}

// replicaBounds are what the catalog in force says.
type replicaBounds struct {
	inForce func() *territory
	desc    *prometheus.Desc
}

// Describe implements prometheus.Collector.
func (b *replicaBounds) Describe(ch chan<- *prometheus.Desc) { ch <- b.desc }

// Collect implements prometheus.Collector.
func (b *replicaBounds) Collect(ch chan<- prometheus.Metric) {
	t := b.inForce()
	set := func(region, bound string, n int) {
		ch <- prometheus.MustNewConstMetric(b.desc, prometheus.GaugeValue, float64(n), region, bound)
	}
	if t.catalog == nil {
		set(fleet.DefaultRegion, "min", 1) // no more than that is known
		return
	}
	for i := range t.catalog.Regions {
		r := &t.catalog.Regions[i]
		set(r.ID, "min", r.MinReplicas)
		set(r.ID, "max", r.MaxReplicas)
	}
}

// matcherSource is what a scrape reads of a matcher.
type matcherSource struct {
	region  string
	ready   func() error
	stats   func() solve.MatcherStats
	trips   func() fleet.TripStats
	inForce func() *territory
	graphs  func() int
}

// registerMatcher makes a matcher's metrics; the labels are closed lists, but for the region, of which a matcher has one. It gives the counter
// of catalog reloads.
func registerMatcher(reg prometheus.Registerer, m matcherSource) (reloaded func(outcome string)) {
	gauge := func(name, help string, labels prometheus.Labels, read func() float64) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help, ConstLabels: labels}, read)
	}
	reloads := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "milepost_catalog_reloads_total", Help: "Requests to read the region catalog again.",
	}, []string{"outcome"})
	for _, outcome := range metrics.ReloadOutcomes() {
		reloads.WithLabelValues(outcome)
	}
	reg.MustRegister(
		newEvents("milepost_matcher_requests_total", "Requests, by what became of them.", func() map[string]int64 {
			n := m.stats()
			return map[string]int64{
				"taken": n.Requests, "solved": n.Solved, "trip_miss": n.TripMisses, "failed": n.Failed, "malformed": n.Malformed,
				"forged": n.Forged, "no_room": n.Full, "unsent": n.Unsent, "fetch_error": n.Errors,
			}
		}),
		newEvents("milepost_trip_cache_lookups_total", "Look-ups of trips that a request came without.", func() map[string]int64 {
			n := m.trips()
			return map[string]int64{"hit": n.Hits, "miss": n.Misses, "mismatch": n.Mismatches}
		}),
		gauge("milepost_matcher_ready", "1: the matcher is a member of its region's group.", prometheus.Labels{"region": m.region}, func() float64 {
			if m.ready() != nil {
				return 0
			}
			return 1
		}),
		gauge("milepost_matcher_in_flight", "Requests that are taken and not answered.", nil, func() float64 { return float64(m.stats().InFlight) }),
		gauge("milepost_trip_cache_bytes", "Memory of the trips that are kept.", nil, func() float64 { return float64(m.trips().Bytes) }),
		gauge("milepost_trip_cache_trips", "Trips that are kept.", nil, func() float64 { return float64(m.trips().Trips) }),
		gauge("milepost_catalog_version", "Version of the region catalog in force; 0: there is none.", nil,
			func() float64 { return float64(m.inForce().version()) }),
		gauge("milepost_graphs", "Road maps at hand; more than the catalog names while vehicles move to another one.", nil,
			func() float64 { return float64(m.graphs()) }),
		reloads,
	)
	return func(outcome string) { reloads.WithLabelValues(outcome).Inc() }
}
