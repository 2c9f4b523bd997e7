// Command promcheck reads dashboards and alert rules as Prometheus would, and checks them against the list of metrics that
// the worker has: every expression parses, every metric, label and listed label value exists, rates are of counters only.
//
//	promcheck METRICS FILE…
//
// METRICS is the golden list of cmd/orchestrator; a FILE ending in .json is a Grafana dashboard, one ending in .yml has
// Prometheus rules. It is a module of its own so that nobody who builds the worker needs Prometheus.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
)

func main() {
	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, "usage: promcheck METRICS FILE…")
		os.Exit(2)
	}
	checked, err := run(os.Args[1], os.Args[2:])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Printf("promcheck: %d expressions\n", checked)
}

// run checks files and returns how many expressions they have.
func run(list string, files []string) (int, error) {
	known, err := readMetrics(list)
	if err != nil {
		return 0, err
	}
	checked := 0
	var problems []error
	for _, file := range files {
		exprs, err := expressions(file)
		if err != nil {
			problems = append(problems, fmt.Errorf("%s: %w", file, err))
			continue
		}
		for _, e := range exprs {
			checked++
			for _, err := range known.check(e.query) {
				problems = append(problems, fmt.Errorf("%s: %s: %w\n    %s", file, e.where, err, e.query))
			}
		}
	}
	return checked, errors.Join(problems...)
}

// metric is one of the list.
type metric struct {
	kind   string
	labels map[string][]string
}

// metrics are all of the list, histograms by the series that they consist of.
type metrics map[string]metric

// outside are metrics that are not the worker's own list: those of the scrape, of the process and of the runtime.
func outside() metrics {
	return metrics{
		"up":                            {kind: "gauge"},
		"process_cpu_seconds_total":     {kind: "counter"},
		"process_resident_memory_bytes": {kind: "gauge"},
		"process_open_fds":              {kind: "gauge"},
		"process_start_time_seconds":    {kind: "gauge"},
		"go_goroutines":                 {kind: "gauge"},
	}
}

// readMetrics reads the list: a line "name kind", then indented its meaning and a line "label: value value" a label.
func readMetrics(file string) (metrics, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	known := outside()
	var current metric
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		line := lines.Text()
		if !strings.HasPrefix(line, " ") {
			name, kind, _ := strings.Cut(line, " ")
			current = metric{kind: kind, labels: map[string][]string{}}
			if kind != "histogram" {
				known[name] = current
				continue
			}
			for _, suffix := range []string{"_bucket", "_sum", "_count"} {
				known[name+suffix] = metric{kind: "counter", labels: current.labels}
			}
			continue
		}
		if label, values, ok := strings.Cut(strings.TrimSpace(line), ": "); ok && !strings.Contains(label, " ") {
			current.labels[label] = strings.Fields(values)
		}
	}
	return known, lines.Err()
}

// scraped are labels that the scrape adds, and le, which buckets have.
func scraped() []string { return []string{"job", "instance", "le"} }

// check returns what is wrong with a query.
func (known metrics) check(query string) []error {
	expr, err := parser.NewParser(parser.Options{}).ParseExpr(query)
	if err != nil {
		return []error{fmt.Errorf("does not parse: %w", err)}
	}
	var problems []error
	parser.Inspect(expr, func(node parser.Node, path []parser.Node) error {
		selector, ok := node.(*parser.VectorSelector)
		if !ok {
			return nil
		}
		m, ok := known[selector.Name]
		if !ok {
			problems = append(problems, fmt.Errorf("no such metric: %s", selector.Name))
			return nil
		}
		for _, matcher := range selector.LabelMatchers {
			if err := m.checkMatcher(matcher); err != nil {
				problems = append(problems, fmt.Errorf("%s: %w", selector.Name, err))
			}
		}
		if call := callOf(path); call != "" {
			if counts := slices.Contains([]string{"rate", "irate", "increase"}, call); counts != (m.kind == "counter") && counts {
				problems = append(problems, fmt.Errorf("%s of %s, which is a %s", call, selector.Name, m.kind))
			}
		} else if m.kind == "counter" {
			problems = append(problems, fmt.Errorf("%s is a counter; ask for its rate or increase", selector.Name))
		}
		return nil
	})
	return append(problems, known.checkLabels(expr)...)
}

