package offline

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"milepost/internal/fleet"
	"milepost/internal/stream"
)

// fmmFields lists the columns that may be asked for, in the order in which FMM writes its own; the last four are ours.
func fmmFields() []string {
	return []string{
		"ogeom", "opath", "error", "offset", "spdist", "pgeom", "cpath", "tpath", "mgeom", "length", "duration", "speed",
		"edges", "disposition", "confidence", "timestamp",
	}
}

// ParseFMMFields reads a list of columns, "all" for every one.
func ParseFMMFields(text string) ([]string, error) {
	known := fmmFields()
	if text == "all" {
		return known, nil
	}
	var asked []string
	for name := range strings.SplitSeq(text, ",") {
		switch name = strings.TrimSpace(name); {
		case name == "ep" || name == "tp":
			return nil, fmt.Errorf("%s is a probability of FMM's model; what ours weighs is shown by --explain", name)
		case !slices.Contains(known, name):
			return nil, fmt.Errorf("%.20q is none of %s, all", name, strings.Join(known, ", "))
		}
		asked = append(asked, name)
	}
	return slices.DeleteFunc(known, func(name string) bool { return !slices.Contains(asked, name) }), nil
}

// fmmTable writes FMM's table of results: a row a segment of a trip, with the way ids of OSM as the edges' numbers.
type fmmTable struct {
	w        *bufio.Writer
	fields   []string
	geometry fleet.Geometry
	loc      *Locator
	started  bool
}

// NewFMM makes a sink of FMM's result table with the given columns: semicolons between columns, commas between values. A trip with breaks
// has a row for each segment, since no line crosses a break; the last column counts them. An observation without a place has an empty
// value. settle is the run's. It holds all trips until the input ends.
func NewFMM(w io.Writer, fields []string, g fleet.Geometry, loc *Locator, settle func(stream.Key) (*fleet.Final, error)) Sink {
	t := &fmmTable{w: bufio.NewWriterSize(w, 64<<10), fields: fields, geometry: g, loc: loc}
	return newTrips(settle, t.trip, func() error {
		if err := t.begin(); err != nil {
			return err
		}
		if err := t.w.Flush(); err != nil {
			return fmt.Errorf("write rows: %w", err)
		}
		return nil
	})
}

func (t *fmmTable) begin() error {
	if t.started {
		return nil
	}
	t.started = true
	if _, err := fmt.Fprintf(t.w, "id;%s;segment\n", strings.Join(t.fields, ";")); err != nil {
		return fmt.Errorf("write the header: %w", err)
	}
	return nil
}

func (t *fmmTable) trip(trip *Trip) error {
	if err := t.begin(); err != nil {
		return err
	}
	for i := range trip.Segments {
		r := newFMMRow(t, &trip.Segments[i], trip.Of(trip.Segments[i].Number))
		cells := []string{fmmCell(trip.Vehicle)}
		for _, name := range t.fields {
			cells = append(cells, r.cell(name))
		}
		if _, err := fmt.Fprintf(t.w, "%s;%d\n", strings.Join(cells, ";"), trip.Segments[i].Number); err != nil {
			return fmt.Errorf("write a row: %w", err)
		}
	}
	return nil
}

// fmmCell quotes a name that would break the row.
func fmmCell(s string) string {
	if strings.ContainsAny(s, ";\"\r\n") {
		return `"` + strings.ReplaceAll(s, `"`, `""`) + `"`
	}
	return s
}

// fmmRow is one segment.
type fmmRow struct {
	*fmmTable
	edges []fleet.Span
	seen  []Observed
	on    []int     // edge of each
	along []float64 // metres from the path's begin
}

func newFMMRow(t *fmmTable, s *Segment, seen []Observed) *fmmRow {
	r := &fmmRow{fmmTable: t, edges: s.Edges(), seen: seen}
	r.on = OnPath(r.edges, seen)
	r.along = along(r.edges, seen, r.on)
	return r
}

