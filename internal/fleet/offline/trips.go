package offline

import (
	"math"
	"slices"
	"time"

	"milepost/internal/fleet"
	"milepost/internal/stream"
)

// Trip is what became of a vehicle's whole trace.
type Trip struct {
	Vehicle      string
	Observations []Observed // every one, in the input's order
	Segments     []Segment  // in order; no path leads from one to the next

	of map[int64][]int // numbers of the observations of each segment
}

// Observed is what became of one observation.
type Observed struct {
	Seq         int64 // of the vehicle's fixes, from 0
	Time        time.Time
	Lon, Lat    float64 // as observed
	Disposition string
	Segment     int64
	Place       *fleet.Place // nil where it has none
	Clamped     bool         // vaguer than roads are sought far away
}

// Segment is an unbroken stretch of a trip.
type Segment struct {
	Number     int64
	Reset      string       // why the one before ended; empty: it is the first
	Start, End time.Time    // of its first and last observation
	Path       []fleet.Span // driven; its spans join
	Graph      string       // first 8 bytes of its hash; empty: no solver was asked
}

// Edges is the path with one span a traversal of an edge.
func (s *Segment) Edges() []fleet.Span {
	var edges []fleet.Span
	for i := range s.Path {
		edges = join(edges, &s.Path[i])
	}
	return edges
}

// trips gathers whole trips; it holds all of them until the input ends.
type trips struct {
	waiting
	emit  func(*Trip) error
	end   func() error
	order []string
	by    map[string]*Trip
}

// NewTrips makes a sink that hands on every vehicle's trip, in the order of the vehicles' first fixes, when the input ends. settle is the
// run's. It holds all trips until then.
func NewTrips(settle func(stream.Key) (*fleet.Final, error), emit func(*Trip) error) Sink {
	return newTrips(settle, emit, func() error { return nil })
}

func newTrips(settle func(stream.Key) (*fleet.Final, error), emit func(*Trip) error, end func() error) *trips {
	t := &trips{emit: emit, end: end, by: map[string]*Trip{}}
	t.waiting = newWaiting(settle, t.take)
	t.bound = math.MaxInt // they are held anyway
	return t
}

// Observed takes a fix's event.
func (t *trips) Observed(seq int64, e *fleet.Event) error {
	trip := t.by[e.Vehicle]
	if trip == nil {
		trip = &Trip{Vehicle: e.Vehicle}
		t.by[e.Vehicle] = trip
		t.order = append(t.order, e.Vehicle)
	}
	trip.add(e.Closed)
	if n := len(trip.Segments); n == 0 || trip.Segments[n-1].Number != e.Segment {
		s := Segment{Number: e.Segment, Start: e.Time}
		if e.Reset != nil {
			s.Reset = e.Reset.Reason
		}
		trip.Segments = append(trip.Segments, s)
	}
	last := &trip.Segments[len(trip.Segments)-1]
	last.End = e.Time
	if e.Graph != "" {
		last.Graph = e.Graph
	}
	trip.add(e.Final)
	return t.observed(seq, e)
}

// add appends what became final to its segment, which is the trip's last.
func (t *Trip) add(f *fleet.Final) {
	if n := len(t.Segments); f != nil && n > 0 {
		t.Segments[n-1].Path = append(t.Segments[n-1].Path, f.Path...)
	}
}

// take takes an observation whose place is final.
func (t *trips) take(r *row) error {
	trip := t.by[r.vehicle]
	trip.Observations = append(trip.Observations, Observed{
		Seq: r.seq, Time: r.time, Lon: r.lon, Lat: r.lat, Disposition: r.disposition, Segment: r.segment, Place: r.place, Clamped: r.clamped,
	})
	return nil
}

// Ended takes a vehicle's last event.
func (t *trips) Ended(e *fleet.Event) error {
	if trip := t.by[e.Vehicle]; trip != nil {
		trip.add(e.Final)
	}
	return t.ended(e)
}

// Close hands the trips on.
func (t *trips) Close() error {
	for _, vehicle := range t.order {
		t.by[vehicle].index()
		if err := t.emit(t.by[vehicle]); err != nil {
			return err
		}
		delete(t.by, vehicle)
	}
	return t.end()
}

