package milepost_test

import (
	"fmt"
	"go/ast"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestDocsCiteWhatExists: every path, link, symbol and test that a document
// names is there. Documents cite names, never lines.
func TestDocsCiteWhatExists(t *testing.T) {
	symbols := declared(t)
	for _, name := range textFiles(t) {
		if path.Ext(name) != ".md" {
			continue
		}
		text := readFile(t, name)
		for _, cited := range citations(text) {
			if err := checkCitation(symbols, cited); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		for _, link := range links(text) {
			target := path.Join(path.Dir(name), link)
			if _, err := os.Stat(filepath.FromSlash(target)); err != nil {
				t.Errorf("%s: links to %s, which does not exist", name, link)
			}
		}
	}
}

// TestMakeTargetsAreDocumented: make help shows every target that a document
// tells people to call.
func TestMakeTargetsAreDocumented(t *testing.T) {
	makefile := readFile(t, "Makefile")
	target := regexp.MustCompile("`make ([a-z-]+)")
	for _, name := range textFiles(t) {
		if path.Ext(name) != ".md" {
			continue
		}
		for _, m := range target.FindAllStringSubmatch(readFile(t, name), -1) {
			if !regexp.MustCompile(`(?m)^` + m[1] + `:.*## `).MatchString(makefile) {
				t.Errorf("%s: no documented target %q in the Makefile", name, m[1])
			}
		}
	}
}

// symbolTable is what the module declares: per package name its symbols
// ("Machine", "Machine.Step"), and the names of all tests.
type symbolTable struct {
	packages map[string]map[string]bool
	tests    map[string]bool
}

func declared(t *testing.T) symbolTable {
	t.Helper()
	table := symbolTable{packages: map[string]map[string]bool{}, tests: map[string]bool{}}
	for _, f := range append(goFiles(t), goFile{path: "arch_test.go", test: true}, goFile{path: "docs_test.go", test: true}) {
		parsed := parse(t, f, 0)
		if f.test {
			for _, d := range parsed.Decls {
				if fn, ok := d.(*ast.FuncDecl); ok {
					table.tests[fn.Name.Name] = true
				}
			}

			continue
		}
		pkg := path.Base(f.dir)
		if table.packages[pkg] == nil {
			table.packages[pkg] = map[string]bool{}
		}
		for _, name := range declarations(parsed) {
			table.packages[pkg][name] = true
		}
	}

	return table
}

func declarations(f *ast.File) []string {
	var names []string
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			name := d.Name.Name
			if d.Recv != nil && len(d.Recv.List) > 0 {
				name = receiver(d.Recv.List[0].Type) + "." + name
			}
			names = append(names, name)
		case *ast.GenDecl:
			for _, s := range d.Specs {
				names = append(names, specNames(s)...)
			}
		}
	}

	return names
}

func specNames(s ast.Spec) []string {
	var names []string
	switch s := s.(type) {
	case *ast.ValueSpec:
		for _, n := range s.Names {
			names = append(names, n.Name)
		}
	case *ast.TypeSpec:
		names = append(names, s.Name.Name)
		var fields *ast.FieldList
		switch body := s.Type.(type) {
		case *ast.StructType:
			fields = body.Fields
		case *ast.InterfaceType:
			fields = body.Methods
		}
		if fields == nil {
			break
		}
		for _, f := range fields.List {
			for _, n := range f.Names {
				names = append(names, s.Name.Name+"."+n.Name)
			}
		}
	}

	return names
}

func receiver(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return receiver(e.X)
	case *ast.IndexExpr:
		return receiver(e.X)
	case *ast.Ident:
		return e.Name
	default:
		return ""
	}
}

// citations are the words in backticks, outside fenced blocks.
func citations(text string) []string {
	fenced := regexp.MustCompile("(?s)```.*?```")
	code := regexp.MustCompile("`([^`\n]+)`")
	var list []string
	for _, m := range code.FindAllStringSubmatch(fenced.ReplaceAllString(text, ""), -1) {
		list = append(list, m[1])
	}

	return list
}

// links are the relative targets of Markdown links.
func links(text string) []string {
	var list []string
	for _, m := range regexp.MustCompile(`\]\(([^)#\s]+)[^)]*\)`).FindAllStringSubmatch(text, -1) {
		if !strings.Contains(m[1], "://") && !strings.HasPrefix(m[1], "mailto:") {
			list = append(list, m[1])
		}
	}

	return list
}

var (
	citedPath   = regexp.MustCompile(`^(internal|cmd|docs|migrations|proto|test|tools|deploy|\.ci)(/[\w.*-]+)*/?$`)
	citedSymbol = regexp.MustCompile(`^([a-z]+)\.([A-Z]\w*(?:\.[A-Za-z]\w*)?)(?:\(.*\))?$`)
	citedTest   = regexp.MustCompile(`^((?:Test|Fuzz|Benchmark)[A-Z]\w*)(?:/.*)?$`)
)

func checkCitation(symbols symbolTable, cited string) error {
	if citedPath.MatchString(cited) {
		found, err := filepath.Glob(filepath.FromSlash(strings.TrimSuffix(cited, "/")))
		if err != nil || len(found) == 0 {
			return fmt.Errorf("cites path %s, which does not exist", cited)
		}
	}
	if m := citedSymbol.FindStringSubmatch(cited); m != nil && symbols.packages[m[1]] != nil && !symbols.packages[m[1]][m[2]] {
		return fmt.Errorf("cites %s, which is not declared", cited)
	}
	if m := citedTest.FindStringSubmatch(cited); m != nil && !symbols.tests[m[1]] {
		return fmt.Errorf("cites %s, which is not a test", cited)
	}
	if regexp.MustCompile(`\.go:\d+`).MatchString(cited) {
		return fmt.Errorf("cites a line: %s", cited)
	}

	return nil
}

// TestCitationsAreCaught: the check above refuses what is not there.
func TestCitationsAreCaught(t *testing.T) {
	symbols := symbolTable{
		packages: map[string]map[string]bool{"commit": {"Store": true, "Store.Prepare": true}},
		tests:    map[string]bool{"TestHere": true},
	}
	for _, c := range []struct {
		cited string
		ok    bool
	}{
		{"commit.Store", true},
		{"commit.Store.Prepare", true},
		{"commit.Nothing", false},
		{"time.Nothing", true},
		{"TestHere", true},
		{"TestHere/sub", true},
		{"TestGone", false},
		{"cmd", true},
		{"internal/nowhere", false},
		{"internal/*/doc.go", true},
		{"a.go:12", false},
	} {
		if err := checkCitation(symbols, c.cited); (err == nil) != c.ok {
			t.Errorf("%s: got %v, want ok %v", c.cited, err, c.ok)
		}
	}
	got := links("[a](docs/x.md#top) [b](https://example.org) ![c](d.png)")
	if want := []string{"docs/x.md", "d.png"}; !slices.Equal(got, want) {
		t.Errorf("links: got %v, want %v", got, want)
	}
}
