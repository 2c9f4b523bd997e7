package matchapi

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// metrics are what the interface counts; the labels are a closed list.
type metrics struct {
	requests *prometheus.CounterVec
	seconds  prometheus.Histogram
	points   prometheus.Counter
}

func newMetrics(reg prometheus.Registerer) *metrics {
	with := promauto.With(reg)
	m := &metrics{
		requests: with.NewCounterVec(prometheus.CounterOpts{
			Name: "milepost_match_requests_total", Help: "Requests to match a whole trace, by what became of them.",
		}, []string{"outcome"}),
		seconds: with.NewHistogram(prometheus.HistogramOpts{
			Name: "milepost_match_request_seconds", Help: "Time from the head of a request to its answer, of those that were answered with a match.",
			Buckets: []float64{0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 60},
		}),
		points: with.NewCounter(prometheus.CounterOpts{Name: "milepost_match_points_total", Help: "Points of whole traces that were matched."}),
	}
	for _, outcome := range append([]string{"ok", "client_gone"}, Codes()...) {
		m.requests.WithLabelValues(outcome)
	}
	return m
}

func (m *metrics) done(outcome string, took time.Duration) {
	m.requests.WithLabelValues(outcome).Inc()
	if outcome == "ok" {
		m.seconds.Observe(took.Seconds())
	}
}
