package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"milepost/internal/partition"
)

// Regions is what a scrape reads of the regions in force. Their ids, the one label that no code lists, are the catalog's.
type Regions struct {
	Usage   []partition.Usage
	Version int64 // of the catalog; 0: there is none
	Graphs  int   // at hand
}

// all is the region that stands for all of them together.
const all = "all"

// RegionMetrics are the metrics of regions.
type RegionMetrics struct {
	read     func() Regions
	lateness *prometheus.HistogramVec
	reloads  *prometheus.CounterVec

	jobs, bytes, waiting, version, graphs *prometheus.Desc
}

// NewRegions registers the metrics of regions; read is called at each scrape.
func NewRegions(reg prometheus.Registerer, read func() Regions) *RegionMetrics {
	f := promauto.With(reg)
	gauge := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("milepost_"+name, help, labels, nil)
	}
	m := &RegionMetrics{
		read: read,
		lateness: f.NewHistogramVec(prometheus.HistogramOpts{
			Name: "milepost_lateness_seconds", Help: "By how much observations missed their region's freshness budget; those in time are not recorded.",
			Buckets: prometheus.ExponentialBuckets(0.01, 4, 10), // to 44 minutes
		}, []string{"region"}),
		reloads: f.NewCounterVec(prometheus.CounterOpts{
			Name: "milepost_catalog_reloads_total", Help: "Requests to read the region catalog again.",
		}, []string{"outcome"}),
		jobs:    gauge("admission_jobs", "Jobs in flight that admission has let in.", "region"),
		bytes:   gauge("admission_bytes", "Bytes of those jobs' requests.", "region"),
		waiting: gauge("admission_waiting", "Keys whose job waits for admission.", "region"),
		version: gauge("catalog_version", "Version of the region catalog in force; 0: there is none."),
		graphs:  gauge("graphs", "Road maps at hand; more than the catalog names while vehicles move to another one."),
	}
	for _, outcome := range ReloadOutcomes() {
		m.reloads.WithLabelValues(outcome)
	}
	m.zero(read())
	reg.MustRegister(m)
	return m
}

// zero makes the series of the regions in force.
func (m *RegionMetrics) zero(now Regions) {
	for _, u := range now.Usage {
		if u.Region != "" {
			m.lateness.WithLabelValues(u.Region)
		}
	}
}

// What became of a request to read the catalog again.
const (
	ReloadTaken     = "taken"
	ReloadUnchanged = "unchanged"
	ReloadRefused   = "refused"
)

// ReloadOutcomes lists them.
func ReloadOutcomes() []string { return []string{ReloadTaken, ReloadUnchanged, ReloadRefused} }

// Late measures by how much a budget was missed.
func (m *RegionMetrics) Late(region string, by time.Duration) {
	m.lateness.WithLabelValues(region).Observe(by.Seconds())
}

// Reloaded counts a request to read the catalog again.
func (m *RegionMetrics) Reloaded(outcome string) { m.reloads.WithLabelValues(outcome).Inc() }

// Describe implements prometheus.Collector.
func (m *RegionMetrics) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{m.jobs, m.bytes, m.waiting, m.version, m.graphs} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (m *RegionMetrics) Collect(ch chan<- prometheus.Metric) {
	now := m.read()
	m.zero(now)
	set := func(d *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	for _, u := range now.Usage {
		if u.Region == "" {
			u.Region = all
		}
		set(m.jobs, float64(u.Jobs), u.Region)
		set(m.bytes, float64(u.Bytes), u.Region)
		set(m.waiting, float64(u.Waiting), u.Region)
	}
	set(m.version, float64(now.Version))
	set(m.graphs, float64(now.Graphs))
}
