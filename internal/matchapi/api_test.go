package matchapi_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/legacy"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/twpayne/go-polyline"
	"go.uber.org/goleak"

	"milepost/internal/fleet/offline"
	"milepost/internal/matchapi"
	"milepost/internal/roadnet"
	"milepost/internal/roadnet/roadnettest"
	"milepost/test/goldentest"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("net/http.(*persistConn).readLoop"), goleak.IgnoreTopFunction("net/http.(*persistConn).writeLoop"))
}

// town has a private drive, a motorway with a posted limit, a one-way street and an island.
const town = `A(0,0)-B(600,0)-C(1200,0); B-D(600,500) highway=primary maxspeed=70 lanes=4; D-E(600,900) access=private;
C>F(1200,500) tunnel=yes layer=-1; S(0,-4000)-T(2000,-4000)`

// rig is an interface over a small map, its answers held against its description.
type rig struct {
	t    *testing.T
	m    *roadnettest.Map
	reg  *prometheus.Registry
	mux  *http.ServeMux
	spec routers.Router
}

func newRig(t *testing.T, text string, change func(*matchapi.Config)) *rig {
	t.Helper()
	r := &rig{t: t, m: roadnettest.ParseFor(t, roadnet.ImportOptions{Vehicles: roadnet.SetOf(roadnet.Car, roadnet.Bicycle)}, text)}
	cfg := matchapi.DefaultConfig()
	if change != nil {
		change(&cfg)
	}
	r.reg = prometheus.NewRegistry()
	api, err := matchapi.New(func() offline.World { return world(r.m.Graph) }, cfg, r.reg, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	r.mux = http.NewServeMux()
	for pattern, handler := range api.Routes() {
		r.mux.HandleFunc(pattern, handler)
	}
	r.spec = description(t)
	return r
}

// worlds are by their graph: a new atlas would be another world.
var worlds sync.Map

func world(g *roadnet.Graph) offline.World {
	w, _ := worlds.LoadOrStore(g, offline.OneMap(g))
	return w.(offline.World)
}

func description(t *testing.T) routers.Router {
	t.Helper()
	b, err := os.ReadFile("openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	doc, err := openapi3.NewLoader().LoadFromData(b)
	if err != nil {
		t.Fatal(err)
	}
	if err := doc.Validate(t.Context(), openapi3.EnableExamplesValidation()); err != nil {
		t.Fatal(err)
	}
	doc.Servers = nil
	router, err := legacy.NewRouter(doc)
	if err != nil {
		t.Fatal(err)
	}
	return router
}

// reply is an answer as a client sees it.
type reply struct {
	status int
	header http.Header
	body   []byte
}

func (r *rig) post(body io.Reader, header ...string) reply {
	r.t.Helper()
	req := httptest.NewRequestWithContext(r.t.Context(), http.MethodPost, matchapi.MatchPath, body)
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	return r.do(req)
}

func (r *rig) do(req *http.Request) reply {
	r.t.Helper()
	if strings.HasPrefix(req.RemoteAddr, "192.0.2.") { // httptest's, who is not of this machine
		req.RemoteAddr, req.Host = "127.0.0.1:1", "127.0.0.1:8002"
	}
	w := httptest.NewRecorder()
	r.mux.ServeHTTP(w, req)
	got := reply{w.Code, w.Header(), w.Body.Bytes()}
	r.check(req, got)
	return got
}

// check holds an answer against the description.
func (r *rig) check(req *http.Request, got reply) {
	r.t.Helper()
	route, params, err := r.spec.FindRoute(httptest.NewRequestWithContext(r.t.Context(), http.MethodPost, matchapi.MatchPath, http.NoBody))
	if err != nil {
		r.t.Fatal(err)
	}
	in := &openapi3filter.ResponseValidationInput{
		RequestValidationInput: &openapi3filter.RequestValidationInput{Request: req, PathParams: params, Route: route},
		Status:                 got.status, Header: got.header,
		Options: &openapi3filter.Options{IncludeResponseStatus: true},
	}
	in.SetBodyBytes(got.body)
	if err := openapi3filter.ValidateResponse(r.t.Context(), in); err != nil {
		r.t.Errorf("the answer is not as described: %v\n%s", err, got.body)
	}
}

// valid holds a request against the description.
func (r *rig) valid(body string) {
	r.t.Helper()
	req := httptest.NewRequestWithContext(r.t.Context(), http.MethodPost, matchapi.MatchPath, strings.NewReader(body))
	req.Header.Set("Content-Type", "application/json")
	route, params, err := r.spec.FindRoute(req)
	if err != nil {
		r.t.Fatal(err)
	}
	if err := openapi3filter.ValidateRequest(r.t.Context(), &openapi3filter.RequestValidationInput{
		Request: req, PathParams: params, Route: route, Options: &openapi3filter.Options{AuthenticationFunc: openapi3filter.NoopAuthenticationFunc},
	}); err != nil {
		r.t.Errorf("the request is not as described: %v", err)
	}
}

// match posts a request that is answered.
func (r *rig) match(body string) matchapi.Answer {
	r.t.Helper()
	got := r.post(strings.NewReader(body), "Content-Type", "application/json")
	if got.status != http.StatusOK {
		r.t.Fatalf("status %d: %s", got.status, got.body)
	}
	var a matchapi.Answer
	if err := json.Unmarshal(got.body, &a); err != nil {
		r.t.Fatal(err)
	}
	return a
}

// places writes a shape of places in metres, ten seconds apart.
func (r *rig) places(from int, places ...[2]float64) string {
	var parts []string
	for i, p := range places {
		at := r.m.Point(p[0], p[1])
		parts = append(parts, fmt.Sprintf(`{"lat":%.7f,"lon":%.7f,"time":%d,"accuracy":5}`, at.Lat, at.Lon, 1_700_000_000+from+10*i))
	}
	return strings.Join(parts, ",")
}

// drive goes from A by B into the private drive; then, after a pause, on the island.
func (r *rig) drive() string {
	return r.places(0, [2]float64{50, 4}, [2]float64{250, -3}, [2]float64{450, 2}, [2]float64{603, 150}, [2]float64{598, 350}, [2]float64{602, 550}, [2]float64{604, 750})
}

// Issue 6, POST /v1/match: a trace in Valhalla's form gives Valhalla's edges, points and shape, and ours: way and node ids, times, flags,
// confidence; the answer is as described, and the description's own.
func TestAnswer(t *testing.T) {
	r := newRig(t, town, nil)
	for name, body := range map[string]string{
		"answer.json": `{"id":"trip 7","costing":"auto","shape_match":"map_snap","shape":[` + r.drive() + `]}`,
		"island.json": `{"shape":[` + r.drive() + "," + r.places(600, [2]float64{100, -4003}, [2]float64{300, -3997}) + `]}`,
		"warnings.json": `{"shape":[` + r.places(0, [2]float64{50, 4}, [2]float64{250, -3}) + `],"costing_options":{"auto":{"use_ferry":0}},
			"trace_options":{"turn_penalty_factor":500,"breakage_distance":100},"filters":{"action":"include","attributes":["edge.way_id","edge.names","edge.id","x","matched.type"]},
			"language":"de","foo":{"bar":[1,{}]},"units":"miles"}`,
	} {
		r.valid(body)
		got := r.post(strings.NewReader(body), "Content-Type", "application/json")
		if got.status != http.StatusOK || got.header.Get("Content-Type") != "application/json" {
			t.Fatalf("%s: status %d: %s", name, got.status, got.body)
		}
		golden(t, name, got.body)
	}
}

// The shape goes over the edges: each edge's indices are its own points, and the line begins and ends where the trace does.
func TestShapeIndices(t *testing.T) {
	r := newRig(t, town, nil)
	a := r.match(`{"shape":[` + r.drive() + `]}`)
	line := decodePolyline(t, a.Shape)
	if len(a.Segments) != 1 || a.Segments[0].Shape != a.Shape || *a.Edges[0].BeginShapeIndex != 0 || *a.Edges[len(a.Edges)-1].EndShapeIndex != len(line)-1 {
		t.Fatalf("segments %+v, edges %+v, %d points", a.Segments, a.Edges, len(line))
	}
	whole := 0.0
	for i, e := range a.Edges {
		length := 0.0
		for k := *e.BeginShapeIndex + 1; k <= *e.EndShapeIndex; k++ {
			length += offline.Metres(line[k-1], line[k])
		}
		if math.Abs(length-1000**e.Length) > 1 {
			t.Errorf("edge %d is %.3f km long, its shape %.1f m", i, *e.Length, length)
		}
		if i > 0 && *e.BeginShapeIndex != *a.Edges[i-1].EndShapeIndex {
			t.Errorf("edge %d begins at %d, the one before ends at %d", i, *e.BeginShapeIndex, *a.Edges[i-1].EndShapeIndex)
		}
		whole += *e.Length
	}
	if math.Abs(whole-a.Segments[0].Length) > 0.001 || math.Abs(whole-1.3) > 0.01 {
		t.Errorf("the edges are %.3f km long, the segment %.3f", whole, a.Segments[0].Length)
	}
	for i, p := range a.MatchedPoints {
		e := a.Edges[*p.EdgeIndex]
		if *p.WayID != *e.WayID || *p.FromNode != *e.FromNode || *p.DistanceFromTracePoint > 5 || *p.Confidence < 0.9 {
			t.Errorf("point %d: %+v on %+v", i, p, e)
		}
	}
}

func decodePolyline(t *testing.T, shape any) [][2]float64 {
	t.Helper()
	coords, rest, err := (&polyline.Codec{Dim: 2, Scale: 1e6}).DecodeCoords([]byte(shape.(string)))
	if err != nil || len(rest) > 0 {
		t.Fatal(err, rest)
	}
	var line [][2]float64
	for _, c := range coords {
		line = append(line, [2]float64{c[1], c[0]})
	}
	return line
}

// M17, M18: no shape leads over a break; the points at its sides say so; points that are not matched are, one by one, and as a share.
func TestBreaks(t *testing.T) {
	r := newRig(t, town, nil)
	a := r.match(`{"shape":[` + r.drive() + "," + r.places(600, [2]float64{100, -4003}, [2]float64{300, -3997}, [2]float64{300, 90_000}) + `]}`)
	if a.Shape != nil || len(a.Segments) != 2 || a.Segments[1].Reset != "gap" || len(a.Warnings) != 1 || !strings.Contains(a.Warnings[0].Text, "2 segments") {
		t.Fatalf("%+v", a)
	}
	for i, s := range a.Segments {
		for _, p := range decodePolyline(t, s.Shape) {
			if (p[1] < r.m.Point(0, -2000).Lat) != (i == 1) {
				t.Errorf("segment %d crosses the break", i)
			}
		}
	}
	var ends []string
	for _, p := range a.MatchedPoints {
		ends = append(ends, fmt.Sprint(p.Type[0:1], p.BeginRouteDiscontinuity, p.EndRouteDiscontinuity))
	}
	want := strings.Fields("mfalsefalse mfalsefalse mfalsefalse mfalsefalse mfalsefalse mfalsefalse mfalsetrue mtruefalse mfalsefalse ufalsefalse")
	for i := range ends {
		ends[i] = strings.ReplaceAll(ends[i], " ", "")
	}
	if d := cmp.Diff(want, ends); d != "" {
		t.Error(d)
	}
	if a.MatchedShare != 0.9 || a.MatchedPoints[9].Disposition != "unsupported_coverage" || a.MatchedPoints[9].EdgeIndex != nil {
		t.Errorf("share %v, last %+v", a.MatchedShare, a.MatchedPoints[9])
	}
	a = r.match(`{"shape":[` + r.places(0, [2]float64{0, 1500}, [2]float64{0, 1600}) + `]}`)
	if a.MatchedShare != 0 || len(a.Edges) != 0 || len(a.MatchedPoints) != 2 || a.Warnings[0].Text != "no point of the trace lies on a road of the map" {
		t.Errorf("off the road: %+v", a)
	}
}

// Valhalla's forms of one trace are one trace: points with times, a polyline with durations, RFC 3339.
func TestInputForms(t *testing.T) {
	r := newRig(t, town, nil)
	var coords [][]float64
	var points []string
	for _, p := range [][2]float64{{50, 4}, {250, -3}, {450, 2}, {603, 150}} {
		at := r.m.Point(p[0], p[1])
		at.Lat, at.Lon = math.Round(at.Lat*1e6)/1e6, math.Round(at.Lon*1e6)/1e6
		coords = append(coords, []float64{at.Lat, at.Lon})
		points = append(points, fmt.Sprintf(`"lat":%.6f,"lon":%.6f`, at.Lat, at.Lon))
	}
	line, err := json.Marshal(string((&polyline.Codec{Dim: 2, Scale: 1e6}).EncodeCoords(nil, coords)))
	if err != nil {
		t.Fatal(err)
	}
	timed := func(format string, of func(i int) any) string {
		var out []string
		for i, p := range points {
			out = append(out, "{"+p+fmt.Sprintf(format, of(i))+"}")
		}
		return strings.Join(out, ",")
	}
	at := time.Unix(1_700_000_000, 0).UTC()
	forms := map[string]string{
		"seconds":   `{"shape":[` + timed(`,"time":%v`, func(i int) any { return 1_700_000_000 + 10*i }) + `]}`,
		"RFC 3339":  `{"shape":[` + timed(`,"time":"%v"`, func(i int) any { return at.Add(time.Duration(10*i) * time.Second).Format(time.RFC3339) }) + `]}`,
		"durations": `{"durations":[10,10,10],"begin_time":1700000000,"shape":[` + timed(`%v`, func(int) any { return "" }) + `]}`,
		"polyline":  `{"encoded_polyline":` + string(line) + `,"durations":[10,10,10.0],"begin_time":1.7e9}`,
		"twice":     `{"encoded_polyline":` + string(line) + `,"durations":[10,10,10.0],"begin_time":"2023-11-14T22:13:20Z"}`,
	}
	first := r.match(forms["seconds"])
	for name, body := range forms {
		r.valid(body)
		if d := cmp.Diff(first, r.match(body)); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
	a := r.match(`{"encoded_polyline":` + string(line) + `}`)
	if len(a.Warnings) != 1 || !strings.Contains(a.Warnings[0].Text, "no times") || a.Edges[0].BeginTime != "" || a.MatchedShare != 1 {
		t.Errorf("without times: %+v", a)
	}
}

// Costing is the class of vehicles; one that the map has no roads for is refused.
func TestCosting(t *testing.T) {
	r := newRig(t, "A(0,0)-B(600,0) highway=cycleway; A-C(0,12); C-D(600,12)", nil)
	shape := `"shape":[` + r.places(0, [2]float64{50, 1}, [2]float64{250, 1}, [2]float64{450, 1}) + `]}`
	for costing, way := range map[string]string{"auto": "w3", "bicycle": "w1"} {
		a := r.match(`{"costing":"` + costing + `",` + shape)
		if *a.MatchedPoints[1].WayID != r.m.Way(way) || a.Costing != costing {
			t.Errorf("%s: %+v", costing, a.MatchedPoints[1])
		}
	}
	for costing, say := range map[string]string{"truck": "no roads for truck, only for car,bicycle", "motorcycle": "none of auto, truck, bus, bicycle, pedestrian"} {
		r.refused(`{"costing":"`+costing+`",`+shape, 400, "unsupported_value", "/costing", say)
	}
}

func (r *rig) refused(body string, status int, code, pointer, say string) {
	r.t.Helper()
	r.isRefused(r.post(strings.NewReader(body)), body, status, code, pointer, say)
}

func (r *rig) isRefused(got reply, body string, status int, code, pointer, say string) {
	r.t.Helper()
	var p matchapi.Problem
	if err := json.Unmarshal(got.body, &p); err != nil {
		r.t.Fatalf("%.80s: %v: %s", body, err, got.body)
	}
	if got.status != status || p.Status != status || p.Code != code || p.Pointer != pointer || !strings.Contains(p.Detail, say) ||
		got.header.Get("Content-Type") != "application/problem+json" || len(got.body) > 1000 {
		r.t.Errorf("%.80s: %d %s, want %d, %s at %q with %q", body, got.status, got.body, status, code, pointer, say)
	}
}

// counter gives the counter of an outcome.
func counter(t *testing.T, reg *prometheus.Registry, outcome string) float64 {
	t.Helper()
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() != "milepost_match_requests_total" {
			continue
		}
		for _, m := range f.GetMetric() {
			if m.GetLabel()[0].GetValue() == outcome {
				return m.GetCounter().GetValue()
			}
		}
	}
	return 0
}

// What Valhalla's clients send beside the trace is heeded, or said not to be.
func TestOptions(t *testing.T) {
	r := newRig(t, town, nil)
	far := `"shape":[` + r.places(0, [2]float64{50, 60}, [2]float64{250, 60}, [2]float64{450, 60}) + `]`
	if a := r.match(`{` + far + `}`); a.MatchedShare != 0 {
		t.Errorf("60 m beside the road: %v", a.MatchedShare)
	}
	if a := r.match(`{` + far + `,"trace_options":{"search_radius":80}}`); a.MatchedShare != 1 {
		t.Errorf("with a radius of 80 m: %v", a.MatchedShare)
	}
	near := `"shape":[` + strings.ReplaceAll(r.places(0, [2]float64{50, 4}, [2]float64{250, 4}, [2]float64{310, 4}, [2]float64{550, 4}), `,"accuracy":5`, "") + `]`
	if a := r.match(`{` + near + `,"trace_options":{"interpolation_distance":100,"gps_accuracy":4}}`); a.MatchedPoints[2].Type != "interpolated" || len(a.Warnings) != 0 {
		t.Errorf("points 60 m apart: %+v %+v", a.MatchedPoints[2], a.Warnings)
	}
	if a := r.match(`{` + near + `}`); a.MatchedPoints[2].Type != "matched" {
		t.Errorf("points 60 m apart by default: %+v", a.MatchedPoints[2])
	}
	if a := r.match(`{` + near + `,"trace_options":{"gps_accuracy":300}}`); !a.MatchedPoints[0].AccuracyClamped {
		t.Errorf("vague points: %+v", a.MatchedPoints[0])
	}
	km, miles := r.match(`{`+near+`}`), r.match(`{`+near+`,"directions_options":{"units":"miles","language":"de"}}`)
	if math.Abs(km.Segments[0].Length/miles.Segments[0].Length-1.609) > 0.02 || miles.Units != "miles" || len(miles.Warnings) != 1 {
		t.Errorf("%v km are %v miles, %+v", km.Segments[0].Length, miles.Segments[0].Length, miles.Warnings)
	}
	for format, want := range map[string]string{
		"polyline5": "string", "wkt": "LINESTRING(9", "no_shape": "<nil>", "geojson": "map[coordinates:[[9",
	} {
		a := r.match(`{` + near + `,"shape_format":"` + format + `"}`)
		got := fmt.Sprint(a.Shape)
		if want == "string" {
			if _, ok := a.Shape.(string); !ok {
				t.Errorf("%s: %v", format, a.Shape)
			}
		} else if !strings.HasPrefix(got, want) {
			t.Errorf("%s: %s", format, got)
		}
	}
	a := r.match(`{"shape":[` + strings.ReplaceAll(r.places(0, [2]float64{50, 4}, [2]float64{250, 4}), `"accuracy":5`, `"accuracy":0,"type":"via","radius":5,"heading":360,"speed":20,"foo":[{}]`) + `]}`)
	if len(a.Warnings) != 3 || a.Warnings[0].Pointer != "/shape/*/type" {
		t.Errorf("members of points: %+v", a.Warnings)
	}
	var many []string
	for i := range 100 {
		many = append(many, fmt.Sprintf(`"opt%d":1`, i))
	}
	if a := r.match(`{` + near + "," + strings.Join(many, ",") + `}`); len(a.Warnings) != 31 || !strings.Contains(a.Warnings[30].Text, "more") {
		t.Errorf("%d warnings", len(a.Warnings))
	}
}

// A filter leaves in what it includes, and takes out what it excludes.
func TestFilters(t *testing.T) {
	r := newRig(t, town, nil)
	shape := `"shape":[` + r.drive() + `]`
	a := r.match(`{` + shape + `,"filters":{"attributes":["edge.way_id","matched.confidence"],"action":"include"}}`)
	if a.Shape != nil || a.ConfidenceScore != nil || len(a.Edges) != 3 || len(a.MatchedPoints) != 7 {
		t.Fatalf("%+v", a)
	}
	if d := cmp.Diff(matchapi.Edge{WayID: a.Edges[0].WayID}, a.Edges[0]); d != "" || a.Edges[0].WayID == nil {
		t.Error(d)
	}
	if d := cmp.Diff(matchapi.MatchedPoint{Confidence: a.MatchedPoints[0].Confidence}, a.MatchedPoints[0]); d != "" || a.MatchedPoints[0].Confidence == nil {
		t.Error(d)
	}
	whole := r.match(`{` + shape + `}`)
	a = r.match(`{` + shape + `,"filters":{"attributes":["edge.way_id","shape","edge.names"],"action":"exclude"}}`)
	if a.Shape != nil || a.Edges[0].WayID != nil || a.Edges[0].Speed == nil || len(a.Warnings) != 0 {
		t.Errorf("%+v", a)
	}
	a = r.match(`{` + shape + `,"filters":{"attributes":["shape"],"action":"include"}}`)
	if a.Shape != whole.Shape || a.Edges != nil || a.MatchedPoints != nil {
		t.Errorf("%+v", a)
	}
}

// W7, M43: the answer depends on the request and the map alone: from many goroutines, from new and used engines, the bytes are the same.
func TestSameBytes(t *testing.T) {
	r := newRig(t, town, func(c *matchapi.Config) { c.Concurrency, c.Waiting = 3, 100 })
	bodies := []string{
		`{"shape":[` + r.drive() + `]}`,
		`{"costing":"bicycle","shape":[` + r.drive() + `]}`,
		`{"trace_options":{"search_radius":60},"shape":[` + r.drive() + `]}`,
	}
	var want [3][]byte
	for i, b := range bodies {
		want[i] = r.post(strings.NewReader(b)).body
	}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for i, b := range bodies {
				if got := r.post(strings.NewReader(b)); !bytes.Equal(want[i], got.body) {
					t.Errorf("request %d: %s", i, cmp.Diff(string(want[i]), string(got.body)))
				}
			}
		})
	}
	wg.Wait()
}

