package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"milepost/bench/machine"
)

func main() {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := command(ctx, os.Args[1:])
	cancel()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench/imports:", err)
		os.Exit(1)
	}
}

// built is one map's row.
type built struct {
	name    string
	bytes   int64
	graph   graph
	cpu     time.Duration
	wall    time.Duration
	peakRSS int64 // bytes
}

// graph is what the verb says.
type graph struct {
	Edges        int   `json:"edges"`
	Nodes        int   `json:"nodes"`
	Restrictions int   `json:"restrictions"`
	Bytes        int64 `json:"bytes"`
}

func command(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("imports", flag.ContinueOnError)
	data := flags.String("data", os.Getenv("MILEPOST_DATA"), "folder with maps/ (MILEPOST_DATA)")
	copies := flags.Int("copies", 20, "Delawares side by side; 0: leave them out")
	docs := flags.String("docs", "docs", "where the page goes")
	if err := flags.Parse(args); errors.Is(err, flag.ErrHelp) {
		return nil
	} else if err != nil {
		return err
	}
	scratch, err := os.MkdirTemp("", "imports")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(scratch) }()
	program := filepath.Join(scratch, "orchestrator")
	if err := run(ctx, nil, "go", "build", "-o", program, "./cmd/orchestrator"); err != nil {
		return err
	}
	before := machine.Load()
	maps, err := listMaps(ctx, *data)
	if err != nil {
		return err
	}
	if *copies > 0 {
		many := filepath.Join(scratch, fmt.Sprintf("%d Delawares.osm.pbf", *copies))
		err := run(ctx, []string{"MILEPOST_KEEP_MAP=" + many, "TMPDIR=" + scratch}, "go", "test", "./internal/roadnet", "-count=1", "-run", "TestImportMany", "-copies", strconv.Itoa(*copies))
		if err != nil {
			return err
		}
		maps = append(maps, many)
	}
	var rows []built
	for _, path := range maps {
		b, err := build(ctx, program, path, filepath.Join(scratch, "a.graph"))
		if err != nil {
			return fmt.Errorf("%s: %w", filepath.Base(path), err)
		}
		fmt.Fprintf(os.Stderr, "%-40s %9d edges, %6.2f s of a core, %7.1f MB at most\n", b.name, b.graph.Edges, b.cpu.Seconds(), mega(b.peakRSS))
		rows = append(rows, b)
	}
	return os.WriteFile(filepath.Join(*docs, "import-bench.md"), []byte(page(rows, before)), 0o644)
}

// listMaps is Delaware, and what the folder of maps holds.
func listMaps(ctx context.Context, data string) ([]string, error) {
	out, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", "github.com/paulmach/osm").Output()
	if err != nil {
		return nil, fmt.Errorf("find the map of Delaware in the Go module cache: %w", err)
	}
	module := filepath.Join(strings.TrimSpace(string(out)), "testdata")
	list := []string{filepath.Join(module, "delaware-latest.osm.pbf"), filepath.Join(module, "andorra-latest.osm.bz2")}
	if data == "" {
		fmt.Fprintln(os.Stderr, "MILEPOST_DATA is not set: its maps are left out")
		return list, nil
	}
	more, err := filepath.Glob(filepath.Join(data, "maps", "*.osm*"))
	if err != nil {
		return nil, err
	}
	slices.Sort(more)
	return append(list, more...), nil
}

// build makes a graph file of a map, in a process that is measured.
func build(ctx context.Context, program, path, to string) (built, error) {
	b := built{name: filepath.Base(path)}
	info, err := os.Stat(path)
	if err != nil {
		return b, err
	}
	b.bytes = info.Size()
	cmd := exec.CommandContext(ctx, program, "graph", "build", path, "-o", to, "--json")
	cmd.Env = append(os.Environ(), "GOMAXPROCS=1")
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	began := time.Now()
	if err := cmd.Run(); err != nil {
		return b, fmt.Errorf("%w: %s", err, said.String())
	}
	b.wall = time.Since(began)
	b.cpu = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	if u, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
		b.peakRSS = u.Maxrss * 1024
	}
	if err := json.Unmarshal(out.Bytes(), &b.graph); err != nil {
		return b, fmt.Errorf("read what graph build says: %w", err)
	}
	info, err = os.Stat(to)
	if err != nil {
		return b, err
	}
	b.graph.Bytes = info.Size()
	return b, nil
}

func run(ctx context.Context, env []string, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = append(os.Environ(), env...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, out)
	}
	return nil
}

func page(rows []built, before string) string {
	var b strings.Builder
	b.WriteString(`# Importing maps

Written by ` + "`make bench-import`" + `: what ` + "`orchestrator graph build`" + ` takes for each map, one process a map with one processor. A state or small
country is to import in under a minute of a core and in bounded memory. Many Delawares side by side have the detail of a state and
the size of a country; ` + "`TestImportMany`" + ` makes them, each with ids and places of its own and all its rules.

| map | size | directed edges | seconds of a core | memory at most | a million edges | graph file |
| --- | --- | --- | --- | --- | --- | --- |
`)
	var slow []string
	for _, r := range rows {
		perMillion := "–" // of a small map the program itself is most of it
		if r.graph.Edges > 100_000 {
			perMillion = fmt.Sprintf("%.1f s, %.0f MB", r.cpu.Seconds()*1e6/float64(r.graph.Edges), mega(r.peakRSS)*1e6/float64(r.graph.Edges))
		}
		fmt.Fprintf(&b, "| %s | %.1f MB | %d | %.2f | %.0f MB | %s | %.1f MB |\n", r.name, mega(r.bytes), r.graph.Edges, r.cpu.Seconds(), mega(r.peakRSS), perMillion, mega(r.graph.Bytes))
		if r.cpu > time.Minute {
			slow = append(slow, r.name)
		}
	}
	verdict := "Every map imported, each in under a minute of a core."
	if len(slow) > 0 {
		verdict = "Not met: more than a minute of a core for " + strings.Join(slow, ", ") + "."
	}
	fmt.Fprintf(&b, "\n%s Measured %s at commit %s on %s; load average %s before, %s after.\n",
		verdict, time.Now().UTC().Format("2006-01-02 15:04 UTC"), machine.Revision(), machine.Describe(), before, machine.Load())
	return b.String()
}

func mega(n int64) float64 { return float64(n) / 1e6 }
