package tracefile

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// fields are a row's texts by our names; an absent or empty one is "".
type fields struct {
	vehicle, time, timeMS, timeS, lon, lat, point, line string
	speed, heading, accuracy                            string
}

func (f *fields) set(ours, v string) {
	switch ours {
	case ColVehicle:
		f.vehicle = v
	case ColTime:
		f.time = v
	case ColTimeMS:
		f.timeMS = v
	case ColTimeS:
		f.timeS = v
	case ColLon:
		f.lon = v
	case ColLat:
		f.lat = v
	case ColPoint:
		f.point = v
	case ColLine:
		f.line = v
	case ColSpeed:
		f.speed = v
	case ColHeading:
		f.heading = v
	case ColAccuracy:
		f.accuracy = v
	}
}

// fix makes a fix of a row's texts. Columns in the error are the file's names.
func (s *source) fix(line int, f *fields) (Fix, *RowError) {
	fail := func(ours, reason string) (Fix, *RowError) {
		return Fix{}, &RowError{Line: line, Column: s.opts.Columns.theirs(ours), Reason: reason}
	}
	out := Fix{Vehicle: f.vehicle, Line: line}
	if out.Vehicle == "" {
		out.Vehicle = s.vehicle
	}
	if len(out.Vehicle) > maxVehicle || !utf8.ValidString(out.Vehicle) || strings.ContainsRune(out.Vehicle, 0) {
		return fail(ColVehicle, fmt.Sprintf("not a name: want UTF-8 text of at most %d bytes", maxVehicle))
	}
	lon, lat, lonCol, latCol := f.lon, f.lat, ColLon, ColLat
	if f.point != "" {
		var ok bool
		if lon, lat, ok = wktPoint(f.point); !ok {
			return fail(ColPoint, "not a WKT point: want POINT(lon lat)")
		}
		lonCol, latCol = ColPoint, ColPoint
	}
	var reason string
	if out.Lon, reason = parseNumber("lon", lon, true); reason != "" {
		return fail(lonCol, reason)
	}
	if out.Lat, reason = parseNumber("lat", lat, true); reason != "" {
		return fail(latCol, reason)
	}
	if name, reason := checkPlace(out.Lon, out.Lat); reason != "" {
		if name == "lon" {
			return fail(lonCol, reason)
		}
		return fail(latCol, reason)
	}
	var col string
	if out.Time, col, reason = f.when(); reason != "" {
		return fail(col, reason)
	}
	for _, o := range [...]struct {
		ours, text string
		dst        *float64
	}{{ColSpeed, f.speed, &out.SpeedMPS}, {ColHeading, f.heading, &out.HeadingDeg}, {ColAccuracy, f.accuracy, &out.AccuracyM}} {
		if *o.dst, reason = parseNumber(o.ours, o.text, false); reason != "" {
			return fail(o.ours, reason)
		}
	}
	return out, nil
}

// Longest vehicle name: what a record key may be.
const maxVehicle = 512

// parseNumber reads a finite number. An empty optional one is NaN, and so is one that receivers write for "unknown": negative or NaN.
func parseNumber(name, text string, required bool) (float64, string) {
	text = strings.TrimSpace(text)
	if text == "" {
		if required {
			return 0, name + " is empty"
		}
		return math.NaN(), ""
	}
	x, err := strconv.ParseFloat(text, 64)
	switch {
	case err != nil && !math.IsInf(x, 0):
		return 0, name + " is not a number"
	case !required && (math.IsNaN(x) || x < 0):
		return math.NaN(), ""
	case math.IsNaN(x) || math.IsInf(x, 0):
		return 0, name + " is not a finite number"
	}
	return x, ""
}

// checkPlace gives the coordinate that is out of range and the reason.
func checkPlace(lon, lat float64) (name, reason string) {
	switch {
	case math.Abs(lat) > 90:
		reason = fmt.Sprintf("lat %s is out of range", short(lat))
		if math.Abs(lon) <= 90 {
			reason += "; are lon and lat swapped?"
		}
		return "lat", reason
	case math.Abs(lon) > 180:
		return "lon", fmt.Sprintf("lon %s is out of range", short(lon))
	case lon == 0 && lat == 0:
		return "lon", "lon and lat are both 0: no position"
	}
	return "", ""
}

func short(x float64) string { return strconv.FormatFloat(x, 'g', 8, 64) }

// when reads the row's time from whichever field has it; the zero time where none has.
func (f *fields) when() (t time.Time, column, reason string) {
	switch {
	case f.time != "":
		t, ok := parseTime(f.time)
		if !ok {
			return t, ColTime, "not a time: want RFC 3339, such as 2026-01-31T08:15:30Z"
		}
		return t, "", ""
	case f.timeMS != "":
		ms, err := strconv.ParseInt(strings.TrimSpace(f.timeMS), 10, 64)
		if err != nil {
			return t, ColTimeMS, "not a whole number of milliseconds"
		}
		return checkTime(time.UnixMilli(ms), ColTimeMS)
	case f.timeS != "":
		s, err := strconv.ParseFloat(strings.TrimSpace(f.timeS), 64)
		if err != nil || math.IsNaN(s) || math.Abs(s) > 1e12 {
			return t, ColTimeS, "not a number of seconds since 1970"
		}
		return checkTime(time.UnixMicro(int64(math.Round(s*1e6))), ColTimeS)
	}
	return time.Time{}, "", ""
}

func checkTime(t time.Time, column string) (time.Time, string, string) {
	t = t.UTC()
	if y := t.Year(); y < 1 || y > 9999 || t.IsZero() {
		return time.Time{}, column, "the time is outside the years 1 to 9999; is the unit right?"
	}
	return t, "", ""
}

// parseTime reads RFC 3339 and the forms near it that real files have; without a zone it is UTC.
func parseTime(text string) (time.Time, bool) {
	text = strings.TrimSpace(text)
	for _, layout := range [...]string{
		time.RFC3339Nano, "2006-01-02 15:04:05.999999999Z07:00", "2006-01-02T15:04:05.999999999Z0700", "2006-01-02 15:04:05.999999999Z0700",
		"2006-01-02T15:04:05.999999999", "2006-01-02 15:04:05.999999999", "02-Jan-2006 15:04:05.999999999",
	} {
		if t, err := time.Parse(layout, text); err == nil {
			t, _, reason := checkTime(t, "")
			return t, reason == ""
		}
	}
	return time.Time{}, false
}

// wktPoint takes the two numbers out of POINT(lon lat).
func wktPoint(text string) (lon, lat string, ok bool) {
	body, ok := wktBody(text, "POINT")
	if !ok {
		return "", "", false
	}
	return twoNumbers(body)
}