func (r *fmmRow) cell(field string) string {
	switch field {
	case "ogeom":
		return r.line(func(o *Observed) ([2]float64, bool) { return [2]float64{o.Lon, o.Lat}, true })
	case "pgeom":
		return r.line(func(o *Observed) ([2]float64, bool) {
			if o.Place == nil {
				return [2]float64{}, false
			}
			return [2]float64{o.Place.Lon, o.Place.Lat}, true
		})
	case "mgeom":
		return r.geom(Line(r.edges))
	case "cpath":
		return r.path(r.edges, func(s *fleet.Span) string { return strconv.FormatInt(s.Way, 10) })
	case "edges":
		return r.path(r.edges, func(s *fleet.Span) string { return fmt.Sprintf("%d:%d:%d", s.Way, s.From, s.To) })
	case "tpath":
		return r.travelled()
	case "spdist", "duration", "speed":
		return r.between(field)
	}
	out := make([]string, len(r.seen))
	for i := range r.seen {
		out[i] = r.value(field, &r.seen[i])
	}
	return strings.Join(out, ",")
}

// value is a field of one observation.
func (r *fmmRow) value(field string, o *Observed) string {
	switch {
	case field == "disposition":
		return o.Disposition
	case field == "timestamp":
		return decimal(float64(o.Time.UnixMicro())/1e6, 6)
	case o.Place == nil:
		return ""
	}
	switch field {
	case "opath":
		return strconv.FormatInt(o.Place.Way, 10)
	case "error":
		return decimal(Metres([2]float64{o.Lon, o.Lat}, [2]float64{o.Place.Lon, o.Place.Lat}), 2)
	case "offset":
		return decimal(o.Place.OffsetM, 2)
	case "confidence":
		return decimal(o.Place.Confidence, 3)
	case "length":
		if m := r.loc.LengthM(o.Place); m > 0 {
			return decimal(m, 2)
		}
	}
	return ""
}

// between is a field of two consecutive observations that were driven between.
func (r *fmmRow) between(field string) string {
	var out []string
	for i := 1; i < len(r.seen); i++ {
		took := r.seen[i].Time.Sub(r.seen[i-1].Time).Seconds()
		driven := r.along[i] - r.along[i-1]
		known := r.along[i] >= 0 && r.along[i-1] >= 0
		switch {
		case field == "duration":
			out = append(out, decimal(took, 6))
		case !known:
			out = append(out, "")
		case field == "spdist":
			out = append(out, decimal(driven, 2))
		case took > 0:
			out = append(out, decimal(driven/took, 3))
		default:
			out = append(out, "0")
		}
	}
	return strings.Join(out, ",")
}

// travelled gives the edges between consecutive observations, with a bar between the lists.
func (r *fmmRow) travelled() string {
	var out []string
	last := -1
	for _, k := range r.on {
		if k >= 0 && last >= 0 {
			out = append(out, r.path(r.edges[last:k+1], func(s *fleet.Span) string { return strconv.FormatInt(s.Way, 10) }))
		}
		if k >= 0 {
			last = k
		}
	}
	return strings.Join(out, "|")
}

func (r *fmmRow) path(path []fleet.Span, name func(*fleet.Span) string) string {
	out := make([]string, len(path))
	for i := range path {
		out[i] = name(&path[i])
	}
	return strings.Join(out, ",")
}

func (r *fmmRow) line(of func(*Observed) ([2]float64, bool)) string {
	var line [][2]float64
	for i := range r.seen {
		if p, ok := of(&r.seen[i]); ok {
			line = append(line, p)
		}
	}
	return r.geom(line)
}

func (r *fmmRow) geom(line [][2]float64) string {
	switch r.geometry {
	case fleet.Polyline6:
		return fmmCell(fleet.EncodePolyline6(line)) // a semicolon is none of its letters, a quote neither
	case fleet.Coordinates:
		return strings.ReplaceAll(fmt.Sprint(line), " ", ",")
	case fleet.NoGeometry:
		return ""
	case fleet.WKT:
	}
	return fleet.EncodeWKT(line)
}

// decimal writes a number with at most so many decimals.
func decimal(x float64, decimals int) string {
	s := strconv.FormatFloat(x, 'f', decimals, 64)
	if strings.Contains(s, ".") {
		s = strings.TrimRight(strings.TrimRight(s, "0"), ".")
	}
	if s == "-0" {
		return "0"
	}
	return s
}
