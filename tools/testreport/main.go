// Command testreport reads `go test -json` on standard input and prints what a
// person wants to know: what failed with its output, what could not run and
// why, the slowest tests, and one line of totals at the end. It exits 1 when
// anything failed.
package main

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
)

// event is one line of go test -json (go doc test2json); build output comes
// with ImportPath instead of Package.
type event struct {
	Action     string
	Package    string
	ImportPath string
	Test       string
	Elapsed    float64 // seconds
	Output     string
}

type result struct {
	name    string
	seconds float64
	reason  string
}

// report gathers events.
type report struct {
	output  map[string]*strings.Builder // by package and test
	failed  []string                    // keys of output
	skipped []result
	slow    []result
	passed  int
	failing int
	out     io.Writer
}

func main() {
	slowest := flag.Int("slowest", 8, "how many of the slowest tests to show")
	totals := flag.String("totals", "", "append the counts to this file")
	flag.Parse()
	r := &report{output: map[string]*strings.Builder{}, out: os.Stdout}
	if err := r.read(os.Stdin); err != nil {
		fmt.Fprintln(os.Stderr, "testreport:", err)
		os.Exit(2)
	}
	r.print(*slowest)
	if *totals != "" {
		if err := r.appendTotals(*totals); err != nil {
			fmt.Fprintln(os.Stderr, "testreport:", err)
			os.Exit(2)
		}
	}
	if r.failing > 0 {
		os.Exit(1)
	}
}

// say prints; a reader that is gone is nothing to act on.
func (r *report) say(format string, args ...any) { _, _ = fmt.Fprintf(r.out, format, args...) }

func (r *report) read(in io.Reader) error {
	lines := bufio.NewReader(in)
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) > 0 {
			var e event
			if json.Unmarshal(line, &e) == nil && e.Action != "" {
				r.take(e)
			} else {
				r.say("%s", string(line)) // the go command's own words
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read test events: %w", err)
		}
	}
}

func (r *report) take(e event) {
	if e.Action == "build-output" {
		r.say("%s", e.Output)

		return
	}
	key := e.Package
	if e.Test != "" {
		key += " " + e.Test
	}
	if e.Action == "output" {
		if r.output[key] == nil {
			r.output[key] = &strings.Builder{}
		}
		r.output[key].WriteString(e.Output)

		return
	}
	if e.Test == "" {
		r.takePackage(e, key)
	} else {
		r.takeTest(e, key)
	}
}

func (r *report) takePackage(e event, key string) {
	switch e.Action {
	case "pass":
		r.say("ok    %-40s %6.1f s\n", e.Package, e.Elapsed)
	case "fail":
		r.say("FAIL  %-40s %6.1f s\n", e.Package, e.Elapsed)
		// A package that fails without a failing test did not build, died, or
		// leaked: it counts as one failure of its own.
		if !slices.ContainsFunc(r.failed, func(k string) bool { return strings.HasPrefix(k, key+" ") }) {
			r.failed = append(r.failed, key)
			r.failing++
		}
	}
}

func (r *report) takeTest(e event, key string) {
	switch e.Action {
	case "pass":
		r.passed++
		r.slow = append(r.slow, result{name: key, seconds: e.Elapsed})
		delete(r.output, key)
	case "fail":
		r.failing++
		r.failed = append(r.failed, key)
		r.slow = append(r.slow, result{name: key, seconds: e.Elapsed})
	case "skip":
		r.skipped = append(r.skipped, result{name: key, reason: r.reason(key)})
	}
}

// reason is what the test said before it was skipped.
func (r *report) reason(key string) string {
	if r.output[key] == nil {
		return ""
	}
	for line := range strings.SplitSeq(r.output[key].String(), "\n") {
		line = strings.TrimSpace(line)
		if _, text, ok := strings.Cut(line, ".go:"); ok && !strings.HasPrefix(line, "---") {
			_, text, _ = strings.Cut(text, ": ")

			return text
		}
	}

	return "no reason given"
}

func (r *report) print(slowest int) {
	for _, key := range r.failed {
		r.say("\n--- failed: %s\n", key)
		if r.output[key] != nil {
			r.say("%s", r.output[key].String())
		}
	}
	if len(r.skipped) > 0 {
		r.say("\ncould not run here:\n")
		for _, s := range r.skipped {
			r.say("  %s: %s\n", s.name, s.reason)
		}
	}
	slices.SortFunc(r.slow, func(a, b result) int {
		return int((b.seconds - a.seconds) * 1000)
	})
	if n := min(slowest, len(r.slow)); n > 0 {
		r.say("\nslowest tests:\n")
		for _, s := range r.slow[:n] {
			r.say("  %6.1f s  %s\n", s.seconds, s.name)
		}
	}
	r.say("\n%d passed, %d failed, %d skipped\n", r.passed, r.failing, len(r.skipped))
}

func (r *report) appendTotals(file string) error {
	f, err := os.OpenFile(file, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return fmt.Errorf("open the totals: %w", err)
	}
	if _, err := fmt.Fprintf(f, "%d %d %d\n", r.passed, r.failing, len(r.skipped)); err != nil {
		return fmt.Errorf("write the totals: %w", err)
	}
	if err := f.Close(); err != nil {
		return fmt.Errorf("close the totals: %w", err)
	}

	return nil
}
