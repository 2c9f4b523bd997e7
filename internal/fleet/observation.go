package fleet

import (
	"errors"
	"fmt"
	"math"
	"mime"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"milepost/internal/commit"
	"milepost/internal/mapmatch"
	"milepost/internal/partition"
	"milepost/internal/roadnet"
	"milepost/internal/stream"
)

// ContentTypeJSON is the content type of raw values and of outputs.
const ContentTypeJSON = "application/json"

// Fix is a decoded raw value: one position of a vehicle.
type Fix struct {
	Vehicle string // as the value says; may be empty
	mapmatch.Observation
	Provider     string
	VehicleClass string
}

// Longest provider and vehicle class kept.
const maxTag = 64

// Decode judges one raw record; a bad one is a *commit.PoisonError of PoisonReasons. Numbers that receivers use for "unknown",
// negative speed, heading and accuracy, are taken as not given.
func (w *Workload) Decode(r *stream.Record) (partition.Observation, error) {
	if err := w.checkEnvelope(r); err != nil {
		return partition.Observation{}, err
	}
	fix, err := DecodeFix(r.Value)
	if err != nil {
		return partition.Observation{}, err
	}
	if fix.Vehicle != "" && fix.Vehicle != string(r.Key) {
		return partition.Observation{}, poison(PoisonKeyMismatch, "the vehicle in the value is not the record's key")
	}
	if w.cfg.MaxAge > 0 {
		if age := r.Timestamp.Sub(fix.Time); age > w.cfg.MaxAge || age < -w.cfg.MaxAge {
			return partition.Observation{}, poison(PoisonTimeRange, fmt.Sprintf("event time is %s away from the record's timestamp, %s are accepted",
				age.Abs().Round(time.Second), w.cfg.MaxAge))
		}
	}
	return partition.Observation{Key: stream.Key(r.Key), Time: fix.Time, Record: r, Value: fix}, nil
}

func (w *Workload) checkEnvelope(r *stream.Record) error {
	switch {
	case len(r.Key) == 0:
		return poison(PoisonNoKey, "the record has no key")
	case len(r.Key) > w.cfg.MaxKeyBytes:
		return poison(PoisonBadKey, fmt.Sprintf("the key has %d bytes, %d are allowed", len(r.Key), w.cfg.MaxKeyBytes))
	case !utf8.Valid(r.Key) || strings.ContainsRune(string(r.Key), 0):
		return poison(PoisonBadKey, "the key is not text")
	case r.Value == nil:
		return poison(PoisonNoValue, "the record has no value")
	case len(r.Value) > w.cfg.MaxValueBytes:
		return poison(PoisonTooLarge, fmt.Sprintf("the value has %d bytes, %d are allowed", len(r.Value), w.cfg.MaxValueBytes))
	}
	for _, h := range r.Headers {
		if strings.EqualFold(h.Key, stream.HeaderContentType) {
			if media, _, err := mime.ParseMediaType(string(h.Value)); err != nil || media != ContentTypeJSON {
				return poison(PoisonWrongSchema, "the content type is not "+ContentTypeJSON)
			}
		}
	}
	return nil
}

func poison(reason, detail string) error { return &commit.PoisonError{Reason: reason, Detail: detail} }

// rawFields are the fields of a raw value as they were found.
type rawFields struct {
	fix              Fix
	lon, lat         float64
	hasLon, hasLat   bool
	nonFinite        bool
	time, timeMS     time.Time
	hasTime, hasTMS  bool
	seen             uint32
	speed, head, acc float64
}

// DecodeFix decodes one JSON value. An error is a *commit.PoisonError.
func DecodeFix(b []byte) (Fix, error) {
	f := rawFields{speed: math.NaN(), head: math.NaN(), acc: math.NaN()}
	if err := scanObject(b, f.field); err != nil {
		if _, ok := errors.AsType[*commit.PoisonError](err); ok {
			return Fix{}, err
		}
		return Fix{}, poison(PoisonUndecodable, err.Error())
	}
	return f.finish()
}

func (f *rawFields) field(name string, v value) error {
	bit, known := fieldBit(name)
	if !known {
		return nil
	}
	if f.seen&bit != 0 {
		return poison(PoisonUndecodable, "field "+name+" is given twice")
	}
	f.seen |= bit
	if v.kind == nullValue {
		return nil // as if it were not there
	}
	var err error
	switch name {
	case "vehicle":
		f.fix.Vehicle, err = identity(name, v)
	case "time":
		f.hasTime = true
		f.time, err = textTime(v)
	case "t_ms":
		f.hasTMS = true
		f.timeMS, err = millisTime(v)
	case "lon":
		f.hasLon = true
		f.lon, err = f.coordinate(name, v)
	case "lat":
		f.hasLat = true
		f.lat, err = f.coordinate(name, v)
	case "speed_mps":
		f.speed, err = optional(name, v)
	case "heading_deg":
		f.head, err = optional(name, v)
	case "accuracy_m":
		f.acc, err = optional(name, v)
	case "provider":
		f.fix.Provider, err = tag(name, v)
	case "vehicle_class":
		f.fix.VehicleClass, err = tag(name, v)
	}
	return err
}

func fieldBit(name string) (uint32, bool) {
	for i, known := range [...]string{
		"vehicle", "time", "t_ms", "lon", "lat", "speed_mps", "heading_deg", "accuracy_m", "provider", "vehicle_class",
	} {
		if name == known {
			return 1 << i, true
		}
	}
	return 0, false
}

