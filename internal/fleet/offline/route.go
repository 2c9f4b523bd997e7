package offline

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strconv"

	"milepost/internal/fleet"
	"milepost/internal/mapmatch"
)

// RouteHeader is the route's first line.
const RouteHeader = "vehicle,way,from,to"

// route writes the driven pairs of neighbouring OSM nodes, grouped by vehicle. It holds 24 bytes a pair until the input ends.
type route struct {
	w       *bufio.Writer
	driven  map[string]*driven
	started bool
}

// driven is one vehicle's route.
type driven struct {
	pairs   []mapmatch.Pair
	segment int64
	last    []fleet.Span // the segment's last span, none before its first
}

// NewRoute makes a sink of the driven route.
func NewRoute(w io.Writer) Sink {
	return &route{w: bufio.NewWriterSize(w, 64<<10), driven: map[string]*driven{}}
}

// Observed takes what became final.
func (r *route) Observed(_ int64, e *fleet.Event) error {
	d := r.driven[e.Vehicle]
	if d == nil {
		d = &driven{}
		r.driven[e.Vehicle] = d
	}
	d.add(e.Closed)
	d.add(e.Final)
	return nil
}

func (d *driven) add(f *fleet.Final) {
	if f == nil || len(f.Path) == 0 {
		return
	}
	if d.segment != f.Segment {
		d.segment, d.last = f.Segment, nil
	}
	before := fleet.AppendPairs(nil, d.last)
	joined := fleet.AppendPairs(nil, append(slices.Clip(d.last), f.Path...))
	d.pairs = append(d.pairs, joined[len(before):]...)
	last := f.Path[len(f.Path)-1]
	last.Geometry = nil
	d.last = append(d.last[:0], last)
}

// Ended writes a vehicle's route.
func (r *route) Ended(e *fleet.Event) error {
	if err := r.begin(); err != nil {
		return err
	}
	d := r.driven[e.Vehicle]
	if d == nil {
		return nil
	}
	d.add(e.Final)
	var b []byte
	for _, p := range d.pairs {
		b = appendCell(b[:0], e.Vehicle)
		for _, n := range [...]int64{p.Way, p.From, p.To} {
			b = strconv.AppendInt(append(b, ','), n, 10)
		}
		if _, err := r.w.Write(append(b, '\n')); err != nil {
			return fmt.Errorf("write a route: %w", err)
		}
	}
	delete(r.driven, e.Vehicle)
	return nil
}

func (r *route) begin() error {
	if r.started {
		return nil
	}
	r.started = true
	if _, err := r.w.WriteString(RouteHeader + "\n"); err != nil {
		return fmt.Errorf("write the header: %w", err)
	}
	return nil
}

// Close writes what is buffered.
func (r *route) Close() error {
	if err := r.begin(); err != nil {
		return err
	}
	if err := r.w.Flush(); err != nil {
		return fmt.Errorf("write routes: %w", err)
	}
	return nil
}
