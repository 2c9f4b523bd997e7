package mapmatch

import (
	"bytes"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"milepost/internal/roadnet/roadnettest"
)

// Explain does what Push does, and its costs add up: over random drives the best candidate's total is zero, probabilities are no more
// than one, and each candidate costs what its parts do.
func TestExplainIsPush(t *testing.T) {
	m := town(t)
	mt, err := New(m.Graph, DefaultConfig())
	if err != nil {
		t.Fatal(err)
	}
	linked := 0
	for seed := range uint64(20) {
		var state []byte
		for i, o := range wander(m, seed, 100) {
			want, r, err := mt.Push(state, o)
			if err != nil {
				t.Fatal(err)
			}
			next, x, err := mt.Explain(state, o)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(r, x.Result); diff != "" || !bytes.Equal(next, want) {
				t.Fatalf("seed %d, observation %d: Explain does something else: %s", seed, i, diff)
			}
			if x.Why == "" {
				t.Fatalf("seed %d, observation %d: no reason", seed, i)
			}
			sum := 0.0
			for k, c := range x.Candidates {
				sum += c.Probability
				if k == 0 && c.Rejected == "" && c.Total != 0 {
					t.Fatalf("seed %d, observation %d: the best costs %g", seed, i, c.Total)
				}
				if c.Rejected == "" && x.ScaleM > 0 {
					linked++
					if c.Transition < 0 || c.RouteM < 0 {
						t.Fatalf("seed %d, observation %d: %+v", seed, i, c)
					}
				}
			}
			if sum > 1.001 {
				t.Fatalf("seed %d, observation %d: probabilities of %g", seed, i, sum)
			}
			state = next
		}
	}
	if linked < 1000 {
		t.Errorf("only %d candidates were linked", linked)
	}
}

// The reasons are those of the rules that decided.
func TestExplainGivesReasons(t *testing.T) {
	m := roadnettest.Parse(t, "A(0,0)-B(500,0); C(0,20)-D(500,20)")
	mt, err := New(m.Graph, DefaultConfig())
	if err != nil {
		t.Fatal(err)
	}
	var state []byte
	for i, c := range []struct {
		f   fix
		why string
	}{
		{fix{x: 0, y: 4, at: 0}, "begin of a stretch"},
		{fix{x: 40, y: 4, at: 4}, "linked"},
		{fix{x: 42, y: 4, at: 5}, "too near"},
		{fix{x: 42, y: 4, at: 5}, "not after"},
		{fix{x: 42, y: 4000, at: 6}, "more than a vehicle drives"},
		{fix{x: 100, y: 200, at: 10}, "no road within 35 m"},
		{fix{x: 200, y: 4, at: 20}, "linked"},
	} {
		next, x, err := mt.Explain(state, observation(m, c.f))
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(x.Why, c.why) {
			t.Errorf("observation %d: %q, want %q", i, x.Why, c.why)
		}
		state = next
		if c.why != "linked" {
			continue
		}
		best := x.Candidates[0]
		if best.Key.Way != m.Way("w1") || math.Abs(best.DistM-4) > 0.1 || math.Abs(best.RouteM-x.CrowM) > 0.1 || best.From.Way != m.Way("w1") {
			t.Errorf("observation %d: %+v", i, best)
		}
	}
}
