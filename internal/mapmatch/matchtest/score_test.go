package matchtest

import (
	"testing"

	"milepost/internal/mapmatch"
	"milepost/internal/roadnet/roadnettest"
)

func pairs(nodes ...int64) (out []mapmatch.Pair) {
	for i := 1; i < len(nodes); i++ {
		out = append(out, mapmatch.Pair{Way: 1001, From: nodes[i-1], To: nodes[i]})
	}
	return out
}

// The route mismatch fraction of Newson and Krumm on routes whose value is plain: a street of five pairs of 100 m, of which the inner
// three count.
func TestRouteMismatch(t *testing.T) {
	m := roadnettest.Parse(t, "A(0,0)-B(100,0)-C(200,0)-D(300,0)-E(400,0)-F(500,0)")
	lengths := Lengths(m.Graph)
	truth := pairs(1, 2, 3, 4, 5, 6)
	for _, c := range []struct {
		name         string
		got          []mapmatch.Pair
		missed, more float64
	}{
		{"the same", truth, 0, 0},
		{"without the ends", pairs(2, 3, 4, 5), 0, 0},
		{"ends in the wrong direction", append(pairs(2, 1), truth...), 0, 0},
		{"nothing", nil, 300, 0},
		{"one missed", pairs(2, 3, 4), 100, 0},
		{"there and back", append(pairs(1, 2, 3, 4, 5, 6), pairs(5, 4)...), 0, 100},
		{"a lap too many", append(pairs(2, 3, 4, 5), pairs(2, 3, 4, 5)...), 0, 300},
		{"the wrong direction", pairs(5, 4, 3, 2), 300, 300},
	} {
		s := RouteMismatch(truth, c.got, lengths)
		near := func(a, b float64) bool { return a-b < 0.1 && b-a < 0.1 }
		if !near(s.TrueM, 300) || !near(s.MissedM, c.missed) || !near(s.AddedM, c.more) {
			t.Errorf("%s: got %+v, want 300 true, %g missed, %g added", c.name, s, c.missed, c.more)
		}
		if got, want := s.Mismatch(), (s.MissedM+s.AddedM)/s.TrueM; got != want {
			t.Errorf("%s: mismatch %g, want %g", c.name, got, want)
		}
	}
	if got := RouteMismatch(nil, truth, lengths); got.TrueM != 0 || got.AddedM < 499 || got.Mismatch() != 0 {
		t.Errorf("without a truth: %+v", got)
	}
}
