package matchapi

import (
	"cmp"
	"encoding/json"
	"io"
	"math"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/twpayne/go-polyline"

	"milepost/internal/roadnet"
)

// request is a trace and how it is to be matched.
type request struct {
	id       string
	points   []point
	assumed  bool // the times are ours: the request gives none
	vehicle  roadnet.Vehicle
	radius   float64 // metres within which roads are sought; 0: by accuracy
	spacing  float64 // metres, negative: the default
	keep     attributes
	shape    shapeFormat
	miles    bool
	warnings []Warning
}

// point is a position of the trace. What was not given is NaN.
type point struct {
	lat, lon                 float64
	at                       time.Time
	timed                    bool
	accuracy, heading, speed float64
}

// Warning says what of a request was not done as it asks.
type Warning struct {
	Pointer string `json:"pointer,omitempty"`
	Text    string `json:"text"`
}

// maxWarnings bounds the answer, whatever a request is full of.
const maxWarnings = 30

// decoder reads a request.
type decoder struct {
	*reader
	out       request
	maxPoints int

	shaped, encoded bool
	accuracy        float64 // of points that give none
	begin           time.Time
	begun           bool
	durations       []float64
	timedPoints     int
	attributes      []string
	include         bool
	filtered        bool
	told            map[string]bool
}

// decode reads a request of at most so many points.
func decode(in io.Reader, maxPoints int) (*request, *Problem) {
	d := &decoder{
		reader: newReader(in), maxPoints: maxPoints, accuracy: math.NaN(), told: map[string]bool{},
		out: request{vehicle: roadnet.Car, spacing: -1, shape: polyline6},
	}
	if p := d.object("", d.member); p != nil {
		return nil, p
	}
	if p := d.end(); p != nil {
		return nil, p
	}
	if p := d.settle(); p != nil {
		return nil, p
	}
	return &d.out, nil
}

func (d *decoder) warn(pointer, text string) {
	if d.told[pointer] || len(d.out.warnings) > maxWarnings {
		return
	}
	d.told[pointer] = true
	if len(d.out.warnings) == maxWarnings {
		pointer, text = "", "there is more that was ignored"
	}
	d.out.warnings = append(d.out.warnings, Warning{pointer, text})
}

// ignore passes over a value and says so.
func (d *decoder) ignore(pointer, why string) *Problem {
	d.warn(pointer, why)
	return d.skip()
}

func (d *decoder) member(name string) (p *Problem) {
	pointer := "/" + escape(name)
	switch name {
	case "shape":
		d.shaped = true
		return d.array(pointer, d.point)
	case "encoded_polyline":
		return d.polyline(pointer)
	case "costing":
		return d.costing(pointer)
	case "shape_match":
		return d.shapeMatch(pointer)
	case "begin_time":
		d.begun = true
		d.begin, p = d.moment(pointer)
	case "durations":
		return d.array(pointer, d.duration)
	case "trace_options":
		return d.object(pointer, d.traceOption)
	case "filters":
		d.filtered = true
		return d.object(pointer, d.filter)
	case "shape_format":
		return d.shapeFormat(pointer)
	case "units":
		return d.units(pointer)
	case "directions_options":
		return d.object(pointer, func(name string) *Problem {
			if at := pointer + "/" + escape(name); name != "units" {
				return d.ignore(at, "not supported: ignored")
			}
			return d.units(pointer + "/units")
		})
	case "id":
		d.out.id, p = d.text(pointer, 256)
	case "use_timestamps":
		return d.ignore(pointer, "ignored: times count wherever they are given")
	case "costing_options":
		return d.ignore(pointer, "ignored: what a road costs is the service's own matter")
	case "best_paths", "linear_references", "date_time", "language", "verbose", "admin_crosswalk":
		return d.ignore(pointer, "not supported: ignored")
	default:
		return d.ignore(pointer, "no option of this service: ignored")
	}
	return p
}

// settle makes one thing of the members.
func (d *decoder) settle() *Problem {
	switch {
	case !d.shaped && !d.encoded:
		return problem(http.StatusBadRequest, codeMissing, "/shape", "the trace is missing: give shape or encoded_polyline")
	case d.shaped && d.encoded:
		return badValue("/encoded_polyline", "give shape or encoded_polyline, not both")
	case len(d.out.points) < 2:
		return problem(http.StatusBadRequest, codeTooFew, "", "a trace has at least two points, this one %d", len(d.out.points))
	}
	for i := range d.out.points {
		if math.IsNaN(d.out.points[i].accuracy) {
			d.out.points[i].accuracy = d.accuracy
		}
	}
	if p := d.times(); p != nil {
		return p
	}
	d.out.keep = all()
	if d.filtered {
		d.out.keep = d.chosen()
	}
	return nil
}

