package fleet_test

import (
	"testing"

	"milepost/internal/fleet"
)

// A6: a time that goes back is found before any region is asked for: also in a cell that nobody serves it is a regression, not unsupported
// coverage, and pin, open stretch and last input stay. What is sent twice ends here.
func TestRegressionComesBeforeRegions(t *testing.T) {
	r := newRegional(t)
	r.rule("version = 3\n"+region("east", eastCell, "")+region("west", westCell, ""), r.m.Graph, r.m.Graph)
	for i := range 5 {
		r.at(10+10*float64(i), 100+150*float64(i), 3)
	}
	pin := r.pin()
	for _, second := range []float64{50, 20} { // the last one again, and an older one
		e, _ := r.at(second, 0, 60_000) // where no region is
		if e.Disposition != fleet.TerminalRegression || e.Reset != nil || e.Retracted != nil || e.Closed != nil {
			t.Errorf("second %v: %+v", second, e)
		}
		if now := r.pin(); now != pin {
			t.Errorf("second %v: the pin is now %s, was %s", second, now, pin)
		}
	}
	if e, _ := r.at(60, 850, 3); e.Disposition != fleet.Matched || *e.Seq != 5 || e.Reset != nil {
		t.Errorf("afterwards: %+v", e)
	}
}
