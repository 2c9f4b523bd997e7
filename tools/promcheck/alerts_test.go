package main

import (
	"fmt"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/config"
	"github.com/prometheus/prometheus/promql/promqltest"
)

// alertExpr gives an alert's expression, on one line.
func alertExpr(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile("../../deploy/prometheus/alerts.yml")
	if err != nil {
		t.Fatal(err)
	}
	all, err := rules(text)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range all {
		if e.where == "alert "+name {
			return strings.Join(strings.Fields(e.query), " ")
		}
	}
	t.Fatalf("there is no alert %s", name)
	return ""
}

// A7, A17, A20: alerts whose expressions join what different processes say fire when they should, and only then. Prometheus's own engine judges, ten
// minutes after the series began.
func TestAlertsFire(t *testing.T) {
	const (
		bounds = `milepost_matcher_replicas_wanted{region="north",bound="min",instance="w1"} 2x20
  milepost_matcher_replicas_wanted{region="north",bound="max",instance="w1"} 3x20
  milepost_matcher_replicas_wanted{region="north",bound="min",instance="w2"} 2x20
  milepost_matcher_replicas_wanted{region="south",bound="min",instance="w1"} 0x20
`
		ready = `  milepost_matcher_ready{region="north",instance="m%d"} %dx20
`
	)
	matchers := func(states ...int) string {
		text := bounds
		for i, s := range states {
			text += fmt.Sprintf(ready, i, s)
		}
		return text
	}
	for _, c := range []struct{ name, alert, series, want string }{
		{"no matcher at all", "MilepostMatchersMissing", matchers(), `{region="north"} 2`},
		{"one of two", "MilepostMatchersMissing", matchers(1), `{region="north"} 2`},
		{"two, one of them not ready", "MilepostMatchersMissing", matchers(1, 0), `{region="north"} 2`},
		{"two", "MilepostMatchersMissing", matchers(1, 1), ``},
		{"workers that decide by themselves", "MilepostMatchersMissing", `up{job="milepost"} 1x20`, ``},
		{"three of three", "MilepostMatchersTooMany", matchers(1, 1, 1), ``},
		{"four of three", "MilepostMatchersTooMany", matchers(1, 1, 1, 1), `{region="north"} 4`},
		{
			"one in twenty sent again", "MilepostSolvingUnanswered",
			`milepost_resent_total{instance="w1"} 0+5x20
  milepost_dispatched_total{instance="w1"} 0+100x20`, ``,
		},
		{
			"one in five sent again", "MilepostSolvingUnanswered",
			`milepost_resent_total{instance="w1"} 0+20x20
  milepost_dispatched_total{instance="w1"} 0+100x20`, `{} 0.2`,
		},
		{
			"nothing to do", "MilepostSolvingUnanswered",
			`milepost_resent_total{instance="w1"} 7x20
  milepost_dispatched_total{instance="w1"} 100x20`, ``,
		},
		{"one catalog", "MilepostCatalogsDiffer", `milepost_catalog_version{instance="a"} 3x20
  milepost_catalog_version{instance="b"} 3x20`, ``},
		{"two catalogs", "MilepostCatalogsDiffer", `milepost_catalog_version{instance="a"} 3x20
  milepost_catalog_version{instance="b"} 4x20`, `{} 4`},
		{
			"forged replies", "MilepostSolvingForged",
			`milepost_solve_records_total{event="forged",instance="w1"} 0+1x20
  milepost_matcher_requests_total{event="forged",instance="m1"} 0x20`, `{instance="w1"} 10`,
		},
		{
			"a frontier that stands", "MilepostFrontierStands",
			`milepost_stable_lag_records{partition="1"} 40x20
  milepost_frontier{partition="1"} 7x20
  milepost_stable_lag_records{partition="2"} 40x20
  milepost_frontier{partition="2"} 7+1x20`, `{partition="1"} 40`,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			script := fmt.Sprintf("load 1m\n  %s\n\neval instant at 10m %s\n  %s\n", c.series, alertExpr(t, c.alert), c.want)
			promqltest.RunTest(t, script, promqltest.NewTestEngine(t, false, 5*time.Minute, 1000))
		})
	}
}

// A20: Prometheus takes its configuration, and evaluates the alerts at least as often as they could miss what they are about.
func TestPrometheusConfig(t *testing.T) {
	c, err := config.LoadFile("../../deploy/prometheus/prometheus.yml", false, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	if len(c.RuleFiles) != 1 || len(c.ScrapeConfigs) != 1 || time.Duration(c.GlobalConfig.EvaluationInterval) > time.Minute {
		t.Errorf("rules %v, %d scrapes, evaluated every %s", c.RuleFiles, len(c.ScrapeConfigs), c.GlobalConfig.EvaluationInterval)
	}
}
