//go:build linux

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// told is what a summary on disk says, as far as sums need it.
type told struct {
	Seed    uint64
	Commit  string
	Mode    struct{ Protocol, Durability, Publish string }
	Brokers int
	Seconds int
	Ill     float64
	Faults  []struct{ Kind, Note, Skipped, Error string }
	Checked map[string]int
	Ends    map[string]int

	Violations []struct{ Kind string }
	Broken     string
	Began      time.Time
}

// sums add summaries up.
type sums struct {
	runs, seconds, violations, broken int
	faults, skipped, checked, modes   map[string]int
	seconds4, faults4, raw4, kinds4   map[string]int // of modes; of violations
	commits                           map[string]int
}

// summarise prints the tables of a folder's summaries, as docs/reliability.md has them.
func summarise(dir string, out io.Writer) error {
	files, err := filepath.Glob(filepath.Join(dir, "seed-*.json"))
	if err != nil {
		return err
	}
	if len(files) == 0 {
		return fmt.Errorf("no summary in %s", dir)
	}
	s := sums{
		faults: map[string]int{}, skipped: map[string]int{}, checked: map[string]int{}, modes: map[string]int{}, commits: map[string]int{},
		seconds4: map[string]int{}, faults4: map[string]int{}, raw4: map[string]int{}, kinds4: map[string]int{},
	}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		var t told
		if err := json.Unmarshal(b, &t); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		s.add(&t)
	}
	s.print(out)
	return nil
}

func (s *sums) add(t *told) {
	mode := fmt.Sprintf("%s, %s, %s, %d broker(s)", t.Mode.Protocol, t.Mode.Durability, t.Mode.Publish, t.Brokers)
	s.runs++
	s.seconds += int(t.Ill)
	s.modes[mode]++
	s.commits[t.Commit]++
	s.seconds4[mode] += int(t.Ill)
	s.raw4[mode] += t.Checked["raw records"]
	for _, f := range t.Faults {
		if f.Skipped != "" {
			s.skipped[f.Kind]++
			continue
		}
		s.faults[f.Kind]++
		s.faults4[mode]++
	}
	for k, n := range t.Checked {
		s.checked[k] += n
	}
	s.violations += len(t.Violations)
	for _, v := range t.Violations {
		s.kinds4[v.Kind]++
	}
	if t.Broken != "" {
		s.broken++
	}
}

func (s *sums) print(out io.Writer) {
	fmt.Fprintf(out, "%d runs, %d s of faults (%.2f h), %d violations %v, %d runs that could not be judged; commits %s\n\n",
		s.runs, s.seconds, float64(s.seconds)/3600, s.violations, s.kinds4, s.broken, strings.Join(slices.Sorted(maps.Keys(s.commits)), ", "))
	fmt.Fprintf(out, "| mode | runs | seconds | faults | raw records |\n| --- | ---: | ---: | ---: | ---: |\n")
	for _, m := range slices.Sorted(maps.Keys(s.modes)) {
		fmt.Fprintf(out, "| %s | %d | %d | %d | %d |\n", m, s.modes[m], s.seconds4[m], s.faults4[m], s.raw4[m])
	}
	fmt.Fprintf(out, "\n| fault | injected |\n| --- | ---: |\n")
	total := 0
	for _, k := range slices.Sorted(maps.Keys(s.faults)) {
		fmt.Fprintf(out, "| %s | %d |\n", k, s.faults[k])
		total += s.faults[k]
	}
	fmt.Fprintf(out, "| all | %d |\n\nskipped %v\n\n| checked | |\n| --- | ---: |\n", total, s.skipped)
	for _, k := range slices.Sorted(maps.Keys(s.checked)) {
		fmt.Fprintf(out, "| %s | %d |\n", k, s.checked[k])
	}
}
