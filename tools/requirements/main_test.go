package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// tree writes files below a new folder.
func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		full := filepath.Join(root, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(full, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

const listed = "# List\n\n| id | asks |\n| --- | --- |\n| A1 | one |\n| A2 | two | nobody can say |\n| A3 | three |\n| B1 | else |\n| P1 | bites |\n"

// An identifier is cited by a comment before or inside a test, by a name, a script or a suite; by nothing else.
func TestWhatCites(t *testing.T) {
	root := tree(t, map[string]string{
		"doc.md":   listed,
		"p/doc.go": "// Package p has\n//\n//\tP1 an invariant\n//\tI1 one of all\npackage p\n",
		"p/p_test.go": "package p\n\n// A1: proves it.\nfunc TestOne() {}\n\n// A3 is cited by a helper, P1 is the package's own.\nfunc help() {}\n\n" +
			"// P1: our own.\nfunc TestOwn() {\n\t// B1 too\n}\n",
		"q/q_test.go":              "package q\n\nfunc TestA03_Name() {}\n\nfunc BenchmarkP1() {}\n",
		"q/testdata/story.txt":     "# A1: a story\n\nA3 in its text\n",
		"q/qtest/suite.go":         "package qtest\n\n// P1–P2: every store.\nfunc testStore() {}\n",
		".hidden/x_test.go":        "package x\n\n// P1\nfunc TestHidden() {}\n",
		"q/testdata/golden/no.txt": "P1 is no comment\n",
	})
	var out strings.Builder
	missing, err := run(&out, root, "doc.md", "")
	if err != nil || missing != 0 {
		t.Errorf("%d missing, %v", missing, err)
	}
	want := `A1: one
    p TestOne
    q/testdata story.txt
A2: two
    excused: nobody can say
A3: three
    q TestA03_Name
B1: else
    p TestOwn
P1: bites
    q/qtest testStore
5 identifiers: 4 cited by 5 tests, 1 excused, 0 missing
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// One that nobody cites fails, and so does an excuse that is not needed; groups choose.
func TestMissing(t *testing.T) {
	root := tree(t, map[string]string{"doc.md": listed, "p/p_test.go": "package p\n\n// A2, B1.\nfunc TestTwo() {}\n"})
	for groups, want := range map[string]int{"A": 3, "B": 0, "B,A": 3, "P": 1, "": 4} {
		var out strings.Builder
		missing, err := run(&out, root, "doc.md", groups)
		if err != nil || missing != want {
			t.Errorf("groups %q: %d missing, %v, want %d:\n%s", groups, missing, err, want, out.String())
		}
		if strings.Contains(groups, "A") && (!strings.Contains(out.String(), "MISSING") || !strings.Contains(out.String(), "NOT NEEDED")) {
			t.Errorf("groups %q does not say what is wrong:\n%s", groups, out.String())
		}
	}
	if _, err := run(&strings.Builder{}, root, "doc.md", "Z"); err == nil {
		t.Error("an unknown group is accepted")
	}
}

// Ranges count, words that look alike do not.
func TestCitations(t *testing.T) {
	var got []string
	for i := range citations("A14–A16, I1-I2, H4; a p99 of P9x, X1–Y3, SHA256, UTF-8") {
		got = append(got, i.String())
	}
	slices.Sort(got)
	want := []string{"A14", "A15", "A16", "H4", "I1", "I2", "X1", "Y3"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A list with a hole, a number twice or a broken row is refused.
func TestBrokenList(t *testing.T) {
	for _, text := range []string{"| A1 | a |\n| A3 | c |\n", "| A1 | a |\n| A1 | a |\n", "| A1 | a\n", "| A1 | a | b | c |\n"} {
		root := tree(t, map[string]string{"doc.md": text})
		if _, err := run(&strings.Builder{}, root, "doc.md", ""); err == nil || !strings.Contains(err.Error(), "line") {
			t.Errorf("%q: %v, want an error that names the line", text, err)
		}
	}
}
