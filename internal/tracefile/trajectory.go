package tracefile

import (
	"fmt"
	"strings"
)

// trajectory gives the fixes of a row that is a whole trajectory: a WKT line, and the times of its points in seconds, separated by commas. A
// point that is none is an error of its own; a line that is none is one error, and so are times of which there are more or fewer than
// points. False: the reader wants no more.
func (s *source) trajectory(row int, f *fields) bool {
	fail := func(ours, reason string) bool {
		return s.row(Fix{}, &RowError{Line: row, Column: s.opts.Columns.theirs(ours), Reason: reason})
	}
	points, ok := wktBody(f.line, "LINESTRING")
	if !ok {
		return fail(ColLine, "not a WKT line: want LINESTRING(lon lat,lon lat,…)")
	}
	of, column, times := timesOf(f)
	n := strings.Count(points, ",") + 1
	if got := strings.Count(times, ",") + 1; times != "" && got != n {
		return fail(column, fmt.Sprintf("%d times for %d points", got, n))
	}
	for i := range n {
		var point string
		point, points, _ = strings.Cut(points, ",")
		one := fields{vehicle: f.vehicle, speed: f.speed, heading: f.heading, accuracy: f.accuracy}
		if times != "" {
			var at string
			at, times, _ = strings.Cut(times, ",")
			*of(&one) = strings.TrimSpace(at)
		}
		if one.lon, one.lat, ok = twoNumbers(point); !ok {
			if !fail(ColLine, fmt.Sprintf("point %d is not two numbers", i+1)) {
				return false
			}
			continue
		}
		fix, bad := s.fix(row, &one)
		if bad != nil {
			if bad.Column == s.opts.Columns.theirs(ColLon) || bad.Column == s.opts.Columns.theirs(ColLat) {
				bad.Column = s.opts.Columns.theirs(ColLine)
			}
			bad.Reason = fmt.Sprintf("point %d: %s", i+1, bad.Reason)
		}
		if !s.row(fix, bad) {
			return false
		}
	}
	return true
}

// timesOf gives the list of times that a row has, the column that they stand in, and where one of them belongs.
func timesOf(f *fields) (of func(*fields) *string, column, times string) {
	for _, c := range [...]struct {
		column string
		of     func(*fields) *string
	}{
		{ColTime, func(f *fields) *string { return &f.time }},
		{ColTimeMS, func(f *fields) *string { return &f.timeMS }},
		{ColTimeS, func(f *fields) *string { return &f.timeS }},
	} {
		if of, column, times = c.of, c.column, strings.Trim(strings.TrimSpace(*c.of(f)), "[]{}"); times != "" {
			break
		}
	}
	return of, column, times
}

// wktBody gives what stands between the brackets of a WKT geometry of the kind.
func wktBody(text, kind string) (string, bool) {
	text = strings.TrimSpace(text)
	if len(text) < len(kind) || !strings.EqualFold(text[:len(kind)], kind) {
		return "", false
	}
	text = strings.TrimSpace(text[len(kind):])
	if len(text) < 2 || text[0] != '(' || text[len(text)-1] != ')' {
		return "", false
	}
	return text[1 : len(text)-1], true
}

// twoNumbers takes the two or three words of a WKT point apart.
func twoNumbers(text string) (lon, lat string, ok bool) {
	n := strings.Fields(text)
	if len(n) < 2 || len(n) > 3 {
		return "", "", false
	}
	return n[0], n[1], true
}
