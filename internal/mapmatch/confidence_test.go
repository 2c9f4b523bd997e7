package mapmatch

import (
	"fmt"
	"math"
	"testing"

	"milepost/internal/roadnet/roadnettest"
)

// M45: with one road in a kilometre every final place is certain; with two that are as likely, one half, not the share of whatever won.
func TestM45_ConfidenceIsAPosterior(t *testing.T) {
	along := func(y float64) (out []fix) {
		for i := range 40 {
			out = append(out, fix{x: 100 + 30*float64(i), y: y, at: 3 * float64(i), speed: 10, dir: 90})
		}
		return out
	}
	d := run(t, roadnettest.Parse(t, "A(0,0)-B(1000,0)-C(2000,0)"), along(3))
	for _, p := range d.track.Points {
		if p.Confidence < 0.99 {
			t.Errorf("one road: observation %d has confidence %g", p.Seq, p.Confidence)
		}
	}
	two := roadnettest.Parse(t, "A(0,0)-B(2000,0); C(0,20)-D(2000,20)")
	d = run(t, two, along(10))
	d.draw(45, fmt.Sprintf("confidence of every place: %.1f", d.track.Points[20].Confidence))
	for _, p := range d.track.Points {
		if math.Abs(p.Confidence-0.5) > 0.015 {
			t.Errorf("two equal roads: observation %d has confidence %g", p.Seq, p.Confidence)
		}
	}
	// Nearer to the one than to the other: it is likelier, and ever more so as observations agree.
	d = run(t, two, along(8))
	if got := d.track.Points[20].Confidence; got < 0.9 {
		t.Errorf("the nearer of two roads over forty observations: confidence %g", got)
	}
	if first := d.results[0].Provisional.Confidence; first < 0.5 || first > 0.75 {
		t.Errorf("the nearer of two roads after one observation: confidence %g", first)
	}
}

// M45: a place that was given up is not forgotten: at a fork that only just decided, the places before it are less than certain.
func TestM45_TheLoserCounts(t *testing.T) {
	m := roadnettest.Parse(t, "A(0,0)-J(300,0)-B(900,0); J-P(330,22)-Q(500,24)-R(560,0); R(560,0)-B")
	var fixes []fix
	for i := range 30 {
		y := 0.0
		if x := 30 * float64(i); x > 310 && x < 550 {
			y = 11
		}
		fixes = append(fixes, fix{x: 30 * float64(i), y: y, at: 3 * float64(i)})
	}
	d := run(t, m, fixes)
	if p := d.track.Points[14]; p.Confidence > 0.9 || p.Confidence < 0.2 {
		t.Errorf("between two roads: confidence %g", p.Confidence)
	}
	if p := d.track.Points[5]; p.Confidence < 0.99 {
		t.Errorf("before the fork: confidence %g", p.Confidence)
	}
}

// M45: whatever comes, a confidence is a probability, and no sum of them is lost or made up.
func TestM45_AlwaysAProbability(t *testing.T) {
	m := town(t)
	low := 0
	for seed := range uint64(60) {
		d := pushWith(t, m.Graph, impatient(seed), wander(m, seed, 200))
		for _, r := range d.results {
			if r.Provisional != nil && !(r.Provisional.Confidence >= 0 && r.Provisional.Confidence <= 1) {
				t.Fatalf("seed %d, observation %d: confidence %g", seed, r.Seq, r.Provisional.Confidence)
			}
		}
		for _, p := range d.track.Points {
			if !(p.Confidence >= 0 && p.Confidence <= 1) {
				t.Fatalf("seed %d, observation %d: confidence %g", seed, p.Seq, p.Confidence)
			}
			if p.Confidence < 0.05 {
				low++
			}
		}
	}
	if low > 30 {
		t.Errorf("%d final places of some 12000 have next to no confidence", low)
	}
}

// The table of sums is what the standard library's logarithm says.
func TestLogSum(t *testing.T) {
	tab, exp := newLogSum(), newExp()
	for d := range int32(maxApart) {
		want := math.Log1p(math.Exp(-float64(d)/nat)) * nat
		if got := float64(tab[d]); math.Abs(got-want) > 0.51 {
			t.Fatalf("sum at %d: got %g, want %g", d, got, want)
		}
	}
	for d := range exp {
		if want := math.Exp(-float64(d)/nat) * 1e6; math.Abs(float64(exp[d])-want) > 0.51 {
			t.Fatalf("exponential at %d: got %d, want %g", d, exp[d], want)
		}
	}
}
