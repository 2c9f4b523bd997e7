package fleet

import (
	"encoding/json"
	"strconv"
	"time"
	"unicode/utf8"
)

// AppendJSON appends the event's JSON form. Equal events give equal bytes (I16); DecodeEvent is its inverse.
func (e *Event) AppendJSON(dst []byte) []byte { return e.AppendJSONWith(dst, nil) }

// AppendJSONWith is AppendJSON with another member in the place of a span's "geometry": line appends it, name and all, or nothing. Nil is
// the member that DecodeEvent reads.
func (e *Event) AppendJSONWith(dst []byte, line func(dst []byte, line [][2]float64) []byte) []byte {
	w := jsonWriter{b: dst, line: line}
	w.open()
	w.integer("schema", int64(e.Schema))
	w.text("id", e.ID)
	w.text("vehicle", e.Vehicle)
	w.integer("segment", e.Segment)
	w.text("revision", e.Revision)
	w.time("time", e.Time)
	w.number("lon", e.Lon)
	w.number("lat", e.Lat)
	w.text("disposition", e.Disposition)
	if e.Graph != "" {
		w.text("graph", e.Graph)
	}
	w.flag("accuracy_clamped", e.AccuracyClamped)
	if r := e.Reset; r != nil {
		w.object("reset")
		w.text("reason", r.Reason)
		w.integer("previous_segment", r.PreviousSegment)
		w.close()
	}
	w.final("closed", e.Closed)
	if r := e.Retracted; r != nil {
		w.object("retracted")
		w.integer("segment", r.Segment)
		w.optional("from_seq", r.FromSeq)
		w.close()
	}
	w.optional("seq", e.Seq)
	w.optional("supersedes", e.Supersedes)
	if e.Provisional != nil {
		w.name("provisional")
		w.position(e.Provisional)
	}
	w.spans("path", e.Path)
	w.final("final", e.Final)
	w.close()
	return w.b
}

// MarshalJSON gives the event's JSON form.
func (e *Event) MarshalJSON() ([]byte, error) { return e.AppendJSON(nil), nil }

// jsonWriter appends JSON; a comma goes before every member or element but the first.
type jsonWriter struct {
	b    []byte
	line func(dst []byte, line [][2]float64) []byte // see AppendJSONWith
}

func (w *jsonWriter) comma() {
	if n := len(w.b); n > 0 && w.b[n-1] != '{' && w.b[n-1] != '[' {
		w.b = append(w.b, ',')
	}
}

func (w *jsonWriter) open()  { w.b = append(w.b, '{') }
func (w *jsonWriter) close() { w.b = append(w.b, '}') }

func (w *jsonWriter) name(n string) {
	w.comma()
	w.b = append(append(append(w.b, '"'), n...), '"', ':')
}

func (w *jsonWriter) object(n string) {
	w.name(n)
	w.open()
}

func (w *jsonWriter) text(n, s string) {
	w.name(n)
	w.b = appendString(w.b, s)
}

func (w *jsonWriter) integer(n string, v int64) {
	w.name(n)
	w.b = strconv.AppendInt(w.b, v, 10)
}

func (w *jsonWriter) optional(n string, v *int64) {
	if v != nil {
		w.integer(n, *v)
	}
}

// flag writes true; what is false is left out.
func (w *jsonWriter) flag(n string, set bool) {
	if set {
		w.name(n)
		w.b = append(w.b, "true"...)
	}
}

func (w *jsonWriter) number(n string, v float64) {
	w.name(n)
	w.b = strconv.AppendFloat(w.b, v, 'f', -1, 64)
}

func (w *jsonWriter) time(n string, t time.Time) {
	w.name(n)
	w.b = append(t.UTC().AppendFormat(append(w.b, '"'), time.RFC3339Nano), '"')
}

func (w *jsonWriter) final(n string, f *Final) {
	if f == nil {
		return
	}
	w.object(n)
	w.integer("segment", f.Segment)
	if len(f.Points) > 0 {
		w.name("points")
		w.b = append(w.b, '[')
		for i := range f.Points {
			w.comma()
			w.position(&f.Points[i])
		}
		w.b = append(w.b, ']')
	}
	w.spans("path", f.Path)
	w.close()
}

func (w *jsonWriter) position(p *Position) {
	w.open()
	w.integer("seq", p.Seq)
	w.time("time", p.Time)
	w.text("disposition", p.Disposition)
	if p.Place != nil {
		w.integer("way", p.Way)
		w.integer("from", p.From)
		w.integer("to", p.To)
		w.number("offset_m", p.OffsetM)
		w.number("lon", p.Lon)
		w.number("lat", p.Lat)
		w.number("heading_deg", p.HeadingDeg)
		w.number("confidence", p.Confidence)
	}
	w.close()
}

func (w *jsonWriter) spans(n string, spans []Span) {
	if len(spans) == 0 {
		return
	}
	w.name(n)
	w.b = append(w.b, '[')
	for i := range spans {
		w.comma()
		w.span(&spans[i])
	}
	w.b = append(w.b, ']')
}

func (w *jsonWriter) span(s *Span) {
	w.open()
	w.integer("way", s.Way)
	w.integer("from", s.From)
	w.integer("to", s.To)
	w.number("from_m", s.FromM)
	w.number("to_m", s.ToM)
	w.time("start", s.Start)
	w.time("end", s.End)
	if len(s.Nodes) > 0 {
		w.name("nodes")
		w.b = append(w.b, '[')
		for _, n := range s.Nodes {
			w.comma()
			w.b = strconv.AppendInt(w.b, n, 10)
		}
		w.b = append(w.b, ']')
	}
	switch {
	case len(s.Geometry) == 0:
	case w.line != nil:
		w.comma()
		if b := w.line(w.b, s.Geometry); len(b) > len(w.b) {
			w.b = b
		} else {
			w.b = w.b[:len(w.b)-1] // no comma for no member
		}
	default:
		w.name("geometry")
		w.b = append(w.b, '[')
		for _, p := range s.Geometry {
			w.comma()
			w.b = strconv.AppendFloat(append(w.b, '['), p[0], 'f', -1, 64)
			w.b = append(strconv.AppendFloat(append(w.b, ','), p[1], 'f', -1, 64), ']')
		}
		w.b = append(w.b, ']')
	}
	if s.Polyline6 != "" {
		w.text("polyline6", s.Polyline6)
	}
	if s.WKT != "" {
		w.text("wkt", s.WKT)
	}
	w.flag("inferred", s.Inferred)
	w.flag("private", s.Private)
	w.flag("contraflow", s.Contraflow)
	if s.Entered != "" {
		w.text("entered", s.Entered)
	}
	w.close()
}

// appendString appends s as a JSON string.
func appendString(dst []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < 0x20 || c == '"' || c == '\\' || c >= utf8.RuneSelf {
			b, err := json.Marshal(s)
			if err != nil { // a string always has a JSON form
				panic(err)
			}
			return append(dst, b...)
		}
	}
	return append(append(append(dst, '"'), s...), '"')
}
