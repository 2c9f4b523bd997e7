package matchtest

import (
	"math"
	"slices"

	"milepost/internal/mapmatch"
	"milepost/internal/roadnet"
)

// Drawn finds node pairs by drawn lines alone, as a stranger to the matcher's ids would: a pair counts where a line goes over both of
// its nodes, one after the other. Places that are no node, such as a line's ends within a road, count for nothing. So, unlike in
// AppendPairs, a pair that was driven only in part is left out.
type Drawn struct {
	at    map[[2]int64][]int64   // millionths of a degree: the nodes there
	pairs map[[2]int64][]ofPlace // the pairs between two nodes
}

type ofPlace struct {
	pair mapmatch.Pair
	low  int64
}

// NewDrawn indexes a graph's nodes and pairs.
func NewDrawn(g *roadnet.Graph) *Drawn {
	d := &Drawn{at: make(map[[2]int64][]int64), pairs: make(map[[2]int64][]ofPlace)}
	seen := make(map[int64]bool)
	var shape []roadnet.ShapePoint
	for e := range roadnet.EdgeIndex(g.Edges()) {
		way := g.Edge(e).Way
		shape = g.Shape(shape[:0], e)
		for i, s := range shape {
			if !seen[s.Node] {
				seen[s.Node] = true
				d.at[cell(s.Point)] = append(d.at[cell(s.Point)], s.Node)
			}
			if i > 0 {
				k := [2]int64{shape[i-1].Node, s.Node}
				d.pairs[k] = append(d.pairs[k], ofPlace{pair: mapmatch.Pair{Way: way, From: k[0], To: k[1]}, low: way})
			}
		}
	}
	return d
}

func cell(p roadnet.Point) [2]int64 {
	return [2]int64{int64(math.Round(p.Lon * 1e6)), int64(math.Round(p.Lat * 1e6))}
}

// AppendPairs appends the pairs that a line goes over.
func (d *Drawn) AppendPairs(dst []mapmatch.Pair, line []roadnet.Point) []mapmatch.Pair {
	var prev []int64
	for _, p := range line {
		k := cell(p)
		var here []int64
		for _, dx := range [3]int64{0, -1, 1} {
			for _, dy := range [3]int64{0, -1, 1} {
				here = append(here, d.at[[2]int64{k[0] + dx, k[1] + dy}]...)
			}
		}
		if len(here) == 0 {
			continue
		}
		if hit, ok := d.between(prev, here); ok {
			dst = append(dst, hit)
			prev = append([]int64{hit.To}, slices.DeleteFunc(slices.Clone(here), func(n int64) bool { return n == hit.To })...)
		} else if !slices.ContainsFunc(here, func(n int64) bool { return slices.Contains(prev, n) }) {
			prev = here
		}
	}
	return dst
}

func (d *Drawn) between(prev, here []int64) (mapmatch.Pair, bool) {
	for _, u := range prev {
		for _, v := range here {
			if found := d.pairs[[2]int64{u, v}]; u != v && len(found) > 0 {
				return found[0].pair, true
			}
		}
	}
	return mapmatch.Pair{}, false
}

// Line is a connected path as one line.
func Line(path []mapmatch.Span) (line []roadnet.Point) {
	for _, s := range path {
		line = append(line, s.Geometry...)
	}
	return line
}
