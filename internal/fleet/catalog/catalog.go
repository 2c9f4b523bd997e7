package catalog

import (
	"fmt"
	"strings"
	"time"
)

// Catalog is a whole, consistent region catalog.
type Catalog struct {
	Version int64
	Regions []Region

	owner   map[Cell]int   // region number
	overlap map[Cell][]int // region numbers, by id
}

// Region is one region of a catalog.
type Region struct {
	ID       string
	Graph    string // the map file's path, as written: relative to the catalog's folder
	Box      *Box   // the part of the map; nil: all of it
	Coverage []Cell
	Overlap  []Cell
	// Lanes is how many partitions the region's request topic has, and so how many matchers can share its work; 0: as many as without a
	// catalog.
	Lanes int
	// ResourceClass is the kind of machine that the region's matchers want: one that says it is of another does not serve it.
	ResourceClass string
	// MinReplicas and MaxReplicas bound the number of matchers; metrics and alerts compare.
	MinReplicas, MaxReplicas int
	// FreshnessBudget is how long after its record's Kafka timestamp an observation should be committed; 0: not measured.
	FreshnessBudget time.Duration
	// MaxJobs and MaxBytes bound the region's jobs in flight in a process; 0: as configured for all.
	MaxJobs, MaxBytes int64
}

// Box is a part of a map, in degrees.
type Box struct{ West, South, East, North float64 }

// Owner gives the number of the region that covers the cell.
func (c *Catalog) Owner(cell Cell) (int, bool) {
	n, ok := c.owner[cell]
	return n, ok
}

// Overlaps gives the numbers of the regions that also serve the cell for vehicles that come from their coverage, the lowest id first.
// The caller must not change it.
func (c *Catalog) Overlaps(cell Cell) []int { return c.overlap[cell] }

// Problem is one thing that is wrong with a catalog.
type Problem struct {
	Line int // from 1; 0: the file as a whole
	Text string
}

// Error is everything that is wrong with a catalog, by line.
type Error struct {
	Name     string // of the file, without its folder
	Problems []Problem
}

// Error gives a line a problem, as compilers do.
func (e *Error) Error() string {
	lines := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		if lines[i] = fmt.Sprintf("%s:%d: %s", e.Name, p.Line, p.Text); p.Line == 0 {
			lines[i] = fmt.Sprintf("%s: %s", e.Name, p.Text)
		}
	}
	return strings.Join(lines, "\n")
}
