package tracefile

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// json reads an object a line, one array of objects, or the features of a GeoJSON collection.
func (s *source) json(r *bufio.Reader) {
	s.fields = true
	dropBOM(r)
	e := &elements{r: r, max: s.opts.MaxRow, line: 1}
	first, err := e.peek()
	switch {
	case errors.Is(err, io.EOF):
		s.fatal(0, "", "the file is empty")
	case err != nil:
		s.fatal(e.line, "", reasonOf(err))
	case first == '[':
		s.array(e)
	case s.format() == GeoJSON:
		if err := e.seekFeatures(); err != nil {
			s.fatal(e.line, "", jsonReason(err))
			return
		}
		s.array(e)
	default:
		s.jsonLines(r, e.line)
	}
}

var errNoFeatures = errors.New("no array of features: want a GeoJSON FeatureCollection of points")

func jsonReason(err error) string {
	if errors.Is(err, io.EOF) {
		return "the file ends in the middle: it is truncated"
	}
	return reasonOf(err)
}

func (s *source) jsonLines(r *bufio.Reader, line int) {
	l := &lines{r: r, max: s.opts.MaxRow, n: line - 1}
	for {
		b, err := l.next()
		switch {
		case errors.Is(err, io.EOF):
			return
		case errors.Is(err, errRowTooLong):
			if !s.row(Fix{}, &RowError{Line: l.n, Reason: "the line is " + tooLong(l.max)}) {
				return
			}
			continue
		case err != nil:
			s.fatal(l.n, "", reasonOf(err))
			return
		}
		if b = bytes.TrimSpace(b); len(b) > 0 && !s.row(s.object(l.n, b)) {
			return
		}
	}
}

// array reads the elements of the array that begins next.
func (s *source) array(e *elements) {
	if c, err := e.peek(); err != nil || c != '[' {
		s.fatal(e.line, "", errNoFeatures.Error())
		return
	}
	e.take()
	for {
		b, line, err := e.next()
		switch {
		case errors.Is(err, errArrayEnd):
			return
		case errors.Is(err, errRowTooLong):
			if !s.row(Fix{}, &RowError{Line: line, Reason: "the element is " + tooLong(e.max)}) {
				return
			}
			continue
		case err != nil:
			s.fatal(e.line, "", jsonReason(err))
			return
		}
		if !s.row(s.object(line, b)) {
			return
		}
	}
}

// object reads one object: a row, or a GeoJSON feature that is a point.
func (s *source) object(line int, b []byte) (Fix, *RowError) {
	var m map[string]json.RawMessage
	if err := json.Unmarshal(b, &m); err != nil || m == nil {
		reason := "not a JSON object"
		if bytes.Contains(b, []byte("NaN")) || bytes.Contains(b, []byte("Infinity")) {
			reason += ": NaN and Infinity are no JSON numbers"
		}
		return Fix{}, &RowError{Line: line, Reason: reason}
	}
	var f fields
	if geometry, ok := m["geometry"]; ok && string(m["type"]) == `"Feature"` {
		if err := f.feature(geometry); err != nil {
			return Fix{}, &RowError{Line: line, Column: "geometry", Reason: err.Error()}
		}
		m = nil
		if err := json.Unmarshal(orNull(b, "properties"), &m); err != nil {
			return Fix{}, &RowError{Line: line, Column: "properties", Reason: "not an object"}
		}
	}
	for _, ours := range ColumnNames() {
		if ours == ColLine { // a trajectory in one row is a matter of CSV
			continue
		}
		theirs := s.opts.Columns.theirs(ours)
		v, found, ok := member(m, theirs, ours == ColTime)
		switch {
		case !ok:
			return Fix{}, &RowError{Line: line, Column: theirs, Reason: "neither a number nor text"}
		case found:
			f.set(ours, v)
		}
	}
	return s.fix(line, &f)
}

// orNull gives one member of an object, null where it is absent.
func orNull(b []byte, name string) []byte {
	var m map[string]json.RawMessage
	if json.Unmarshal(b, &m) == nil && m[name] != nil {
		return m[name]
	}
	return []byte("null")
}

func (f *fields) feature(geometry json.RawMessage) error {
	var g struct {
		Type        string          `json:"type"`
		Coordinates json.RawMessage `json:"coordinates"`
	}
	if err := json.Unmarshal(geometry, &g); err != nil || g.Type == "" {
		return errors.New("the feature has no geometry")
	}
	if g.Type != "Point" {
		return fmt.Errorf("a %.20s: only points are positions of a vehicle", g.Type)
	}
	var c []json.Number
	if err := json.Unmarshal(g.Coordinates, &c); err != nil || len(c) < 2 {
		return errors.New("the point has no two numbers")
	}
	f.lon, f.lat = c[0].String(), c[1].String()
	return nil
}

// member gives a member's text; found: it is there and not null; ok: it is text or a number.
func member(m map[string]json.RawMessage, name string, joined bool) (v string, found, ok bool) {
	raw, there := m[name]
	if first, second, plus := strings.Cut(name, "+"); !there && joined && plus {
		a, found1, ok1 := member(m, strings.TrimSpace(first), false)
		b, found2, ok2 := member(m, strings.TrimSpace(second), false)
		return a + " " + b, found1 && found2, ok1 && ok2
	}
	switch {
	case !there || string(raw) == "null":
		return "", false, true
	case raw[0] == '"':
		err := json.Unmarshal(raw, &v)
		return v, true, err == nil
	case raw[0] == '-' || raw[0] >= '0' && raw[0] <= '9':
		return string(raw), true, true
	}
	return "", false, false
}
