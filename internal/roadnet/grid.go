package roadnet

import (
	"cmp"
	"errors"
	"math"
	"slices"
)

// cellDegrees is the height of a cell: 125 m.
const cellDegrees = 125 / metresPerDegree

// errSparse says that the geometry is no road network: its segments cross more cells than any real map's.
var errSparse = errors.New("segments are implausibly long")

// ref names the segment that begins at a vertex of a geometry.
type ref struct{ geom, vertex int32 }

// grid finds segments by place. Rows are of equal height, and each has as many columns as make its cells about square at its latitude.
// Only cells that hold something take memory: the rows are an array, the columns of a row a sorted list.
type grid struct {
	row0    int32
	rowOff  []int32 // of each row: its first entry in cols; one more entry at the end
	cols    []int32
	cellOff []int32 // of each entry in cols: its first entry in refs; one more entry at the end
	refs    []ref
}

type cellRef struct {
	row, col int32
	ref
}

func rowOf(lat float64) int32 { return int32(math.Floor((lat + 90) / cellDegrees)) }

// columns is how many cells go round the globe in a row.
func columns(row int32) int32 {
	lat := min(max((float64(row)+0.5)*cellDegrees-90, -90), 90)
	return max(1, int32(360*cosDeg(lat)/cellDegrees))
}

func columnOf(lon float64, n int32) int32 { return int32(math.Floor((lon + 180) / 360 * float64(n))) }

func buildGrid(geomOff []int32, vertices []vertex) (grid, error) {
	budget := 1<<20 + 32*len(vertices)
	cells := make([]cellRef, 0, len(vertices)+len(vertices)/2)
	for gi := range len(geomOff) - 1 {
		for v := geomOff[gi]; v < geomOff[gi+1]-1; v++ {
			cells = appendCells(cells, ref{int32(gi), v}, vertices[v], vertices[v+1], budget)
			if len(cells) > budget {
				return grid{}, errSparse
			}
		}
	}
	slices.SortFunc(cells, func(a, b cellRef) int {
		return cmp.Or(cmp.Compare(a.row, b.row), cmp.Compare(a.col, b.col), cmp.Compare(a.vertex, b.vertex))
	})
	return packGrid(cells), nil
}

// appendCells adds every cell that the segment crosses, and stops when there are more than the budget.
func appendCells(cells []cellRef, r ref, a, b vertex, budget int) []cellRef {
	const slack = 1e-7
	lonA, latA := float64(a.lon)/e7, float64(a.lat)/e7
	dlon := float64(wrapE7(int64(b.lon)-int64(a.lon))) / e7
	dlat := (float64(b.lat) - float64(a.lat)) / e7
	south, north := min(latA, latA+dlat)-slack, max(latA, latA+dlat)+slack
	for row := rowOf(south); row <= rowOf(north); row++ {
		t0, t1 := 0.0, 1.0
		if dlat != 0 {
			lo := (float64(row)*cellDegrees - 90 - slack - latA) / dlat
			hi := (float64(row+1)*cellDegrees - 90 + slack - latA) / dlat
			t0, t1 = max(0, min(lo, hi)), min(1, max(lo, hi))
		}
		n := columns(row)
		x0, x1 := lonA+t0*dlon, lonA+t1*dlon
		c0, c1 := columnOf(min(x0, x1)-slack, n), columnOf(max(x0, x1)+slack, n)
		c1 = min(c1, c0+n-1)
		for c := c0; c <= c1; c++ {
			if len(cells) > budget {
				return cells
			}
			cells = append(cells, cellRef{row, (c%n + n) % n, r})
		}
	}
	return cells
}

func packGrid(cells []cellRef) grid {
	if len(cells) == 0 {
		return grid{rowOff: []int32{0}, cellOff: []int32{0}}
	}
	g := grid{row0: cells[0].row, refs: make([]ref, 0, len(cells))}
	for i, c := range cells {
		newRow := i == 0 || c.row != cells[i-1].row
		if newRow {
			for int32(len(g.rowOff)) <= c.row-g.row0 {
				g.rowOff = append(g.rowOff, int32(len(g.cols)))
			}
		}
		if newRow || c.col != cells[i-1].col {
			g.cols = append(g.cols, c.col)
			g.cellOff = append(g.cellOff, int32(len(g.refs)))
		}
		g.refs = append(g.refs, c.ref)
	}
	g.rowOff = append(g.rowOff, int32(len(g.cols)))
	g.cellOff = append(g.cellOff, int32(len(g.refs)))
	return g
}

// cellsIn returns the entries of cols in a row from column c0 to c1, both included and within the row.
func (g *grid) cellsIn(row, c0, c1 int32) (from, to int32) {
	i := row - g.row0
	if i < 0 || i >= int32(len(g.rowOff))-1 {
		return 0, 0
	}
	lo, hi := g.rowOff[i], g.rowOff[i+1]
	f, _ := slices.BinarySearch(g.cols[lo:hi], c0)
	t, _ := slices.BinarySearch(g.cols[lo:hi], c1+1)
	return lo + int32(f), lo + int32(t)
}
