package matchapi_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/twpayne/go-polyline"

	"milepost/internal/matchapi"
)

// Issue 6: what is wrong with a request is said with a code, and where.
func TestRefusals(t *testing.T) {
	r := newRig(t, town, nil)
	const ok = `{"lat":48,"lon":9.001,"time":10},{"lat":48,"lon":9.002,"time":20}`
	for _, c := range []struct {
		body    string
		code    string
		pointer string
		say     string
	}{
		{``, "not_json", "", "empty"},
		{`{"shape":[` + ok, "not_json", "", "ends in the middle"},
		{`[]`, "bad_value", "", "must be an object"},
		{`{"shape":[` + ok + `]} {}`, "not_json", "", "follows"},
		{`{"shape":[{"lat":NaN,"lon":9}]}`, "not_json", "", "invalid character 'N'"},
		{`{"shape":[{"lat":"48","lon":9}]}`, "bad_value", "/shape/0/lat", "must be a number"},
		{`{"shape":[{"lat":1e999,"lon":9}]}`, "bad_value", "/shape/0/lat", "1e999 is not from -90 to 90"},
		{`{"shape":[` + ok + `,{"lat":91,"lon":9}]}`, "bad_value", "/shape/2/lat", "91 is not from -90 to 90"},
		{`{"shape":[{"lat":48}]}`, "missing_value", "/shape/0/lon", "no lon"},
		{`{"shape":[5]}`, "bad_value", "/shape/0", "must be an object"},
		{`{"shape":{"lat":1}}`, "bad_value", "/shape", "must be an array"},
		{`{"shape":[]}`, "too_few_points", "", "at least two points, this one 0"},
		{`{"shape":[{"lat":48,"lon":9}]}`, "too_few_points", "", "at least two points, this one 1"},
		{`{"encoded_polyline":""}`, "too_few_points", "", "this one 0"},
		{`{}`, "missing_value", "/shape", "the trace is missing"},
		{`{"shape":[` + ok + `],"encoded_polyline":"_izlhA_rlgdF_{geC~ywl@"}`, "bad_value", "/encoded_polyline", "not both"},
		{`{"encoded_polyline":"é"}`, "bad_value", "/encoded_polyline", "not a polyline"},
		{`{"encoded_polyline":"_"}`, "bad_value", "/encoded_polyline", "not a polyline"},
		{`{"encoded_polyline":"` + string((&polyline.Codec{Dim: 2, Scale: 1e6}).EncodeCoords(nil, [][]float64{{95, 9}, {48, 9}})) + `"}`, "bad_value", "/encoded_polyline", "off the globe"},
		{`{"shape":[{"lat":48,"lon":9.001,"time":20},{"lat":48,"lon":9.002,"time":10}]}`, "bad_value", "/shape/1/time", "goes back by 10s"},
		{`{"shape":[{"lat":48,"lon":9.001,"time":20},{"lat":48,"lon":9.002}]}`, "missing_value", "/shape/1/time", "1 of 2 points have a time"},
		{`{"shape":[{"lat":48,"lon":9.001,"time":1615703474876},{"lat":48,"lon":9.002}]}`, "bad_value", "/shape/0/time", "in the years 1 to 9999"},
		{`{"shape":[{"lat":48,"lon":9.001,"time":"noon"}]}`, "bad_value", "/shape/0/time", "RFC 3339"},
		{`{"shape":[{"lat":48,"lon":9.001,"time":true}]}`, "bad_value", "/shape/0/time", "a number or a text"},
		{`{"shape":[{"lat":48,"lat":48,"lon":9}]}`, "bad_value", "/shape/0/lat", "given twice"},
		{`{"shape":[` + ok + `],"shape":[]}`, "bad_value", "/shape", "given twice"},
		{`{"shape":[` + ok + `],"durations":[5]}`, "bad_value", "/durations", "times with the points or durations"},
		{`{"encoded_polyline":"_izlhA_rlgdF_{geC~ywl@","durations":[5,5]}`, "bad_value", "/durations", "2 durations for 2 points: want 1"},
		{`{"encoded_polyline":"_izlhA_rlgdF_{geC~ywl@","durations":[-1]}`, "bad_value", "/durations/0", "-1 is not from 0"},
		{`{"shape":[` + ok + `],"costing":5}`, "bad_value", "/costing", "must be a text"},
		{`{"shape":[` + ok + `],"shape_match":"edge_walk"}`, "unsupported_value", "/shape_match", "map_snap finds the same"},
		{`{"shape":[` + ok + `],"shape_match":"x"}`, "unsupported_value", "/shape_match", "none of map_snap"},
		{`{"shape":[` + ok + `],"shape_format":"kml"}`, "unsupported_value", "/shape_format", "none of polyline6"},
		{`{"shape":[` + ok + `],"units":"furlongs"}`, "unsupported_value", "/units", "neither kilometers nor miles"},
		{`{"shape":[` + ok + `],"trace_options":{"search_radius":1000}}`, "bad_value", "/trace_options/search_radius", "not from 0 to 250"},
		{`{"shape":[` + ok + `],"trace_options":{"gps_accuracy":0}}`, "bad_value", "/trace_options/gps_accuracy", "not from 0.1"},
		{`{"shape":[` + ok + `],"filters":{"action":"keep"}}`, "unsupported_value", "/filters/action", "neither include nor exclude"},
		{`{"shape":[` + ok + `],"filters":[]}`, "bad_value", "/filters", "must be an object"},
		{`{"shape":[` + ok + `],"id":"` + strings.Repeat("x", 300) + `"}`, "bad_value", "/id", "longer than 256"},
	} {
		r.refused(c.body, 400, c.code, c.pointer, c.say)
	}
	for _, h := range [][2]string{{"Content-Type", "application/xml"}, {"Content-Type", "multipart/form-data; boundary=x"}, {"Content-Encoding", "gzip"}} {
		got := r.post(strings.NewReader(`{"shape":[`+ok+`]}`), h[0], h[1])
		r.isRefused(got, h[1], 415, "unsupported_media_type", "", "the body must")
	}
	for _, method := range []string{http.MethodGet, http.MethodPut, http.MethodDelete} {
		got := r.do(httptest.NewRequestWithContext(t.Context(), method, matchapi.MatchPath, http.NoBody))
		if r.isRefused(got, method, 405, "method_not_allowed", "", "POST"); got.header.Get("Allow") != http.MethodPost {
			t.Errorf("%s: Allow is %q", method, got.header.Get("Allow"))
		}
	}
	if n := counter(t, r.reg, "bad_value"); n < 15 {
		t.Errorf("%v requests were counted as bad", n)
	}
}

