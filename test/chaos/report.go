//go:build linux

package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"milepost/test/chaos/judge"
)

// report is what a run tells: on paper and as JSON.
type report struct {
	Seed       uint64            `json:"seed"`
	Commit     string            `json:"commit"`
	Mode       judge.Mode        `json:"mode"`
	Brokers    int               `json:"brokers"`
	Seconds    int               `json:"seconds"` // planned
	Ill        float64           `json:"ill"`     // seconds until everything was healed: faults take their time on a busy machine
	Began      time.Time         `json:"began"`
	Took       string            `json:"took"`
	Faults     []injected        `json:"faults"`
	Checked    map[string]int    `json:"checked"`
	Restarts   int               `json:"restarts"` // ends of workers
	Ends       map[string]int    `json:"ends"`     // by exit code
	Violations []judge.Violation `json:"violations"`
	Broken     string            `json:"broken,omitempty"` // the run itself could not be made or judged
	Replay     string            `json:"replay"`
	Logs       string            `json:"logs,omitempty"`
}

// MarshalJSON gives times as text.
func (i injected) MarshalJSON() ([]byte, error) {
	round := func(d time.Duration) string { return d.Round(10 * time.Millisecond).String() }
	return json.Marshal(struct {
		Kind    string   `json:"kind"`
		Parts   []string `json:"parts"`
		Amount  int64    `json:"amount,omitempty"`
		Began   string   `json:"began"`
		Ended   string   `json:"ended"`
		Note    string   `json:"note,omitempty"`
		Skipped string   `json:"skipped,omitempty"`
		Error   string   `json:"error,omitempty"`
	}{i.Kind, i.parts(), i.Amount, round(i.Began), round(i.Ended), i.Note, i.Skipped, i.Error})
}

func (r *run) report(h *judge.History, err error, began time.Time, replay string) *report {
	rep := &report{
		Seed: r.plan.Seed, Commit: r.commit, Mode: r.plan.Mode, Brokers: r.plan.Brokers, Seconds: r.plan.Seconds, Ill: math.Round(r.ill.Seconds()), Began: began.UTC(),
		Took: time.Since(began).Round(100 * time.Millisecond).String(), Faults: r.done, Ends: map[string]int{}, Violations: []judge.Violation{}, Replay: replay,
	}
	slices.SortFunc(rep.Faults, func(a, b injected) int { return cmp.Compare(a.Began, b.Began) })
	if err != nil {
		rep.Broken = err.Error()
	}
	if h == nil {
		return rep
	}
	v := judge.Judge(h)
	rep.Checked = v.Checked
	rep.Violations = append(rep.Violations, v.Violations...)
	for _, e := range h.Exits {
		if !e.Asked {
			rep.Restarts++
			rep.Ends[fmt.Sprint(e.Code)]++
		}
	}
	return rep
}

func (r *report) clean() bool { return r.Broken == "" && len(r.Violations) == 0 }

// injectedOf counts the faults that happened, by kind.
func (r *report) injectedOf() (happened map[string]int, skipped int) {
	happened = map[string]int{}
	for _, f := range r.Faults {
		if f.Skipped != "" {
			skipped++
		} else {
			happened[f.Kind]++
		}
	}
	return happened, skipped
}

// print tells everything for people.
func (r *report) print(out io.Writer) {
	happened, skipped := r.injectedOf()
	fmt.Fprintf(out, "seed %d, %s, commit %s: %d faults (%d skipped) in %.0f s, took %s\n", r.Seed, r.Mode, r.Commit, len(r.Faults)-skipped, skipped, r.Ill, r.Took)
	if !r.clean() {
		for _, f := range r.Faults {
			fmt.Fprintf(out, "  %6.1f–%5.1f s  %s %s\n", f.Began.Seconds(), f.Ended.Seconds(), f.fault, strings.Join([]string{f.Note, f.Skipped, f.Error}, " "))
		}
	}
	fmt.Fprintf(out, "  faults:")
	for _, k := range slices.Sorted(maps.Keys(happened)) {
		fmt.Fprintf(out, " %s %d", k, happened[k])
	}
	fmt.Fprintf(out, "\n  checked:")
	for i, k := range slices.Sorted(maps.Keys(r.Checked)) {
		if i > 0 {
			fmt.Fprint(out, ",")
		}
		fmt.Fprintf(out, " %d %s", r.Checked[k], k)
	}
	fmt.Fprintf(out, "\n  violations: %d\n", len(r.Violations))
	for i, v := range r.Violations {
		if i == 20 {
			fmt.Fprintf(out, "  … and %d more\n", len(r.Violations)-i)
			break
		}
		fmt.Fprintf(out, "  VIOLATION %s\n", v)
		for _, line := range v.History {
			fmt.Fprintf(out, "      %s\n", line)
		}
	}
	if r.Broken != "" {
		fmt.Fprintf(out, "  BROKEN: the run could not be finished: %s\n", r.Broken)
	}
	if !r.clean() {
		fmt.Fprintf(out, "  replay: %s\n  logs: %s\n", r.Replay, r.Logs)
	}
}

// write puts the summary into a folder.
func (r *report) write(dir string) error {
	b, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, fmt.Sprintf("seed-%d.json", r.Seed)), append(b, '\n'), 0o644) //nolint:gosec // a report
}
