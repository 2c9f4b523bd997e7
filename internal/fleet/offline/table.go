package offline

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"milepost/internal/fleet"
	"milepost/internal/stream"
)

// maxWaiting rows wait for their places to become final; beyond, the oldest takes the best place known. A vehicle whose trace ends early in
// a long file would hold all rows after it otherwise.
const maxWaiting = 1 << 18

// Header is the table's first line: from and to are the neighbouring OSM nodes in driving order, offset_m the distance
// from the first, lon and lat the snapped position.
const Header = "vehicle,seq,time,disposition,way,from,to,offset_m,lon,lat,heading_deg,confidence,segment"

// table writes one CSV row a fix, in the input's order.
type table struct {
	w       *bufio.Writer
	loc     *Locator
	settle  func(stream.Key) (*fleet.Final, error)
	bound   int
	rows    []*row // waiting, in the input's order; those before head are written
	head    int
	open    map[string]*openRows
	started bool
	buf     []byte
}

// openRows are a vehicle's rows whose places are not final.
type openRows struct {
	life []*row // ascending by number, of the current count of observation numbers
}

type row struct {
	vehicle     string
	seq         int64 // of the vehicle's fixes
	number      int64 // the event's
	time        time.Time
	disposition string
	place       *fleet.Place
	segment     int64
	done        bool
}

// NewTable makes a sink of CSV rows. settle is the run's.
func NewTable(w io.Writer, loc *Locator, settle func(stream.Key) (*fleet.Final, error)) Sink {
	return &table{w: bufio.NewWriterSize(w, 64<<10), loc: loc, settle: settle, bound: maxWaiting, open: map[string]*openRows{}}
}

// Observed takes a fix's event.
func (t *table) Observed(seq int64, e *fleet.Event) error {
	o := t.open[e.Vehicle]
	if o == nil {
		o = &openRows{}
		t.open[e.Vehicle] = o
	}
	r := &row{vehicle: e.Vehicle, seq: seq, time: e.Time, disposition: e.Disposition, segment: e.Segment}
	if e.Closed != nil {
		o.final(e.Closed)
	}
	switch {
	case e.Seq == nil:
		r.done = true
	default:
		r.number = *e.Seq
		if e.Reset != nil && r.number == 0 { // the numbers begin again: what is left of the last count stays as it is
			o.finish()
		}
		if e.Provisional != nil {
			r.place = e.Provisional.Place
		}
		o.life = append(o.life, r)
	}
	if e.Final != nil {
		o.final(e.Final)
	}
	t.rows = append(t.rows, r)
	return t.write()
}

// Ended takes a vehicle's last places.
func (t *table) Ended(e *fleet.Event) error {
	o := t.open[e.Vehicle]
	if o == nil {
		return nil
	}
	if e.Final != nil {
		o.final(e.Final)
	}
	o.finish()
	delete(t.open, e.Vehicle)
	return t.write()
}

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

// final gives rows their places; a row that a later final passes over has none.
func (o *openRows) final(f *fleet.Final) {
	for i := range f.Points {
		p := &f.Points[i]
		for len(o.life) > 0 && o.life[0].number <= p.Seq {
			r := o.life[0]
			o.life = o.life[1:]
			r.done = true
			switch {
			case r.number == p.Seq:
				r.disposition, r.place, r.segment = p.Disposition, p.Place, f.Segment
			case r.place != nil: // it was believed once
				r.disposition, r.place = fleet.Outlier, nil
			}
		}
	}
}

// finish ends the wait of all rows. One that was believed and never became final is an outlier.
func (o *openRows) finish() {
	for _, r := range o.life {
		r.done = true
		if r.place != nil {
			r.disposition, r.place = fleet.Outlier, nil
		}
	}
	o.life = nil
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

// write writes the rows at the head that are done.
func (t *table) write() error {
	if err := t.begin(); err != nil {
		return err
	}
	for t.head < len(t.rows) {
		r := t.rows[t.head]
		if !r.done && len(t.rows)-t.head > t.bound {
			if err := t.force(r); err != nil {
				return err
			}
		}
		if !r.done {
			break
		}
		t.buf = t.append(t.buf[:0], r)
		if _, err := t.w.Write(t.buf); err != nil {
			return fmt.Errorf("write a row: %w", err)
		}
		t.rows[t.head] = nil
		t.head++
	}
	if t.head > 1024 && t.head > len(t.rows)/2 {
		t.rows = append(t.rows[:0], t.rows[t.head:]...)
		t.head = 0
	}
	return nil
}

// force gives a row, and those of its vehicle that wait with it, the best places known.
func (t *table) force(r *row) error {
	f, err := t.settle(stream.Key(r.vehicle))
	if err != nil {
		return err
	}
	o := t.open[r.vehicle]
	if f != nil {
		o.final(f)
	}
	o.finish()
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
