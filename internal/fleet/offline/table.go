package offline

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"milepost/internal/fleet"
	"milepost/internal/stream"
)

// Header is the table's first line: from and to are the neighbouring OSM nodes in driving order, offset_m the distance
// from the first, lon and lat the snapped position.
const Header = "vehicle,seq,time,disposition,way,from,to,offset_m,lon,lat,heading_deg,confidence,segment"

// table writes one CSV row a fix, in the input's order.
type table struct {
	waiting
	w       *bufio.Writer
	loc     *Locator
	started bool
	buf     []byte
}

// NewTable makes a sink of CSV rows. settle is the run's.
func NewTable(w io.Writer, loc *Locator, settle func(stream.Key) (*fleet.Final, error)) Sink {
	t := &table{w: bufio.NewWriterSize(w, 64<<10), loc: loc}
	t.waiting = newWaiting(settle, t.write)
	return t
}

// Observed takes a fix's event.
func (t *table) Observed(seq int64, e *fleet.Event) error {
	return errors.Join(t.begin(), t.observed(seq, e))
}

// Ended takes a vehicle's last places.
func (t *table) Ended(e *fleet.Event) error { return t.ended(e) }

// Close writes what is left.
func (t *table) Close() error {
	if err := t.begin(); err != nil {
		return err
	}
	if err := t.w.Flush(); err != nil {
		return fmt.Errorf("write rows: %w", err)
	}
	return nil
}

func (t *table) begin() error {
	if t.started {
		return nil
	}
	t.started = true
	if _, err := t.w.WriteString(Header + "\n"); err != nil {
		return fmt.Errorf("write the header: %w", err)
	}
	return nil
}

func (t *table) write(r *row) error {
	t.buf = t.append(t.buf[:0], r)
	if _, err := t.w.Write(t.buf); err != nil {
		return fmt.Errorf("write a row: %w", err)
	}
	return nil
}

func (t *table) append(b []byte, r *row) []byte {
	b = appendCell(b, r.vehicle)
	b = strconv.AppendInt(append(b, ','), r.seq, 10)
	b = r.time.UTC().AppendFormat(append(b, ','), time.RFC3339Nano)
	b = append(append(append(b, ','), r.disposition...), ',')
	if r.place == nil {
		b = append(b, ",,,,,,,,"...)
	} else {
		p := r.place
		from, to, offset := t.loc.Locate(p)
		b = strconv.AppendInt(b, p.Way, 10)
		b = strconv.AppendInt(append(b, ','), from, 10)
		b = strconv.AppendInt(append(b, ','), to, 10)
		b = strconv.AppendFloat(append(b, ','), offset, 'f', 2, 64)
		b = strconv.AppendFloat(append(b, ','), p.Lon, 'f', 7, 64)
		b = strconv.AppendFloat(append(b, ','), p.Lat, 'f', 7, 64)
		b = strconv.AppendFloat(append(b, ','), p.HeadingDeg, 'f', 1, 64)
		b = append(strconv.AppendFloat(append(b, ','), p.Confidence, 'f', 3, 64), ',')
	}
	return append(strconv.AppendInt(b, r.segment, 10), '\n')
}

// appendCell appends a CSV cell, quoted where it must be.
func appendCell(b []byte, s string) []byte {
	if !strings.ContainsAny(s, ",\"\r\n") {
		return append(b, s...)
	}
	return append(append(append(b, '"'), strings.ReplaceAll(s, `"`, `""`)...), '"')
}
