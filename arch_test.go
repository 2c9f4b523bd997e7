// Package milepost_test holds the rules that keep the tree in shape: which
// package may import which, what a package must document, and that the
// documents speak of what exists. Everything is read from the files in this
// process; a test that asks the go command is served stale from the test cache.
package milepost_test

import (
	"flag"
	"fmt"
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the package table into ARCHITECTURE.md")

const (
	module       = "milepost"
	architecture = "ARCHITECTURE.md"
	maxFileLines = 800
	maxDocLines  = 120
)

// layer orders the tree: an import points to a lower layer, or the row says
// otherwise.
type layer int

const (
	words layer = iota
	protocol
	core
	workload
	adapter
	wiring
)

func (l layer) String() string {
	return [...]string{"words", "protocol", "core", "workload", "adapter", "wiring"}[l]
}

// row is a package, or a folder of packages of one purpose.
type row struct {
	layer   layer
	folder  string
	imports []string // folders of this module that its production code may import
	outside []string // third-party modules, and guarded parts of the standard library
	purpose string
}

// guarded are the parts of the standard library that a row must ask for: what
// reaches outside the process, and what makes two runs differ.
var guarded = []string{"net", "net/http", "os", "os/exec", "os/signal", "os/user", "log/slog", "math/rand", "math/rand/v2", "crypto/rand", "syscall"}

// table is the architecture. ARCHITECTURE.md quotes it
// (go test . -run TestArchitectureQuotesTheTable -update).
func table() []row {
	return []row{
		{words, "internal/stream", nil, nil, "key, offset, revision, epoch, frontier, identities"},
		{words, "internal/wire", nil, []string{"google.golang.org/protobuf"}, "internal messages, generated from proto/"},
		{words, "internal/roadnet", nil, []string{"github.com/paulmach/osm", "google.golang.org/protobuf", "github.com/pelletier/go-toml/v2"}, "OSM to directed graph, vehicle profiles, turn rules, spatial index, bounded shortest path"},
		{words, "internal/doctor", nil, nil, "the words of an examination: findings with their remedies"},
		{words, "internal/tracefile", nil, nil, "GPX, CSV and JSON-lines traces, read as a stream"},
		{words, "internal/picture", nil, nil, "SVG pictures for the documents: shapes and line charts"},
		{protocol, "internal/traffic", []string{"internal/roadnet"}, []string{"math/rand/v2"}, "simulated vehicles that drive legal routes, with seeded noise"},
		{protocol, "internal/commit", []string{"internal/stream", "internal/wire"}, []string{"google.golang.org/protobuf"}, "prepare, publish, promote; ledger, recovery, error classes; Store and Publisher interfaces"},
		{protocol, "internal/mapmatch", []string{"internal/roadnet"}, nil, "online matching: candidates, costs, Viterbi, finalisation, state codec"},
		{core, "internal/partition", []string{"internal/stream", "internal/commit"}, nil, "the machine: reader, scheduler, admission, dispatch, validate, frontier, invariants"},
		{workload, "internal/fleet", []string{"internal/stream", "internal/wire", "internal/roadnet", "internal/tracefile", "internal/commit", "internal/mapmatch", "internal/partition"}, []string{"google.golang.org/protobuf", "github.com/pelletier/go-toml/v2", "golang.org/x/sync", "github.com/paulmach/orb", "github.com/twpayne/go-polyline"}, "vehicles: observation codec, region catalog, plan, solver pools, offline matching"},
		{protocol, "internal/loop", nil, nil, "tells an agent that goes round in circles from one that works through something repetitive"},
		{workload, "internal/counter", []string{"internal/stream", "internal/commit", "internal/partition"}, nil, "the smallest workload: numbers each key's records, so that what must come out is known"},
		{adapter, "internal/consumer", []string{"internal/stream", "internal/commit", "internal/partition"}, []string{"github.com/twmb/franz-go", "log/slog", "crypto/rand", "math/rand/v2", "golang.org/x/sync"}, "franz-go group, assignment to worker, the loop that runs effects, pause, refetch"},
		{adapter, "internal/publish", []string{"internal/stream", "internal/commit", "internal/wire", "internal/doctor"}, []string{"github.com/twmb/franz-go", "net", "log/slog", "crypto/rand", "math/rand/v2", "golang.org/x/sync"}, "lanes, transactions, ledger, topics, dead letters"},
		{adapter, "internal/pgstore", []string{"internal/stream", "internal/commit", "migrations", "internal/doctor"}, []string{"github.com/jackc/pgx/v5", "github.com/pressly/goose/v3", "log/slog", "math/rand/v2", "golang.org/x/sync"}, "the fenced SQL, migrations"},
		{adapter, "internal/solve", []string{"internal/stream", "internal/commit", "internal/partition", "internal/wire"}, []string{"github.com/twmb/franz-go", "google.golang.org/protobuf", "log/slog"}, "remote solving: requests and replies over topics without promise, the worker's side and the matcher's"},
		{adapter, "internal/metrics", []string{"internal/stream", "internal/commit", "internal/partition"}, []string{"github.com/prometheus/client_golang"}, "what a worker counts and measures, as Prometheus metrics"},
		{adapter, "internal/matchapi", []string{"internal/fleet", "internal/mapmatch", "internal/roadnet", "internal/tracefile"}, []string{"github.com/prometheus/client_golang", "github.com/twpayne/go-polyline", "net", "net/http", "log/slog", "os"}, "matching of whole traces over HTTP, in Valhalla's form"},
		{adapter, "internal/telemetry", []string{"internal/stream", "internal/commit"}, []string{"github.com/prometheus/client_golang", "github.com/lmittmann/tint", "golang.org/x/term", "net", "net/http", "log/slog", "os"}, "logs, metrics, health"},
		{adapter, "internal/audit", []string{"internal/stream"}, []string{"github.com/twmb/franz-go"}, "judges outputs from their headers alone, as a stranger would"},
		{adapter, "internal/devstack", nil, []string{"github.com/twmb/franz-go", "github.com/jackc/pgx/v5", "github.com/fergusstrange/embedded-postgres", "net", "net/http", "os", "os/exec", "os/user", "log/slog", "crypto/rand", "syscall"}, "Kafka, Postgres and a road map on this machine, for dev and tests"},
		{adapter, "migrations", nil, nil, "the SQL migrations, embedded"},
		{adapter, "bench/machine", nil, []string{"os"}, "where and from what commit a benchmark was run"},
		{wiring, "cmd/orchestrator", []string{"internal/*"}, []string{"*"}, "verbs, configuration tree, constructor graph, signals"},
		{wiring, "bench/matching", []string{"bench/machine", "internal/*"}, []string{"*"}, "the matcher beside Valhalla, OSRM and GraphHopper on the same traces"},
		{wiring, "bench/imports", []string{"bench/machine"}, []string{"*"}, "what it takes to make a graph file of a road map"},
	}
}

// allowedBack are the imports inside one layer, each with its reason.
func allowedBack() map[[2]string]string {
	return map[[2]string]string{
		{"internal/pgstore", "migrations"}: "the store runs the files that it is written for",
	}
}

// TestArrows: imports point only down, as the table says, and third parties
// stay in the packages that are there to hide them.
func TestArrows(t *testing.T) {
	rows := table()
	for _, f := range goFiles(t) {
		if f.test || strings.HasPrefix(f.path, "tools/") {
			continue
		}
		from, ok := rowOf(rows, f.dir)
		if !ok {
			t.Errorf("%s: folder %s is not in the table of arch_test.go", f.path, f.dir)

			continue
		}
		for _, target := range imports(t, f) {
			if err := checkImport(rows, from, f, target); err != nil {
				t.Errorf("%s: %v", f.path, err)
			}
		}
	}
}

// TestTableIsLayered: the table itself has no arrow up or sideways but the
// ones with a reason.
func TestTableIsLayered(t *testing.T) {
	rows, back := table(), allowedBack()
	for _, r := range rows {
		for _, target := range r.imports {
			if strings.HasSuffix(target, "*") {
				continue
			}
			to, ok := rowOf(rows, target)
			if !ok {
				t.Errorf("%s may import %s, which is not in the table", r.folder, target)

				continue
			}
			if to.layer >= r.layer && back[[2]string{r.folder, target}] == "" {
				t.Errorf("%s (%s) may import %s (%s): not a lower layer", r.folder, r.layer, target, to.layer)
			}
		}
	}
}

func checkImport(rows []row, from row, f goFile, target string) error {
	if local, ok := strings.CutPrefix(target, module+"/"); ok {
		return checkLocal(rows, from, f, local)
	}
	first, _, _ := strings.Cut(target, "/")
	if !strings.Contains(first, ".") && !slices.Contains(guarded, target) {
		return nil // the rest of the standard library
	}
	if isTestSupport(f.dir) {
		return nil
	}
	for _, allowed := range from.outside {
		if allowed == "*" || target == allowed || strings.Contains(first, ".") && strings.HasPrefix(target, allowed+"/") {
			return nil
		}
	}

	return fmt.Errorf("%s may not import %s", from.folder, target)
}

func checkLocal(rows []row, from row, f goFile, local string) error {
	to, ok := rowOf(rows, local)
	if !ok {
		return fmt.Errorf("imports %s, which is not in the table", local)
	}
	// Test support (committest, roadnettest, matchtest) belongs to the tests
	// of its neighbours; production code of another package has no use of it.
	if isTestSupport(local) && !isTestSupport(f.dir) && from.layer != wiring {
		return fmt.Errorf("production code imports test support %s", local)
	}
	if to.folder == from.folder {
		return nil
	}
	for _, allowed := range from.imports {
		if allowed == to.folder || strings.HasSuffix(allowed, "/*") && strings.HasPrefix(to.folder, strings.TrimSuffix(allowed, "*")) {
			return nil
		}
	}

	return fmt.Errorf("%s may not import %s", from.folder, to.folder)
}

func isTestSupport(folder string) bool { return strings.HasSuffix(path.Base(folder), "test") }

// rowOf finds the row of a folder: its own or that of the nearest above.
func rowOf(rows []row, folder string) (row, bool) {
	for dir := folder; dir != "." && dir != "/"; dir = path.Dir(dir) {
		for _, r := range rows {
			if r.folder == dir {
				return r, true
			}
		}
	}

	return row{}, false
}

// TestArchitectureQuotesTheTable: the document shows the table that is
// enforced.
func TestArchitectureQuotesTheTable(t *testing.T) {
	const begin, end = "<!-- packages: quoted from arch_test.go -->\n", "<!-- /packages -->"
	text := readFile(t, architecture)
	before, rest, ok := strings.Cut(text, begin)
	got, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("%s has no %q … %q", architecture, begin, end)
	}
	want := renderTable()
	if *update {
		if err := os.WriteFile(architecture, []byte(before+begin+want+end+after), 0o644); err != nil {
			t.Fatal(err)
		}

		return
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the package table differs (-enforced +quoted; -update rewrites it):\n%s", diff)
	}
}

