package matchapi_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"milepost/internal/fleet/offline"
	"milepost/internal/matchapi"
	"milepost/internal/roadnet"
	"milepost/internal/roadnet/roadnettest"
)

// endless gives a head, then a part over and over.
type endless struct {
	head, part string
	rest       []byte
	given      int64
}

func (e *endless) Read(p []byte) (int, error) {
	if e.head != "" {
		n := copy(p, e.head)
		e.head = e.head[n:]
		e.given += int64(n)
		return n, nil
	}
	n := 0
	for n < len(p) {
		if len(e.rest) == 0 {
			e.rest = []byte(e.part)
		}
		k := copy(p[n:], e.rest)
		e.rest = e.rest[k:]
		n += k
	}
	e.given += int64(n)
	return n, nil
}

// W3: hostile bodies end in a clear refusal, early, without the memory that they ask for.
func TestHostileBodies(t *testing.T) {
	const limit = 1 << 20
	r := newRig(t, town, func(c *matchapi.Config) { c.MaxBody, c.MaxPoints = limit, 1000 })
	const point = `{"lat":48,"lon":9},`
	for name, c := range map[string]struct {
		head, part string
		status     int
		code       string
	}{
		"a billion points":          {`{"shape":[`, point, 413, "too_many_points"},
		"a billion empty points":    {`{"shape":[`, `{},`, 400, "missing_value"},
		"a billion durations":       {`{"durations":[`, `1,`, 413, "too_many_points"},
		"a billion attributes":      {`{"filters":{"attributes":[`, `"edge.way_id",`, 400, "bad_value"},
		"an endless polyline":       {`{"encoded_polyline":"`, `_p~iF`, 413, "body_too_large"},
		"an endless text":           {`{"id":"`, `x`, 413, "body_too_large"},
		"endless space":             {``, ` `, 413, "body_too_large"},
		"deep arrays in an option":  {`{"foo":`, `[`, 400, "not_json"},
		"deep objects in an option": {`{"foo":`, `{"a":`, 400, "not_json"},
		"deep in a point":           {`{"shape":[{"foo":`, `[`, 400, "not_json"},
		"deep in lat":               {`{"shape":[{"lat":`, `[`, 400, "bad_value"},
		"an endless number":         {`{"shape":[{"lat":`, `1`, 413, "body_too_large"},
		"many members of a point":   {`{"shape":[{`, `"a":1,`, 400, "bad_value"},
		"an unknown endless array":  {`{"foo":[`, `1,`, 413, "body_too_large"},
	} {
		t.Run(name, func(t *testing.T) {
			body := &endless{head: c.head, part: c.part}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			got := r.post(body)
			runtime.ReadMemStats(&after)
			var p matchapi.Problem
			if err := json.Unmarshal(got.body, &p); err != nil {
				t.Fatal(err)
			}
			if got.status != c.status || p.Code != c.code || len(got.body) > 1000 {
				t.Errorf("%d %s, want %d %s", got.status, got.body, c.status, c.code)
			}
			if body.given > limit+64<<10 {
				t.Errorf("%d bytes were read", body.given)
			}
			if used := after.TotalAlloc - before.TotalAlloc; used > 32*limit {
				t.Errorf("%d bytes were allocated", used)
			}
		})
	}
	a := r.match(`{"shape":[` + strings.Repeat(point, 999) + `{"lat":48,"lon":9}]}`)
	if len(a.MatchedPoints) != 1000 {
		t.Errorf("%d points of the 1000 that may be", len(a.MatchedPoints))
	}
	line := strings.Repeat("??", 1001)
	r.refused(`{"encoded_polyline":"`+line+`"}`, 413, "too_many_points", "", "more than 1000 points")
}

// W2, W4: a trace that breaks at every point has a segment for each, all within the time of a request.
func TestBrokenAtEveryPoint(t *testing.T) {
	r := newRig(t, town, nil)
	var points []string
	for i := range 10_000 {
		at := r.m.Point(300, float64(i%2)*-4000)
		points = append(points, fmt.Sprintf(`{"lat":%.7f,"lon":%.7f,"time":%d}`, at.Lat, at.Lon, 1000*i))
	}
	a := r.match(`{"shape":[` + strings.Join(points, ",") + `]}`)
	if len(a.Segments) != 10_000 || a.MatchedShare != 1 {
		t.Errorf("%d segments, share %v", len(a.Segments), a.MatchedShare)
	}
}

