// Command requirements prints, for each identifier of docs/requirements.md, the tests that cite it, and fails for one that
// none cites and that has no excuse.
//
//	requirements [-doc docs/requirements.md] [-groups A,I,F] [ROOT]
//
// A test cites an identifier in the comment before it, in a comment inside it, or in its name or a subtest's (TestM04_…, "A14/…"); a script in the
// comments at its head. Ranges count: A14–A16. What a package numbers in its own doc.go, P1, means that invariant in its tests,
// but for the I, which are the same everywhere.
package main

import (
	"bufio"
	"cmp"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

func main() {
	doc := flag.String("doc", "docs/requirements.md", "the list of identifiers, below ROOT")
	groups := flag.String("groups", "", "letters, as in A,I,F; empty: all")
	flag.Parse()
	missing, err := run(os.Stdout, cmp.Or(flag.Arg(0), "."), *doc, *groups)
	switch {
	case err != nil:
		fmt.Fprintln(os.Stderr, "requirements:", err)
		os.Exit(2)
	case missing > 0:
		os.Exit(1)
	}
}

// id is an identifier: A12.
type id struct {
	group  string
	number int
}

func (i id) String() string { return i.group + strconv.Itoa(i.number) }

// requirement is a line of the list.
type requirement struct {
	id     id
	asks   string
	excuse string
}

// test is one that cites.
type test struct{ where, name string }

// run prints the chosen groups and returns how many identifiers are neither cited nor excused.
func run(out io.Writer, root, doc, groups string) (int, error) {
	all, err := readList(filepath.Join(root, doc))
	if err != nil {
		return 0, err
	}
	chosen, err := choose(all, groups)
	if err != nil {
		return 0, err
	}
	cited, err := readTests(root)
	if err != nil {
		return 0, err
	}
	say := func(format string, args ...any) { _, _ = fmt.Fprintf(out, format, args...) } // a reader that is gone is nothing to act on
	missing, excused := 0, 0
	tests := map[test]bool{}
	for _, r := range chosen {
		say("%s: %s\n", r.id, r.asks)
		for _, t := range cited[r.id] {
			tests[t] = true
			say("    %s %s\n", t.where, t.name)
		}
		switch {
		case len(cited[r.id]) > 0 && r.excuse != "":
			missing++
			say("    NOT NEEDED: it has an excuse, but tests cite it\n")
		case len(cited[r.id]) > 0:
		case r.excuse != "":
			excused++
			say("    excused: %s\n", r.excuse)
		default:
			missing++
			say("    MISSING: no test cites it\n")
		}
	}
	say("%d identifiers: %d cited by %d tests, %d excused, %d missing\n",
		len(chosen), len(chosen)-excused-missing, len(tests), excused, missing)
	return missing, nil
}

// choose keeps the groups that were asked for.
func choose(all []requirement, groups string) ([]requirement, error) {
	if groups == "" {
		return all, nil
	}
	var chosen []requirement
	for g := range strings.SplitSeq(groups, ",") {
		found := false
		for _, r := range all {
			if r.id.group == g {
				chosen, found = append(chosen, r), true
			}
		}
		if !found {
			return nil, fmt.Errorf("no group %q in the list", g)
		}
	}
	return chosen, nil
}

// readList reads the tables: | A1 | what it asks | and perhaps an excuse |.
func readList(file string) ([]requirement, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	row := regexp.MustCompile(`^\| ([A-Z])(\d+) \| ([^|]+) \|(?: ([^|]+) \|)?$`)
	var all []requirement
	next := map[string]int{}
	for n, line := range strings.Split(string(text), "\n") {
		if !regexp.MustCompile(`^\| [A-Z]\d`).MatchString(line) {
			continue
		}
		m := row.FindStringSubmatch(line)
		if m == nil {
			return nil, fmt.Errorf("%s, line %d: not | id | what it asks | or | id | what it asks | excuse |", filepath.Base(file), n+1)
		}
		number, err := strconv.Atoi(m[2])
		if err != nil {
			return nil, err
		}
		next[m[1]]++
		if number != next[m[1]] {
			return nil, fmt.Errorf("%s, line %d: %s%d comes where %s%d should", filepath.Base(file), n+1, m[1], number, m[1], next[m[1]])
		}
		all = append(all, requirement{id: id{m[1], number}, asks: m[3], excuse: m[4]})
	}
	return all, nil
}

// readTests finds what each test cites, tests in the order of their files.
func readTests(root string) (map[id][]test, error) {
	cited := map[id][]test{}
	own := map[string]map[id]bool{} // invariants of a folder's own
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if base := d.Name(); base == "bin" || base == "node_modules" || strings.HasPrefix(base, ".") && name != root {
				return filepath.SkipDir
			}
			return nil
		}
		relative, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		where := path.Dir(filepath.ToSlash(relative))
		add := func(name string, texts ...string) {
			for i := range citations(strings.Join(texts, "\n")) {
				if t := (test{where, name}); !invariants(root, where, own)[i] && !slices.Contains(cited[i], t) {
					cited[i] = append(cited[i], t)
				}
			}
		}
		switch {
		case strings.HasSuffix(name, "_test.go"), strings.HasSuffix(name, ".go") && strings.HasSuffix(where, "test"):
			return readGo(name, !strings.HasSuffix(name, "_test.go"), add)
		case strings.HasSuffix(name, ".txt") && strings.Contains(where, "testdata"):
			return readScript(name, add)
		}
		return nil
	})
	return cited, err
}