func renderTable() string {
	var b strings.Builder
	b.WriteString("\n| layer | folder | may import | third parties | purpose |\n| --- | --- | --- | --- | --- |\n")
	for _, r := range table() {
		var inside, outside []string
		for _, i := range r.imports {
			inside = append(inside, strings.TrimPrefix(i, "internal/"))
		}
		for _, o := range r.outside {
			if strings.Contains(o, ".") || o == "*" {
				outside = append(outside, strings.TrimPrefix(o, "github.com/"))
			}
		}
		fmt.Fprintf(&b, "| %s | `%s` | %s | %s | %s |\n", r.layer, r.folder, orNone(inside), orNone(outside), r.purpose)
	}
	b.WriteString("\n")

	return b.String()
}

func orNone(list []string) string {
	if len(list) == 0 {
		return "–"
	}

	return strings.ReplaceAll(strings.Join(list, ", "), "*", "all")
}

// TestEveryPackageHasADoc: each package says in doc.go what it is.
func TestEveryPackageHasADoc(t *testing.T) {
	dirs := map[string]bool{}
	for _, f := range goFiles(t) {
		if !f.test && !strings.HasPrefix(f.path, "tools/") {
			dirs[f.dir] = true
		}
	}
	for dir := range dirs {
		file := path.Join(dir, "doc.go")
		src, err := os.ReadFile(filepath.FromSlash(file))
		if err != nil {
			t.Errorf("%s has no doc.go", dir)

			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, src, parser.ParseComments)
		if err != nil {
			t.Errorf("%s: %v", file, err)

			continue
		}
		if parsed.Doc == nil || len(strings.Fields(parsed.Doc.Text())) < 10 {
			t.Errorf("%s has no package comment worth the name", file)
		}
		if n := strings.Count(string(src), "\n"); n > maxDocLines {
			t.Errorf("%s has %d lines, want at most %d", file, n, maxDocLines)
		}
	}
}

