package catalog

import (
	"fmt"
	"math"
	"strings"
)

// Precision is the length of a cell's name: at 4 a cell is 0.35 by 0.18 degrees, 39 by 20 km at the equator.
const Precision = 4

const (
	alphabet  = "0123456789bcdefghjkmnpqrstuvwxyz"
	axisBits  = Precision * 5 / 2 // of a longitude, and of a latitude
	axisCells = 1 << axisBits
)

// Cell is a geohash cell of Precision: its bits, longitude and latitude by turns.
type Cell uint32

// CellAt gives the cell of a place in degrees. The antimeridian's and the north pole's edges belong to the last cells before them.
func CellAt(lon, lat float64) Cell {
	x, y := axis(lon, 360), axis(lat, 180)
	var c Cell
	for i := axisBits - 1; i >= 0; i-- {
		c = c<<2 | Cell(x>>i&1)<<1 | Cell(y>>i&1)
	}
	return c
}

// axis gives the stretch of an axis that holds a value. Edges are exact, the quotient is not: it may be one off beside an edge.
func axis(v, width float64) uint32 {
	n := min(max(math.Floor((v/width+0.5)*axisCells), 0), axisCells-1)
	switch {
	case v < edge(n, width) && n > 0:
		n--
	case v >= edge(n+1, width) && n < axisCells-1:
		n++
	}
	return uint32(n)
}

// edge is where the n-th stretch of an axis begins.
func edge(n, width float64) float64 { return (n/axisCells - 0.5) * width }

// ParseCell reads a cell's name.
func ParseCell(name string) (Cell, error) {
	if len(name) != Precision {
		return 0, fmt.Errorf("cell %q is not a geohash of %d characters", name, Precision)
	}
	var c Cell
	for i := range len(name) {
		n := strings.IndexByte(alphabet, name[i])
		if n < 0 {
			return 0, fmt.Errorf("cell %q is not a geohash: it has no character %q (they are %s)", name, name[i], alphabet)
		}
		c = c<<5 | Cell(n)
	}
	return c, nil
}

// String gives the cell's name.
func (c Cell) String() string {
	var b [Precision]byte
	for i := Precision - 1; i >= 0; i-- {
		b[i] = alphabet[c&31]
		c >>= 5
	}
	return string(b[:])
}

// Bounds gives the cell's box in degrees.
func (c Cell) Bounds() (west, south, east, north float64) {
	var x, y uint32
	for i := axisBits - 1; i >= 0; i-- {
		x = x<<1 | uint32(c>>(2*i+1)&1)
		y = y<<1 | uint32(c>>(2*i)&1)
	}
	return edge(float64(x), 360), edge(float64(y), 180), edge(float64(x+1), 360), edge(float64(y+1), 180)
}