// readGo reads a file of tests. In a suite, whose functions are the tests, every function counts.
func readGo(name string, suite bool, add func(name string, texts ...string)) error {
	parsed, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
	if err != nil {
		return err
	}
	for _, d := range parsed.Decls {
		fn, ok := d.(*ast.FuncDecl)
		if !ok || !suite && !isTest(fn.Name.Name) {
			continue
		}
		texts := []string{strings.ReplaceAll(strings.TrimPrefix(fn.Name.Name, "Test"), "_", " ")}
		if fn.Doc != nil {
			texts = append(texts, fn.Doc.Text())
		}
		texts = append(texts, subtests(fn)...)
		for _, c := range parsed.Comments {
			if c.Pos() > fn.Pos() && c.End() < fn.End() {
				texts = append(texts, c.Text())
			}
		}
		add(fn.Name.Name, texts...)
	}
	return nil
}

// subtests are the string literals of a function that begin with an identifier, as names of subtests do.
func subtests(fn *ast.FuncDecl) []string {
	var names []string
	starts := regexp.MustCompile(`^[A-Z]\d{1,2}[/:, ]`)
	ast.Inspect(fn, func(n ast.Node) bool {
		if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
			if text, err := strconv.Unquote(lit.Value); err == nil && starts.MatchString(text) {
				names = append(names, text)
			}
		}
		return true
	})
	return names
}

func isTest(name string) bool {
	return strings.HasPrefix(name, "Test") || strings.HasPrefix(name, "Fuzz")
}

// readScript reads the comments at the head of a script.
func readScript(name string, add func(name string, texts ...string)) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	var head []string
	lines := bufio.NewScanner(f)
	for lines.Scan() && strings.HasPrefix(lines.Text(), "#") {
		head = append(head, lines.Text())
	}
	add(filepath.Base(name), head...)
	return lines.Err()
}

// citations are the identifiers of a text.
func citations(text string) map[id]bool {
	found := map[id]bool{}
	pattern := regexp.MustCompile(`\b([A-Z])(\d{1,2})\b(?:\s?[–-]\s?([A-Z])(\d{1,2})\b)?`)
	for _, m := range pattern.FindAllStringSubmatch(text, -1) {
		from, err := strconv.Atoi(m[2])
		if err != nil {
			continue
		}
		to := from
		if m[4] != "" {
			last, err := strconv.Atoi(m[4])
			if err != nil {
				continue
			}
			if m[3] == m[1] {
				to = last
			} else {
				found[id{m[3], last}] = true
			}
		}
		for n := from; n <= to; n++ {
			found[id{m[1], n}] = true
		}
	}
	return found
}

// invariants are those that the package of a folder numbers itself. The tests of a testdata folder belong to the nearest folder
// above that has a doc.go.
func invariants(root, folder string, known map[string]map[id]bool) map[id]bool {
	if l, ok := known[folder]; ok {
		return l
	}
	text, err := os.ReadFile(filepath.Join(root, folder, "doc.go"))
	var l map[id]bool
	switch {
	case err == nil:
		l = map[id]bool{}
		for _, m := range regexp.MustCompile(`(?m)^//\s+([A-HJ-Z]\d{1,2})\s`).FindAllStringSubmatch(string(text), -1) {
			for i := range citations(m[1]) {
				l[i] = true
			}
		}
	case folder != "." && folder != "/":
		l = invariants(root, path.Dir(folder), known)
	}
	known[folder] = l
	return l
}