// times gives every point its time: its own, or begin_time and durations, or one that a vehicle may have been there.
func (d *decoder) times() *Problem {
	points := d.out.points
	switch {
	case d.timedPoints > 0 && d.timedPoints < len(points):
		i := slices.IndexFunc(points, func(p point) bool { return !p.timed })
		return problem(http.StatusBadRequest, codeMissing, element("/shape", i)+"/time", "%d of %d points have a time: all must have one, or none", d.timedPoints, len(points))
	case d.timedPoints > 0 && d.durations != nil:
		return badValue("/durations", "give times with the points or durations, not both")
	case d.timedPoints > 0:
		if d.begun {
			d.warn("/begin_time", "ignored: the points have times")
		}
		for i := 1; i < len(points); i++ {
			if points[i].at.Before(points[i-1].at) {
				return badValue(element("/shape", i)+"/time", "goes back by %s", points[i-1].at.Sub(points[i].at))
			}
		}
	case d.durations != nil:
		return d.summed()
	default:
		d.assume()
	}
	return nil
}

func (d *decoder) summed() *Problem {
	points := d.out.points
	if got, want := len(d.durations), len(points)-1; got != want {
		return badValue("/durations", "%d durations for %d points: want %d, one from each point to the next", got, len(points), want)
	}
	if !d.begun {
		d.begin = time.Unix(0, 0).UTC()
		d.warn("/begin_time", "not given: times count from 1970")
	}
	total := 0.0
	for i := range points {
		if i > 0 {
			total += d.durations[i-1]
		}
		if total > maxSeconds {
			return badValue(element("/durations", i-1), "the trace lasts longer than %.0f s", float64(maxSeconds))
		}
		points[i].at = d.begin.Add(time.Duration(total * float64(time.Second)))
	}
	return nil
}

const (
	maxSeconds = 10 * 365 * 86400 // that durations add up to
	assumedMPS = 10               // where no times are given
)

// assume gives times at which a vehicle would have been there at the pace of traffic. A pause that the matcher would take for a gap is
// none.
func (d *decoder) assume() {
	d.out.assumed = true
	if d.begun {
		d.warn("/begin_time", "ignored without durations")
	}
	d.warn("", "the trace has no times: those of traffic at 36 km/h were assumed; with times the match is better")
	at := time.Unix(0, 0).UTC()
	points := d.out.points
	for i := range points {
		if i > 0 {
			a, b := &points[i-1], &points[i]
			dLon := math.Mod(b.lon-a.lon+540, 360) - 180
			m := 111_195 * math.Hypot(dLon*math.Cos(b.lat*math.Pi/180), b.lat-a.lat)
			at = at.Add(time.Duration(min(max(m/assumedMPS, 1), 240) * float64(time.Second)).Round(time.Millisecond))
		}
		points[i].at = at
	}
}

// point reads the next point of the shape.
func (d *decoder) point(i int) *Problem {
	if len(d.out.points) >= d.maxPoints {
		return d.tooMany()
	}
	pointer := element("/shape", i)
	p := point{lat: math.NaN(), lon: math.NaN(), accuracy: math.NaN(), heading: math.NaN(), speed: math.NaN()}
	if bad := d.object(pointer, func(name string) *Problem { return d.pointMember(&p, pointer, name) }); bad != nil {
		return bad
	}
	for _, c := range [...]struct {
		name string
		v    float64
	}{{"lat", p.lat}, {"lon", p.lon}} {
		if math.IsNaN(c.v) {
			return problem(http.StatusBadRequest, codeMissing, pointer+"/"+c.name, "the point has no %s", c.name)
		}
	}
	if p.timed {
		d.timedPoints++
	}
	d.out.points = append(d.out.points, p)
	return nil
}