// join appends a span to a path. One that goes on where the last ended, on the same edge, becomes part of it.
func join(path []fleet.Span, s *fleet.Span) []fleet.Span {
	if len(path) == 0 {
		return append(path, *s)
	}
	last := &path[len(path)-1]
	if last.Way != s.Way || last.From != s.From || last.To != s.To || last.ToM != s.FromM || s.Entered != "" ||
		last.Private != s.Private || last.Contraflow != s.Contraflow {
		return append(path, *s)
	}
	last.ToM, last.End = s.ToM, s.End
	last.Inferred = last.Inferred && s.Inferred
	// The pair of nodes that the second begins in is the one that the first ended in, or begins where it ended.
	nodes, within := s.Nodes, false
	if k := len(last.Nodes); k > 1 && len(nodes) > 1 && last.Nodes[k-2] == nodes[0] && last.Nodes[k-1] == nodes[1] {
		nodes, within = nodes[2:], true
	} else if k > 0 && len(nodes) > 0 && last.Nodes[k-1] == nodes[0] {
		nodes = nodes[1:]
	}
	last.Nodes = append(slices.Clip(last.Nodes), nodes...)
	first, second := last.Geometry, s.Geometry
	if k := len(first); k > 0 && len(second) > 0 && first[k-1] == second[0] {
		second = second[1:]
		if within && k > 1 && len(second) > 0 { // the joint is no point of the road
			first = first[:k-1]
		}
	}
	last.Geometry = slices.Concat(first, second)
	return path
}

// Share is the part of the observations that have a place on a road, in [0,1] (M17).
func (t *Trip) Share() float64 {
	n := 0
	for i := range t.Observations {
		if t.Observations[i].Place != nil {
			n++
		}
	}
	return float64(n) / float64(max(len(t.Observations), 1))
}

func (t *Trip) index() {
	t.of = map[int64][]int{}
	for i := range t.Observations {
		n := t.Observations[i].Segment
		t.of[n] = append(t.of[n], i)
	}
}

// Of gives the observations of a segment, in order.
func (t *Trip) Of(segment int64) []Observed {
	out := make([]Observed, len(t.of[segment]))
	for i, n := range t.of[segment] {
		out[i] = t.Observations[n]
	}
	return out
}

// Numbers are the places in Observations of those of a segment, ascending.
func (t *Trip) Numbers(segment int64) []int { return t.of[segment] }

// OnPath gives the number of the edge, of Segment.Edges, that each observation of a segment lies on, -1 where it has no place or nothing was driven there.
func OnPath(path []fleet.Span, seen []Observed) []int {
	const (
		slack = 0.51 // metres: places are rounded
		back  = 64   // edges; the one is among the last that were begun by then
	)
	out, from, begun := make([]int, len(seen)), 0, 0
	for i := range seen {
		for begun < len(path) && !path[begun].Start.After(seen[i].Time) {
			begun++
		}
		out[i] = -1
		p := seen[i].Place
		if p == nil {
			continue
		}
		for k := begun - 1; k >= max(from, begun-back); k-- {
			s := &path[k]
			if s.Way == p.Way && s.From == p.From && s.To == p.To && p.OffsetM >= s.FromM-slack && p.OffsetM <= s.ToM+slack {
				out[i], from = k, k
				break
			}
		}
	}
	return out
}

// Line is a path's geometry, without repeated points.
func Line(path []fleet.Span) [][2]float64 {
	var line [][2]float64
	for i := range path {
		line = appendLine(line, path[i].Geometry)
	}
	return line
}

func appendLine(line, more [][2]float64) [][2]float64 {
	for _, p := range more {
		if n := len(line); n == 0 || line[n-1] != p {
			line = append(line, p)
		}
	}
	return line
}

// Metres is the distance between two places, for short ones.
func Metres(a, b [2]float64) float64 {
	dLon := math.Mod(a[0]-b[0]+540, 360) - 180
	return 111_195.08 * math.Hypot(dLon*math.Cos((a[1]+b[1])/2*math.Pi/180), a[1]-b[1])
}

// along gives the metres from a path's begin to each of the observations that OnPath found on it; negative: it is not on it.
func along(path []fleet.Span, seen []Observed, on []int) []float64 {
	begins := make([]float64, len(path)+1)
	for i := range path {
		begins[i+1] = begins[i] + path[i].ToM - path[i].FromM
	}
	out := make([]float64, len(seen))
	for i, k := range on {
		if out[i] = -1; k >= 0 {
			out[i] = begins[k] + min(max(seen[i].Place.OffsetM-path[k].FromM, 0), path[k].ToM-path[k].FromM)
		}
	}
	return out
}
