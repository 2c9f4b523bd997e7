package offline

import (
	"bufio"
	"fmt"
	"io"

	"milepost/internal/fleet"
)

// jsonLines writes the events as the matched topic has them, one a line.
type jsonLines struct {
	w    *bufio.Writer
	line func(dst []byte, line [][2]float64) []byte
	buf  []byte
}

// NewJSON makes a sink of JSON lines; the lines of spans are written as geometry says.
func NewJSON(w io.Writer, g fleet.Geometry) Sink {
	return &jsonLines{w: bufio.NewWriterSize(w, 64<<10), line: g.Member()}
}

// Observed writes an event.
func (j *jsonLines) Observed(_ int64, e *fleet.Event) error {
	j.buf = append(e.AppendJSONWith(j.buf[:0], j.line), '\n')
	if _, err := j.w.Write(j.buf); err != nil {
		return fmt.Errorf("write an event: %w", err)
	}
	return nil
}

// Ended writes a vehicle's last event, where it says anything.
func (j *jsonLines) Ended(e *fleet.Event) error {
	if e.Final == nil {
		return nil
	}
	return j.Observed(0, e)
}

// Close writes what is buffered.
func (j *jsonLines) Close() error {
	if err := j.w.Flush(); err != nil {
		return fmt.Errorf("write events: %w", err)
	}
	return nil
}