func (d *decoder) pointMember(p *point, pointer, name string) (bad *Problem) {
	at := pointer + "/" + escape(name)
	switch name {
	case "lat":
		p.lat, bad = d.number(at, -90, 90)
	case "lon":
		p.lon, bad = d.number(at, -180, 180)
	case "time":
		p.timed = true
		p.at, bad = d.moment(at)
	case "accuracy":
		p.accuracy, bad = d.number(at, 0, 1e6)
		if p.accuracy == 0 { // what receivers write that do not know
			p.accuracy = math.NaN()
		}
	case "heading":
		p.heading, bad = d.number(at, 0, 360)
	case "speed":
		p.speed, bad = d.number(at, 0, 1000)
	case "type":
		return d.ignore("/shape/*/type", "ignored: a vehicle may turn back anywhere, at a price")
	case "radius":
		return d.ignore("/shape/*/radius", "ignored: give the point's accuracy, or trace_options.search_radius for all")
	case "heading_tolerance":
		return d.ignore("/shape/*/heading_tolerance", "ignored: a heading off the road's has a price")
	default:
		return d.ignore("/shape/*/"+escape(name), "no member of a point here: ignored")
	}
	return bad
}

// moment reads a time: seconds since 1970, or RFC 3339.
func (d *decoder) moment(pointer string) (time.Time, *Problem) {
	v, p := d.numberOrText(pointer)
	if p != nil {
		return time.Time{}, p
	}
	if text, ok := v.(string); ok {
		at, err := time.Parse(time.RFC3339Nano, text)
		if err != nil || at.Year() < 1 || at.Year() > 9999 {
			return time.Time{}, badValue(pointer, "not a time: want seconds since 1970, or RFC 3339, such as 2026-01-31T08:15:30Z")
		}
		return at.UTC(), nil
	}
	const year10000 = 253_402_300_800
	s, p := within(pointer, v.(json.Number), -62_135_596_800+1, year10000-1)
	if p != nil {
		p.Detail += ": seconds since 1970, in the years 1 to 9999"
		return time.Time{}, p
	}
	return time.UnixMicro(int64(math.Round(s * 1e6))).UTC(), nil
}

func (d *decoder) duration(i int) *Problem {
	if len(d.durations) >= d.maxPoints {
		return d.tooMany()
	}
	s, p := d.number(element("/durations", i), 0, maxSeconds)
	if d.durations = append(d.durations, s); p != nil {
		return p
	}
	return nil
}

func (d *decoder) tooMany() *Problem {
	p := problem(http.StatusRequestEntityTooLarge, codeTooMany, "", "the trace has more than %d points: match it in parts", d.maxPoints)
	p.Limit = int64(d.maxPoints)
	return p
}

func (d *decoder) polyline(pointer string) *Problem {
	d.encoded = true
	text, p := d.text(pointer, math.MaxInt)
	if p != nil {
		return p
	}
	numbers := 0 // each ends with a letter that has no more to come
	for i := range len(text) {
		if text[i] < 63+32 {
			numbers++
		}
	}
	if numbers/2 > d.maxPoints {
		return d.tooMany()
	}
	coords, rest, err := (&polyline.Codec{Dim: 2, Scale: 1e6}).DecodeCoords([]byte(text))
	if err != nil || len(rest) > 0 {
		return badValue(pointer, "not a polyline of six decimals")
	}
	for i, c := range coords {
		if !(math.Abs(c[0]) <= 90 && math.Abs(c[1]) <= 180) {
			return badValue(pointer, "point %d is off the globe: six decimals are expected, latitude first", i)
		}
		d.out.points = append(d.out.points, point{lat: c[0], lon: c[1], accuracy: math.NaN(), heading: math.NaN(), speed: math.NaN()})
	}
	return nil
}

func (d *decoder) traceOption(name string) (p *Problem) {
	pointer := "/trace_options/" + escape(name)
	switch name {
	case "gps_accuracy":
		d.accuracy, p = d.number(pointer, 0.1, 1e6)
	case "search_radius":
		if d.out.radius, p = d.number(pointer, 0, maxRadiusM); p == nil && d.out.radius > 0 {
			d.out.radius = math.Ceil(d.out.radius)
		}
	case "interpolation_distance":
		if d.out.spacing, p = d.number(pointer, 0, 100); p == nil {
			d.out.spacing = math.Round(d.out.spacing)
		}
	case "breakage_distance":
		return d.ignore(pointer, "ignored: a trace breaks where no vehicle can have driven in the time, or after five minutes without a point")
	case "turn_penalty_factor":
		return d.ignore(pointer, "ignored: turning back has a price, other turns have none")
	default:
		return d.ignore(pointer, "no option of this service: ignored")
	}
	return p
}

