package main

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"milepost/internal/commit"
	"milepost/internal/fleet"
	"milepost/internal/fleet/catalog"
	"milepost/internal/matchapi"
	"milepost/internal/metrics"
	"milepost/internal/solve"
	"milepost/internal/stream"
)

// onePartition is a source of metrics with a partition, so that every series shows.
type onePartition struct{ *meters }

func (onePartition) Partitions() []metrics.Partition {
	return []metrics.Partition{{Name: stream.Partition{Topic: "raw", Number: 0}, State: "running", Epoch: 1}}
}

// listMetrics gives each metric's name, type, labels with their values, and meaning, a line each.
func listMetrics(t *testing.T) string {
	t.Helper()
	worker, matcher := prometheus.NewRegistry(), prometheus.NewRegistry()
	m := newMetrics(worker, workloadFleet)
	m.Publisher(noLanes{})
	m.Watch(onePartition{m})
	inForce := func() *territory {
		return &territory{catalog: &catalog.Catalog{Regions: []catalog.Region{{ID: fleet.DefaultRegion}}}}
	}
	registerRemote(worker, func() solve.RemoteStats { return solve.RemoteStats{} }, inForce)
	registerMatcher(matcher, matcherSource{
		region: fleet.DefaultRegion, ready: func() error { return nil }, stats: func() solve.MatcherStats { return solve.MatcherStats{} },
		trips: func() fleet.TripStats { return fleet.TripStats{} }, inForce: func() *territory { return &territory{} }, graphs: func() int { return 1 },
	})
	if _, err := matchapi.New(nil, matchapi.DefaultConfig(), matcher, slog.New(slog.DiscardHandler)); err != nil {
		t.Fatal(err)
	}
	families, err := worker.Gather()
	ofMatcher, matcherErr := matcher.Gather()
	if err := errors.Join(err, matcherErr); err != nil {
		t.Fatal(err)
	}
	for _, f := range ofMatcher {
		i := 0
		for i < len(families) && families[i].GetName() < f.GetName() {
			i++
		}
		if i < len(families) && families[i].GetName() == f.GetName() {
			if families[i].GetHelp() != f.GetHelp() || families[i].GetType() != f.GetType() {
				t.Errorf("a worker's and a matcher's %s differ", f.GetName())
			}
			continue
		}
		families = slices.Insert(families, i, f)
	}
	var b strings.Builder
	for _, f := range families {
		values := map[string][]string{}
		for _, series := range f.GetMetric() {
			for _, l := range series.GetLabel() {
				values[l.GetName()] = append(values[l.GetName()], l.GetValue())
			}
		}
		fmt.Fprintf(&b, "%s %s\n", f.GetName(), strings.ToLower(f.GetType().String()))
		fmt.Fprintf(&b, "    %s\n", f.GetHelp())
		for _, label := range slices.Sorted(maps.Keys(values)) {
			list := values[label]
			slices.Sort(list)
			fmt.Fprintf(&b, "    %s: %s\n", label, strings.Join(slices.Compact(list), " "))
		}
	}
	return b.String()
}

type noLanes struct{ commit.Publisher }

func (noLanes) Lanes() int { return 0 }

// A17: the names, labels, label values and meanings of all metrics, as dashboards and alerts rely on them.
func TestMetricsList(t *testing.T) { golden(t, "metrics.txt", listMetrics(t)) }

// A17: dashboards and alerts ask for metrics that exist. That they are PromQL and PromQL of the right kind is checked by
// tools/promcheck, with Prometheus's own parser.
func TestDashboardsAskForWhatExists(t *testing.T) {
	known := map[string]bool{}
	for line := range strings.Lines(listMetrics(t)) {
		name, kind, ok := strings.Cut(strings.TrimSpace(line), " ")
		if !ok || line[0] == ' ' {
			continue
		}
		known[name] = true
		if kind == "histogram" {
			known[name+"_bucket"], known[name+"_sum"], known[name+"_count"] = true, true, true
		}
	}
	asked := regexp.MustCompile(`milepost_[a-z_]+`)
	for _, file := range []string{"grafana/milepost.json", "prometheus/alerts.yml"} {
		text, err := os.ReadFile(filepath.Join("..", "..", "deploy", filepath.FromSlash(file)))
		if err != nil {
			t.Fatal(err)
		}
		names := asked.FindAllString(string(text), -1)
		if len(names) < 10 {
			t.Errorf("%s asks for %d metrics only", file, len(names))
		}
		for _, name := range names {
			if !known[name] {
				t.Errorf("%s asks for %s, which does not exist", file, name)
			}
		}
	}
}