// W3: who finds no room is told at once, and when to come again; when there is room again, the next is served.
func TestNoRoom(t *testing.T) {
	r := newRig(t, town, func(c *matchapi.Config) { c.Concurrency, c.Waiting = 1, 0 })
	body, in := io.Pipe()
	first := make(chan reply)
	go func() { first <- r.post(body) }()
	if _, err := in.Write([]byte(`{"shape":[`)); err != nil { // taken: the request is in
		t.Fatal(err)
	}
	got := r.post(strings.NewReader(`{}`))
	if r.isRefused(got, "second", 429, "busy", "", "1 traces"); got.header.Get("Retry-After") != "1" {
		t.Errorf("Retry-After is %q", got.header.Get("Retry-After"))
	}
	if _, err := io.WriteString(in, r.drive()+`]}`); err != nil {
		t.Fatal(err)
	}
	if err := in.Close(); err != nil {
		t.Fatal(err)
	}
	if got := <-first; got.status != http.StatusOK {
		t.Errorf("the first: %d %s", got.status, got.body)
	}
	r.match(`{"shape":[` + r.drive() + `]}`)
}

// W4: a client that has gone is not worked for; a trace that takes too long is given up, and the next is served.
func TestGivenUp(t *testing.T) {
	r := newRig(t, town, nil)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	w := httptest.NewRecorder()
	gone := httptest.NewRequestWithContext(ctx, http.MethodPost, matchapi.MatchPath, strings.NewReader(`{"shape":[`+r.drive()+`]}`))
	gone.RemoteAddr, gone.Host = "127.0.0.1:1", "localhost"
	r.mux.ServeHTTP(w, gone)
	if w.Body.Len() > 0 || counter(t, r.reg, "client_gone") != 1 {
		t.Errorf("a client that has gone: %d %s", w.Code, w.Body.Bytes())
	}
	r = newRig(t, town, func(c *matchapi.Config) { c.TimeLimit = time.Millisecond })
	slow := io.MultiReader(readerFunc(func([]byte) (int, error) {
		<-time.After(5 * time.Millisecond) // the limit counts from before the body is read
		return 0, io.EOF
	}), strings.NewReader(`{"shape":[`+r.drive()+`]}`))
	r.isRefused(r.post(slow), "slow", 503, "time_limit", "", "not matched within 1ms")
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// W6: without a token only this machine's programs are served, and no web page; with one, who sends it, from anywhere.
func TestCallers(t *testing.T) {
	token, broken := "secret", error(nil)
	open := newRig(t, town, nil)
	guarded := newRig(t, town, func(c *matchapi.Config) { c.Token = func() (string, error) { return token, broken } })
	body := `{"shape":[` + open.drive() + `]}`
	ask := func(r *rig, remote, host string, header ...string) reply {
		req := httptest.NewRequestWithContext(t.Context(), http.MethodPost, matchapi.MatchPath, strings.NewReader(body))
		req.RemoteAddr, req.Host = remote, host
		for i := 0; i+1 < len(header); i += 2 {
			req.Header.Set(header[i], header[i+1])
		}
		return r.do(req)
	}
	for _, ok := range [][2]string{{"127.0.0.1:5", "127.0.0.1:8002"}, {"[::1]:5", "[::1]:8002"}, {"[::ffff:127.0.0.1]:5", "localhost"}} {
		if got := ask(open, ok[0], ok[1]); got.status != http.StatusOK {
			t.Errorf("%v: %d %s", ok, got.status, got.body)
		}
	}
	for _, no := range [][2]string{{"10.0.0.7:5", "127.0.0.1:8002"}, {"127.0.0.1:5", "evil.example"}, {"", ""}} {
		open.isRefused(ask(open, no[0], no[1]), no[1], 403, "forbidden", "", "--match-token-file")
	}
	open.isRefused(ask(open, "127.0.0.1:5", "localhost", "Sec-Fetch-Site", "cross-site"), "page", 403, "forbidden", "", "web page")
	if got := ask(guarded, "10.0.0.7:5", "milepost", "Authorization", "Bearer secret"); got.status != http.StatusOK {
		t.Errorf("with the token: %d %s", got.status, got.body)
	}
	for _, header := range []string{"", "Bearer wrong", "Bearer ", "secret", "Basic secret"} {
		got := ask(guarded, "127.0.0.1:5", "127.0.0.1", "Authorization", header)
		if guarded.isRefused(got, header, 401, "unauthorized", "", "bearer token"); got.header.Get("WWW-Authenticate") != "Bearer" {
			t.Errorf("%q: %v", header, got.header)
		}
	}
	token = ""
	guarded.isRefused(ask(guarded, "127.0.0.1:5", "127.0.0.1", "Authorization", "Bearer "), "empty", 401, "unauthorized", "", "bearer token")
	broken = errors.New("no such file")
	guarded.isRefused(ask(guarded, "127.0.0.1:5", "127.0.0.1", "Authorization", "Bearer secret"), "broken", 500, "internal", "", "log")
}