// The description that is served is the one that answers are held against, and names what the code has.
func TestDescription(t *testing.T) {
	r := newRig(t, town, nil)
	w := httptest.NewRecorder()
	r.mux.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, matchapi.DescriptionPath, http.NoBody))
	b, err := os.ReadFile("openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if w.Code != http.StatusOK || !bytes.Equal(w.Body.Bytes(), b) {
		t.Errorf("status %d, %d bytes", w.Code, w.Body.Len())
	}
	doc, err := openapi3.NewLoader().LoadFromData(b)
	if err != nil {
		t.Fatal(err)
	}
	for name, example := range doc.Paths.Find(matchapi.MatchPath).Post.RequestBody.Value.Content.Get("application/json").Examples {
		body, err := json.Marshal(example.Value.Value)
		if err != nil {
			t.Fatal(err)
		}
		if a := r.match(string(body)); len(a.MatchedPoints) != 3 {
			t.Errorf("example %s: %+v", name, a)
		}
	}
	enum := func(s *openapi3.SchemaRef) (names []string) {
		for _, v := range s.Value.Enum {
			names = append(names, v.(string))
		}
		return names
	}
	for name, c := range map[string]struct{ described, code []string }{
		"attributes": {enum(doc.Components.Schemas["Attribute"]), matchapi.AttributeNames()},
		"codes":      {enum(doc.Components.Schemas["Problem"].Value.Properties["code"]), matchapi.Codes()},
		"costings":   {enum(doc.Components.Schemas["Request"].Value.Properties["costing"]), matchapi.Costings()},
		"formats":    {enum(doc.Components.Schemas["Request"].Value.Properties["shape_format"]), matchapi.ShapeFormats()},
	} {
		if d := cmp.Diff(c.code, c.described); d != "" {
			t.Errorf("%s (-code +described): %s", name, d)
		}
	}
	copied, err := os.ReadFile("../../docs/formats/match.openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if goldentest.Rewriting() {
		if err := os.WriteFile("../../docs/formats/match.openapi.yaml", b, 0o600); err != nil {
			t.Fatal(err)
		}
	} else if !bytes.Equal(b, copied) {
		t.Error("docs/formats/match.openapi.yaml is another: run the test with -rewrite")
	}
}

// V1: a setting out of range is an error at the start.
func TestConfig(t *testing.T) {
	cfg := matchapi.DefaultConfig()
	cfg.Concurrency, cfg.MaxPoints = 0, 1
	_, err := matchapi.New(nil, cfg, prometheus.NewRegistry(), slog.New(slog.DiscardHandler))
	if err == nil || !strings.Contains(err.Error(), "concurrency is 0") || !strings.Contains(err.Error(), "most points is 1") {
		t.Errorf("got %v", err)
	}
}

// golden compares JSON with a file under testdata.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	var indented bytes.Buffer
	if err := json.Indent(&indented, got, "", " "); err != nil {
		t.Fatal(err)
	}
	goldentest.Compare(t, filepath.Join("testdata", name), indented.String())
}
