package matchtest

import (
	"milepost/internal/mapmatch"
	"milepost/internal/roadnet"
)

// Score says how far a driven route and a true one differ, in metres.
type Score struct{ TrueM, MissedM, AddedM float64 }

// Add sums up scores, so that long drives weigh more.
func (s *Score) Add(o Score) {
	s.TrueM += o.TrueM
	s.MissedM += o.MissedM
	s.AddedM += o.AddedM
}

// Mismatch is the route mismatch fraction of Newson and Krumm: what was missed and what was wrongly added over the true
// length. It may exceed 1; without a true length it is 0.
func (s Score) Mismatch() float64 {
	if s.TrueM == 0 {
		return 0
	}
	return (s.MissedM + s.AddedM) / s.TrueM
}

// Lengths returns the length in metres of every node pair that a graph can be driven over.
func Lengths(g *roadnet.Graph) map[mapmatch.Pair]float64 {
	out := make(map[mapmatch.Pair]float64)
	var shape []roadnet.ShapePoint
	for e := range roadnet.EdgeIndex(g.Edges()) {
		way := g.Edge(e).Way
		shape = g.Shape(shape[:0], e)
		for i := 1; i < len(shape); i++ {
			a, b := shape[i-1], shape[i]
			out[mapmatch.Pair{Way: way, From: a.Node, To: b.Node}] = float64(b.AlongCM-a.AlongCM) / 100
		}
	}
	return out
}

// RouteMismatch compares node pairs as multisets, so that laps count and order does not. The first and the last true pair, which are
// driven only in part, are left out on both sides, in either direction. Pairs without a length count as nothing.
func RouteMismatch(truth, got []mapmatch.Pair, lengths map[mapmatch.Pair]float64) Score {
	if len(truth) == 0 {
		var s Score
		for _, p := range got {
			s.AddedM += lengths[p]
		}
		return s
	}
	ends := make(map[mapmatch.Pair]bool, 4)
	for _, p := range []mapmatch.Pair{truth[0], truth[len(truth)-1]} {
		ends[p] = true
		ends[mapmatch.Pair{Way: p.Way, From: p.To, To: p.From}] = true
	}
	want := make(map[mapmatch.Pair]int, len(truth))
	var s Score
	for _, p := range truth {
		if !ends[p] {
			want[p]++
			s.TrueM += lengths[p]
		}
	}
	for _, p := range got {
		switch {
		case ends[p]:
		case want[p] > 0:
			want[p]--
		default:
			s.AddedM += lengths[p]
		}
	}
	// Summed in the order of the truth: floating-point sums depend on it.
	for _, p := range truth {
		if want[p] > 0 {
			want[p]--
			s.MissedM += lengths[p]
		}
	}
	return s
}