// maxRadiusM bounds the work for a point.
const maxRadiusM = 250

func (d *decoder) costing(pointer string) *Problem {
	name, p := d.text(pointer, 64)
	if p != nil {
		return p
	}
	v, ok := vehicleOf(name)
	if !ok {
		return problem(http.StatusBadRequest, codeUnsupported, pointer, "%q is none of %s", name, strings.Join(costings(), ", "))
	}
	d.out.vehicle = v
	return nil
}

// costings are Valhalla's modes that have a class of vehicles here.
func costings() []string { return []string{"auto", "truck", "bus", "bicycle", "pedestrian"} }

func vehicleOf(costing string) (roadnet.Vehicle, bool) {
	switch costing {
	case "auto":
		return roadnet.Car, true
	case "pedestrian":
		return roadnet.Foot, true
	case "truck", "bus", "bicycle":
		return roadnet.ParseVehicle(costing)
	}
	return 0, false
}

func costingOf(v roadnet.Vehicle) string {
	switch v {
	case roadnet.Car:
		return "auto"
	case roadnet.Foot:
		return "pedestrian"
	case roadnet.Truck, roadnet.Bus, roadnet.Bicycle:
	}
	return v.String()
}

func (d *decoder) shapeMatch(pointer string) *Problem {
	name, p := d.text(pointer, 64)
	switch {
	case p != nil:
		return p
	case name == "map_snap" || name == "walk_or_snap":
		return nil
	case name == "edge_walk":
		return problem(http.StatusBadRequest, codeUnsupported, pointer, "edge_walk is not supported; map_snap finds the same edges where the shape is exact")
	}
	return problem(http.StatusBadRequest, codeUnsupported, pointer, "%q is none of map_snap, walk_or_snap", name)
}

func (d *decoder) units(pointer string) *Problem {
	name, p := d.text(pointer, 64)
	if p != nil {
		return p
	}
	switch name {
	case "kilometers", "km":
		d.out.miles = false
	case "miles", "mi":
		d.out.miles = true
	default:
		return problem(http.StatusBadRequest, codeUnsupported, pointer, "%q is neither kilometers nor miles", name)
	}
	return nil
}

// shapeFormat is how lines are written.
type shapeFormat string

const (
	polyline6 shapeFormat = "polyline6"
	polyline5 shapeFormat = "polyline5"
	geoJSON   shapeFormat = "geojson"
	wkt       shapeFormat = "wkt"
	noShape   shapeFormat = "no_shape"
)

func shapeFormats() []string {
	return []string{string(polyline6), string(polyline5), string(geoJSON), string(wkt), string(noShape)}
}

func (d *decoder) shapeFormat(pointer string) *Problem {
	name, p := d.text(pointer, 64)
	if p != nil {
		return p
	}
	if !slices.Contains(shapeFormats(), name) {
		return problem(http.StatusBadRequest, codeUnsupported, pointer, "%q is none of %s", name, strings.Join(shapeFormats(), ", "))
	}
	d.out.shape = shapeFormat(name)
	return nil
}

func (d *decoder) filter(name string) *Problem {
	pointer := "/filters/" + escape(name)
	switch name {
	case "attributes":
		return d.array(pointer, func(i int) *Problem {
			s, p := d.text(element(pointer, i), 256)
			switch {
			case p != nil:
				return p
			case i >= maxMembers:
				return badValue(pointer, "more than %d attributes", maxMembers)
			}
			d.attributes = append(d.attributes, s)
			return nil
		})
	case "action":
		s, p := d.text(pointer, 64)
		switch {
		case p != nil:
			return p
		case s != "include" && s != "exclude":
			return problem(http.StatusBadRequest, codeUnsupported, pointer, "%q is neither include nor exclude", s)
		}
		d.include = s == "include"
		return nil
	default:
		return d.ignore(pointer, "no member of a filter: ignored")
	}
}

// chosen is what the filter leaves of the answer. Without an action nothing is left out.
func (d *decoder) chosen() attributes {
	known := attributeNames()
	keep := all()
	if d.include {
		keep = attributes{}
	}
	for i, name := range d.attributes {
		if !slices.Contains(known, name) {
			if d.include {
				d.warn(element("/filters/attributes", i), cmp.Or(whyNot(name), "no attribute of this service: left out"))
			}
			continue
		}
		keep[name] = d.include
	}
	return keep
}