func (f *rawFields) finish() (Fix, error) {
	switch {
	case !f.hasLon || !f.hasLat:
		return Fix{}, poison(PoisonNoCoordinates, "lon or lat is missing")
	case f.nonFinite:
		return Fix{}, poison(PoisonNonFinite, "lon or lat is not a finite number")
	case math.Abs(f.lat) > 90:
		detail := "lat is out of range"
		if math.Abs(f.lon) <= 90 {
			detail += "; are lon and lat swapped?"
		}
		return Fix{}, poison(PoisonOutOfRange, detail)
	case math.Abs(f.lon) > 180:
		return Fix{}, poison(PoisonOutOfRange, "lon is out of range")
	case f.lon == 0 && f.lat == 0:
		return Fix{}, poison(PoisonZero, "lon and lat are both 0")
	case !f.hasTime && !f.hasTMS:
		return Fix{}, poison(PoisonNoTime, "neither time nor t_ms is given")
	case f.hasTime && f.hasTMS && !f.time.Truncate(time.Millisecond).Equal(f.timeMS):
		return Fix{}, poison(PoisonBadTime, "time and t_ms differ")
	}
	at := f.time
	if !f.hasTime {
		at = f.timeMS
	}
	fix := f.fix
	fix.Observation = mapmatch.Observation{
		Time: at, Point: roadnet.Point{Lon: f.lon, Lat: f.lat}, AccuracyM: f.acc, SpeedMPS: f.speed, Heading: f.head,
	}
	if fix.Heading >= 360 {
		fix.Heading = math.Mod(fix.Heading, 360)
	}
	return fix, nil
}

func identity(name string, v value) (string, error) {
	if v.kind == numberValue { // fleets with numbers for names
		return string(v.raw), nil
	}
	if v.kind != stringValue {
		return "", poison(PoisonUndecodable, "field "+name+" is not text")
	}
	s, err := unquote(v.raw)
	if err == nil && s == "" {
		err = poison(PoisonKeyMismatch, "the vehicle in the value is empty")
	}
	return s, err
}

func tag(name string, v value) (string, error) {
	if v.kind != stringValue || len(v.raw) > maxTag {
		return "", poison(PoisonUndecodable, "field "+name+" is not a short text")
	}
	return unquote(v.raw)
}

// number gives a JSON number; infinite where it is beyond a float's range.
func number(name string, v value) (float64, error) {
	if v.kind == nonFiniteValue {
		return math.Inf(1), nil
	}
	if v.kind != numberValue {
		return 0, poison(PoisonUndecodable, "field "+name+" is not a number")
	}
	x, err := strconv.ParseFloat(string(v.raw), 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		return 0, poison(PoisonUndecodable, "field "+name+" is not a number")
	}
	return x, nil
}

func (f *rawFields) coordinate(name string, v value) (float64, error) {
	x, err := number(name, v)
	if math.IsInf(x, 0) {
		f.nonFinite = true
	}
	return x, err
}

func optional(name string, v value) (float64, error) {
	x, err := number(name, v)
	if err != nil {
		return 0, err
	}
	if x < 0 || math.IsInf(x, 0) {
		return math.NaN(), nil
	}
	return x, nil
}

// Event times run from the year 1 to 9999, what RFC 3339 can write; milliseconds sent as seconds fall outside.
const maxYear = 9999

func textTime(v value) (time.Time, error) {
	if v.kind != stringValue {
		return time.Time{}, poison(PoisonBadTime, "field time is not text")
	}
	s, err := unquote(v.raw)
	if err != nil {
		return time.Time{}, err
	}
	t, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		return time.Time{}, poison(PoisonBadTime, "field time is not RFC 3339")
	}
	return eventTime(t)
}

func millisTime(v value) (time.Time, error) {
	if v.kind != numberValue {
		return time.Time{}, poison(PoisonBadTime, "field t_ms is not a whole number")
	}
	ms, err := strconv.ParseInt(string(v.raw), 10, 64)
	if err != nil {
		return time.Time{}, poison(PoisonBadTime, "field t_ms is not a whole number of milliseconds")
	}
	return eventTime(time.UnixMilli(ms))
}

// eventTime brings a time to the precision that checkpoints keep, so that what is compared later is what was seen.
func eventTime(t time.Time) (time.Time, error) {
	t = t.UTC().Truncate(time.Microsecond)
	if y := t.Year(); t.IsZero() || y < 1 || y > maxYear { // the zero time means none
		return time.Time{}, poison(PoisonBadTime, fmt.Sprintf("event time is outside the years 1 to %d", maxYear))
	}
	return t, nil
}

// AppendFix appends the JSON raw value of a fix: what DecodeFix reads.
func AppendFix(dst []byte, f *Fix) []byte {
	dst = append(dst, '{')
	if f.Vehicle != "" {
		dst = appendString(append(dst, `"vehicle":`...), f.Vehicle)
		dst = append(dst, ',')
	}
	dst = append(dst, `"time":"`...)
	dst = f.Time.UTC().AppendFormat(dst, time.RFC3339Nano)
	dst = strconv.AppendFloat(append(dst, `","lon":`...), f.Point.Lon, 'f', -1, 64)
	dst = strconv.AppendFloat(append(dst, `,"lat":`...), f.Point.Lat, 'f', -1, 64)
	for _, o := range [...]struct {
		name string
		v    float64
	}{{"speed_mps", f.SpeedMPS}, {"heading_deg", f.Heading}, {"accuracy_m", f.AccuracyM}} {
		if !math.IsNaN(o.v) {
			dst = append(append(append(dst, `,"`...), o.name...), `":`...)
			dst = strconv.AppendFloat(dst, o.v, 'f', -1, 64)
		}
	}
	if f.Provider != "" {
		dst = appendString(append(dst, `,"provider":`...), f.Provider)
	}
	if f.VehicleClass != "" {
		dst = appendString(append(dst, `,"vehicle_class":`...), f.VehicleClass)
	}
	return append(dst, '}')
}