// TestReleaseLeavesTheEmbeddedStackOut: with build tag nodev no file of ours
// imports kfake or the embedded Postgres; without it devstack does.
func TestReleaseLeavesTheEmbeddedStackOut(t *testing.T) {
	embedded := []string{"github.com/twmb/franz-go/pkg/kfake", "github.com/fergusstrange/embedded-postgres"}
	for _, tags := range [][]string{nil, {"nodev"}} {
		builds, found := build.Default, map[string]bool{}
		builds.BuildTags = tags
		for _, f := range goFiles(t) {
			in, err := builds.MatchFile(filepath.FromSlash(f.dir), path.Base(f.path))
			if err != nil {
				t.Fatal(err)
			}
			if f.test || !in {
				continue
			}
			for _, target := range imports(t, f) {
				if slices.Contains(embedded, target) {
					found[target] = true
				}
			}
		}
		if got, want := len(found), len(embedded)*(1-len(tags)); got != want {
			t.Errorf("tags %v: %d embedded parts imported (%v), want %d", tags, got, found, want)
		}
	}
}

// TestCoreDoesNotPark: the core takes time and randomness from its inputs, and
// has no goroutine and no package state but error sentinels.
func TestCoreDoesNotPark(t *testing.T) {
	// commit has the pipeline's goroutines; the rest of the core has none.
	pure := []string{"internal/stream", "internal/partition", "internal/roadnet", "internal/mapmatch"}
	for _, f := range goFiles(t) {
		if f.test || !slices.Contains(pure, f.dir) {
			continue
		}
		parsed := parse(t, f, 0)
		ast.Inspect(parsed, func(n ast.Node) bool {
			if _, ok := n.(*ast.GoStmt); ok {
				t.Errorf("%s starts a goroutine", f.path)
			}

			return true
		})
	}
}

