package main

import (
	"strings"
	"testing"
)

// TestReport: a failure is shown with its output, a skip with its reason, and
// a package that died without a failing test counts as one failure.
func TestReport(t *testing.T) {
	in := `{"Action":"output","Package":"p","Test":"TestA","Output":"    a_test.go:5: want 1\n"}
{"Action":"fail","Package":"p","Test":"TestA","Elapsed":0.5}
{"Action":"output","Package":"p","Test":"TestB","Output":"    b_test.go:7: no Docker daemon\n"}
{"Action":"skip","Package":"p","Test":"TestB"}
{"Action":"pass","Package":"p","Test":"TestC","Elapsed":0.1}
{"Action":"fail","Package":"p","Elapsed":1}
{"Action":"build-output","ImportPath":"q","Output":"q.go:1: broken\n"}
{"Action":"fail","Package":"q","Elapsed":0}
`
	var out strings.Builder
	r := &report{output: map[string]*strings.Builder{}, out: &out}
	if err := r.read(strings.NewReader(in)); err != nil {
		t.Fatal(err)
	}
	r.print(1)
	for _, want := range []string{
		"--- failed: p TestA\n    a_test.go:5: want 1", "p TestB: no Docker daemon", "q.go:1: broken",
		"0.5 s  p TestA", "1 passed, 2 failed, 1 skipped",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the report lacks %q:\n%s", want, out.String())
		}
	}
}