// serve starts a real server over the interface.
func serve(t *testing.T, change func(*matchapi.Config)) (*httptest.Server, *prometheus.Registry) {
	t.Helper()
	m := roadnettest.Parse(t, town)
	cfg := matchapi.DefaultConfig()
	change(&cfg)
	reg := prometheus.NewRegistry()
	api, err := matchapi.New(func() offline.World { return world(m.Graph) }, cfg, reg, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	for pattern, handler := range api.Routes() {
		mux.HandleFunc(pattern, handler)
	}
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s, reg
}

// W4, over real connections: a client that hangs up while it sends gives its place back; one that sends slowly is cut off at the limit.
func TestConnections(t *testing.T) {
	s, reg := serve(t, func(c *matchapi.Config) { c.Concurrency, c.Waiting, c.ReadLimit = 1, 0, time.Minute })
	hangUp(t, s)
	for counter(t, reg, "client_gone") == 0 {
		runtime.Gosched() // the server learns of it in its own time
	}
	hangUp(t, s)
	s, _ = serve(t, func(c *matchapi.Config) { c.Concurrency, c.Waiting, c.ReadLimit = 1, 0, 100*time.Millisecond })
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", s.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if _, err := io.WriteString(conn, "POST /v1/match HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n{"); err != nil {
		t.Fatal(err)
	}
	answer, err := io.ReadAll(conn) // the server closes after it
	if err != nil || !bytes.Contains(answer, []byte("408 Request Timeout")) || !bytes.Contains(answer, []byte(`"request_too_slow"`)) {
		t.Errorf("a slow client: %v, %s", err, answer)
	}
}

// hangUp begins a request and goes.
func hangUp(t *testing.T, s *httptest.Server) {
	t.Helper()
	body, in := io.Pipe()
	ctx, cancel := context.WithCancel(t.Context())
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL+matchapi.MatchPath, body)
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		res, err := s.Client().Do(req)
		if err == nil {
			_ = res.Body.Close()
			t.Errorf("answered with %d", res.StatusCode)
		}
	})
	if _, err := io.WriteString(in, `{"shape":[`); err != nil {
		t.Fatal(err)
	}
	cancel()
	_ = in.CloseWithError(context.Canceled) // the client may wait for its body before it hears that it is to go
	wg.Wait()
}

// W5: no body crashes the interface, and every answer is JSON with a status that the description has.
func FuzzMatch(f *testing.F) {
	m := roadnettest.ParseFor(f, roadnet.ImportOptions{}, town)
	cfg := matchapi.DefaultConfig()
	cfg.MaxBody, cfg.MaxPoints = 4096, 50
	api, err := matchapi.New(func() offline.World { return world(m.Graph) }, cfg, prometheus.NewRegistry(), slog.New(slog.DiscardHandler))
	if err != nil {
		f.Fatal(err)
	}
	handler := api.Routes()[matchapi.MatchPath]
	for _, s := range []string{
		`{"shape":[{"lat":48,"lon":9.001,"time":10},{"lat":48,"lon":9.002,"time":20}],"costing":"auto"}`,
		`{"encoded_polyline":"__upzA_mjdP?_mM","durations":[5],"begin_time":"2026-01-01T00:00:00Z","shape_format":"geojson"}`,
		`{"shape":[{"lat":48,"lon":9.001,"accuracy":1e6},{"lat":48.03,"lon":-180,"heading":360}],"filters":{"attributes":["edge.length"],"action":"exclude"}}`,
		`{"shape":[{"lat":48,"lon":9.001},{"lat":48,"lon":9.001}],"trace_options":{"search_radius":250,"gps_accuracy":0.1,"interpolation_distance":0},"units":"mi"}`,
		`{"shape":[{"lat":90,"lon":180},{"lat":-90,"lon":-180}],"foo":[[[{"a":[]}]]]}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		w := httptest.NewRecorder()
		req := httptest.NewRequestWithContext(t.Context(), http.MethodPost, matchapi.MatchPath, bytes.NewReader(body))
		req.RemoteAddr, req.Host = "127.0.0.1:1", "localhost"
		handler(w, req)
		switch w.Code {
		case http.StatusOK:
			var a matchapi.Answer
			if err := json.Unmarshal(w.Body.Bytes(), &a); err != nil {
				t.Fatal(err)
			}
			for _, p := range a.MatchedPoints {
				if p.Confidence != nil && !(*p.Confidence >= 0 && *p.Confidence <= 1) || p.EdgeIndex != nil && *p.EdgeIndex >= len(a.Edges) && len(a.Edges) > 0 {
					t.Fatalf("%+v", p)
				}
			}
		case http.StatusBadRequest, http.StatusRequestEntityTooLarge:
			var p matchapi.Problem
			if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil || p.Code == "" || w.Body.Len() > 1500 {
				t.Fatalf("%v: %s", err, w.Body.Bytes())
			}
		default:
			t.Fatalf("status %d: %s", w.Code, w.Body.Bytes())
		}
	})
}
