package offline

import (
	"time"

	"milepost/internal/fleet"
	"milepost/internal/mapmatch"
	"milepost/internal/stream"
)

// maxWaiting rows wait for their places to become final; beyond, the oldest takes the best place known. A vehicle whose trace ends early in
// a long file would hold all rows after it otherwise.
const maxWaiting = 1 << 18

// waiting holds rows until their places are final and hands them on in the input's order.
type waiting struct {
	settle func(stream.Key) (*fleet.Final, error)
	write  func(*row) error
	bound  int
	rows   []*row // in the input's order; those before head are written
	head   int
	next   *mapmatch.Explanation // of the observation that comes next; nil: nobody asked
	open   map[string]*openRows
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
	lon, lat    float64 // as observed
	clamped     bool    // vaguer than roads are sought far away
	why         *mapmatch.Explanation
	done        bool
}

func newWaiting(settle func(stream.Key) (*fleet.Final, error), write func(*row) error) waiting {
	return waiting{settle: settle, write: write, bound: maxWaiting, open: map[string]*openRows{}}
}

func (w *waiting) observed(seq int64, e *fleet.Event) error {
	o := w.open[e.Vehicle]
	if o == nil {
		o = &openRows{}
		w.open[e.Vehicle] = o
	}
	r := &row{vehicle: e.Vehicle, seq: seq, time: e.Time, disposition: e.Disposition, segment: e.Segment, lon: e.Lon, lat: e.Lat, clamped: e.AccuracyClamped, why: w.next}
	if e.Closed != nil {
		o.final(e.Closed)
	}
	if e.Seq == nil {
		r.done = true
	} else {
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
	w.rows = append(w.rows, r)
	return w.flush()
}

func (w *waiting) ended(e *fleet.Event) error {
	o := w.open[e.Vehicle]
	if o == nil {
		return nil
	}
	if e.Final != nil {
		o.final(e.Final)
	}
	o.finish()
	delete(w.open, e.Vehicle)
	return w.flush()
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

// flush writes the rows at the head that are done.
func (w *waiting) flush() error {
	for w.head < len(w.rows) {
		r := w.rows[w.head]
		if !r.done && len(w.rows)-w.head > w.bound {
			if err := w.force(r); err != nil {
				return err
			}
		}
		if !r.done {
			break
		}
		if err := w.write(r); err != nil {
			return err
		}
		w.rows[w.head] = nil
		w.head++
	}
	if w.head > 1024 && w.head > len(w.rows)/2 {
		w.rows = append(w.rows[:0], w.rows[w.head:]...)
		w.head = 0
	}
	return nil
}

// force gives a row, and those of its vehicle that wait with it, the best places known.
func (w *waiting) force(r *row) error {
	f, err := w.settle(stream.Key(r.vehicle))
	if err != nil {
		return err
	}
	o := w.open[r.vehicle]
	if f != nil {
		o.final(f)
	}
	o.finish()
	return nil
}