// TestFilesAreReadable: no file is too long to be read, and none speaks of a
// machine, of work that somebody meant to do, or of papers that a reader does
// not have.
func TestFilesAreReadable(t *testing.T) {
	forbidden := []string{"TO" + "DO", "FIX" + "ME", "X" + "XX:", "/wo" + "rk/", "/ro" + "ot/", "../sha" + "red", "sha" + "red/", "pitfalls" + ".md", "protocol-" + "review", "matching" + ".md", "design" + ".md"}
	for _, name := range textFiles(t) {
		text := readFile(t, name)
		if strings.HasSuffix(name, ".go") && !isGenerated(text) {
			if n := strings.Count(text, "\n"); n > maxFileLines {
				t.Errorf("%s has %d lines, want at most %d", name, n, maxFileLines)
			}
		}
		if strings.HasSuffix(name, ".sum") || name == "LICENSE" {
			continue
		}
		for i, line := range strings.Split(text, "\n") {
			for _, word := range forbidden {
				if strings.Contains(line, word) {
					t.Errorf("%s:%d: contains %q", name, i+1, word)
				}
			}
		}
	}
}

func isGenerated(text string) bool { return strings.HasPrefix(text, "// Code generated ") }

// goFile is a Go source file of this module.
type goFile struct {
	path, dir string // slash-separated, from the root
	test      bool
}

func goFiles(t *testing.T) []goFile {
	t.Helper()
	var files []goFile
	for _, name := range textFiles(t) {
		if strings.HasSuffix(name, ".go") && path.Dir(name) != "." && !strings.Contains(name, "/testdata/") {
			files = append(files, goFile{path: name, dir: path.Dir(name), test: strings.HasSuffix(name, "_test.go") || strings.HasPrefix(name, "test/")})
		}
	}

	return files
}

// textFiles lists the tree's files that people read.
func textFiles(t *testing.T) []string {
	t.Helper()
	var names []string
	err := filepath.WalkDir(".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name = filepath.ToSlash(name)
		if d.IsDir() {
			switch d.Name() {
			case ".git", "bin", "dist", "node_modules", ".idea", ".vscode":
				return filepath.SkipDir
			}

			return nil
		}
		switch path.Ext(name) {
		case ".go", ".md", ".sql", ".proto", ".yml", ".yaml", ".toml", ".sh", ".mod", ".sum", ".xml", ".txt", ".json":
			names = append(names, name)
		case "":
			names = append(names, name) // Makefile, Dockerfile, .ci/run
		}

		return nil
	})
	if err != nil {
		t.Fatal(err)
	}

	return names
}

func imports(t *testing.T, f goFile) []string {
	t.Helper()
	var list []string
	for _, spec := range parse(t, f, parser.ImportsOnly).Imports {
		target, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			t.Fatalf("%s: %v", f.path, err)
		}
		list = append(list, target)
	}

	return list
}

func parse(t *testing.T, f goFile, mode parser.Mode) *ast.File {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), filepath.FromSlash(f.path), nil, mode)
	if err != nil {
		t.Fatal(err)
	}

	return parsed
}

func readFile(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.FromSlash(name))
	if err != nil {
		t.Fatal(err)
	}

	return string(b)
}
