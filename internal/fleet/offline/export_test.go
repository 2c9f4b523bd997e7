package offline

import (
	"io"

	"milepost/internal/fleet"
	"milepost/internal/stream"
)

// NewBoundedTable is NewTable with another bound on waiting rows.
func NewBoundedTable(w io.Writer, loc *Locator, settle func(stream.Key) (*fleet.Final, error), bound int) Sink {
	t := NewTable(w, loc, settle).(*table)
	t.bound = bound
	return t
}
