package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const list = "../../cmd/orchestrator/testdata/metrics.txt"

// A17: every panel's and every alert's query is PromQL and asks for what the worker has.
func TestDeploy(t *testing.T) {
	checked, err := run(list, []string{"../../deploy/grafana/milepost.json", "../../deploy/prometheus/alerts.yml"})
	if err != nil {
		t.Error(err)
	}
	if checked < 50 {
		t.Errorf("only %d expressions were checked", checked)
	}
}

// What is wrong is found, and named.
func TestMistakesAreFound(t *testing.T) {
	known, err := readMetrics(list)
	if err != nil {
		t.Fatal(err)
	}
	for query, want := range map[string]string{
		`rate(milepost_committed_total[5m]`:                        "does not parse",
		`rate(milepost_no_such_total[5m])`:                         "no such metric",
		`milepost_committed_total`:                                 "ask for its rate",
		`rate(milepost_frontier[5m])`:                              "which is a gauge",
		`milepost_keys{stat="blocked"}`:                            "has no label stat",
		`milepost_keys{state="bloked"}`:                            `never "bloked"`,
		`milepost_keys{state=~"b.*x"}`:                             `never matches "b.*x"`,
		`sum by (reason) (milepost_keys)`:                          "nothing there has that label",
		`sum(rate(milepost_commit_latency_seconds[5m]))`:           "no such metric",
		`sum by (partition) (milepost_lag_records{partition="4"})`: "",
		`histogram_quantile(0.9, sum by (le, stage) (rate(milepost_stage_seconds_bucket{stage=~"p.*"}[5m])))`: "",
	} {
		problems := known.check(query)
		switch {
		case want == "" && len(problems) > 0:
			t.Errorf("%s: %v, want nothing", query, problems)
		case want != "" && (len(problems) == 0 || !strings.Contains(problems[0].Error(), want)):
			t.Errorf("%s: %v, want %q", query, problems, want)
		}
	}
}

// Files that are not what they should be are refused whole.
func TestBrokenFiles(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"a.json": {`{"panels":[{"id":1,"title":"a","type":"stat"}]}`, "asks for nothing"},
		"b.json": {`{"panels":[{"id":1,"title":"a","type":"row"},{"id":1,"title":"b","type":"row"}]}`, "have one id"},
		"c.json": {`{`, "unexpected end"},
		"d.yml":  {"groups: [{name: g, rules: [{alert: A, expr: 'up == 0'}]}]", "lacks a summary"},
		"e.yml":  {"groups: [{name: g, rules: [{record: r, expr: 'up'}]}]", "no alert"},
		"f.yml":  {"groups: [{name: g, rules: [{alert: A, expr: 'up =='}]}]", "parse error"},
	} {
		file := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(file, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := run(list, []string{file}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}