func (m metric) checkMatcher(matcher *labels.Matcher) error {
	if matcher.Name == model.MetricNameLabel || slices.Contains(scraped(), matcher.Name) {
		return nil
	}
	values, ok := m.labels[matcher.Name]
	switch {
	case !ok:
		return fmt.Errorf("has no label %s", matcher.Name)
	case matcher.Name == "partition":
		return nil // numbers
	case matcher.Type == labels.MatchEqual && !slices.Contains(values, matcher.Value):
		return fmt.Errorf("label %s is never %q", matcher.Name, matcher.Value)
	case matcher.Type == labels.MatchRegexp && !slices.ContainsFunc(values, matcher.Matches):
		return fmt.Errorf("label %s never matches %q", matcher.Name, matcher.Value)
	}
	return nil
}

// callOf is the function that a selector's range is given to, "" without one.
func callOf(path []parser.Node) string {
	for _, node := range slices.Backward(path) {
		if call, ok := node.(*parser.Call); ok {
			return call.Func.Name
		}
	}
	return ""
}

// checkLabels finds aggregations by labels that what they aggregate does not have.
func (known metrics) checkLabels(expr parser.Expr) []error {
	var problems []error
	parser.Inspect(expr, func(node parser.Node, _ []parser.Node) error {
		by, ok := node.(*parser.AggregateExpr)
		if !ok || by.Without {
			return nil
		}
		has := scraped()
		parser.Inspect(by.Expr, func(inner parser.Node, _ []parser.Node) error {
			if selector, ok := inner.(*parser.VectorSelector); ok {
				for label := range known[selector.Name].labels {
					has = append(has, label)
				}
			}
			return nil
		})
		for _, label := range by.Grouping {
			if !slices.Contains(has, label) {
				problems = append(problems, fmt.Errorf("by (%s): nothing there has that label", label))
			}
		}
		return nil
	})
	return problems
}

// expression is a query and where it stands.
type expression struct{ where, query string }

func expressions(file string) ([]expression, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	if filepath.Ext(file) == ".json" {
		return panels(text)
	}
	return rules(text)
}

// rules reads rules as Prometheus does.
func rules(text []byte) ([]expression, error) {
	groups, errs := rulefmt.Parse(text, false, model.UTF8Validation, parser.NewParser(parser.Options{}), slog.New(slog.DiscardHandler))
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	var all []expression
	for _, g := range groups.Groups {
		for _, r := range g.Rules {
			if r.Alert == "" {
				return nil, fmt.Errorf("group %s has a rule that is no alert", g.Name)
			}
			if r.Annotations["summary"] == "" || r.Labels["severity"] == "" {
				return nil, fmt.Errorf("alert %s lacks a summary or a severity", r.Alert)
			}
			all = append(all, expression{"alert " + r.Alert, r.Expr})
		}
	}
	return all, nil
}

// dashboard is what of a Grafana dashboard has queries.
type dashboard struct {
	Panels []panel `json:"panels"`
}

type panel struct {
	ID      int      `json:"id"`
	Title   string   `json:"title"`
	Type    string   `json:"type"`
	Targets []target `json:"targets"`
	Panels  []panel  `json:"panels"`
}

type target struct {
	Expr  string `json:"expr"`
	RefID string `json:"refId"`
}

func panels(text []byte) ([]expression, error) {
	var d dashboard
	if err := json.Unmarshal(text, &d); err != nil {
		return nil, err
	}
	ids := map[int]string{}
	var all []expression
	var walk func(list []panel) error
	walk = func(list []panel) error {
		for _, p := range list {
			if other, ok := ids[p.ID]; ok {
				return fmt.Errorf("panels %q and %q have one id", other, p.Title)
			}
			ids[p.ID] = p.Title
			if p.Type != "row" && p.Type != "text" && len(p.Targets) == 0 {
				return fmt.Errorf("panel %q asks for nothing", p.Title)
			}
			for _, t := range p.Targets {
				// Grafana puts the range in; any will do to parse.
				all = append(all, expression{"panel " + p.Title + " " + t.RefID, strings.ReplaceAll(t.Expr, "$__rate_interval", "5m")})
			}
			if err := walk(p.Panels); err != nil {
				return err
			}
		}
		return nil
	}
	err := walk(d.Panels)
	return all, err
}
