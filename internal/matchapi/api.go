package matchapi

import (
	"context"
	_ "embed" // the description of the interface
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"mime"
	"net/http"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"milepost/internal/fleet"
	"milepost/internal/fleet/offline"
	"milepost/internal/mapmatch"
	"milepost/internal/tracefile"
)

//go:embed openapi.yaml
var description []byte

// Config holds the settings of the interface.
type Config struct {
	Concurrency int           // traces that are matched at once
	Waiting     int           // further ones that wait; more are turned away
	MaxBody     int64         // bytes of a request
	MaxPoints   int           // of a trace
	TimeLimit   time.Duration // for a request, from its head to its answer
	ReadLimit   time.Duration // for the body to come
	WriteLimit  time.Duration // for the answer to go
	Fleet       fleet.Config  // as the workers have it
	Matcher     mapmatch.Config
	// Token gives the bearer token that callers must send; nil: there is none, and only programs of this machine may ask.
	Token func() (string, error)
}

// DefaultConfig gives the defaults: one trace a core.
func DefaultConfig() Config {
	n := runtime.GOMAXPROCS(0)
	return Config{
		Concurrency: n, Waiting: 4 * n, MaxBody: 16 << 20, MaxPoints: 100_000,
		TimeLimit: time.Minute, ReadLimit: 20 * time.Second, WriteLimit: time.Minute,
		Fleet: fleet.DefaultConfig(), Matcher: mapmatch.DefaultConfig(),
	}
}

// Validate reports every setting that is out of range.
func (c Config) Validate() error {
	var errs []error
	for _, l := range []struct {
		name     string
		got, min int64
	}{
		{"concurrency", int64(c.Concurrency), 1},
		{"waiting", int64(c.Waiting), 0},
		{"largest body (bytes)", c.MaxBody, 1024},
		{"most points", int64(c.MaxPoints), 2},
		{"time limit (ns)", int64(c.TimeLimit), int64(time.Millisecond)},
		{"read limit (ns)", int64(c.ReadLimit), int64(time.Millisecond)},
		{"write limit (ns)", int64(c.WriteLimit), int64(time.Millisecond)},
	} {
		if l.got < l.min {
			errs = append(errs, fmt.Errorf("match interface: %s is %d, must be at least %d", l.name, l.got, l.min))
		}
	}
	return errors.Join(append(errs, c.Matcher.Validate())...)
}

// API is the interface.
type API struct {
	cfg      Config
	world    func() offline.World
	engines  engines
	admitted chan struct{} // capacity: Concurrency + Waiting; a place is held from head to answer
	running  chan struct{} // capacity: Concurrency
	metrics  *metrics
	log      *slog.Logger
	callers  callers
}

// New makes the interface over the world that is in force when a request comes; its metrics go to the registerer.
func New(world func() offline.World, cfg Config, reg prometheus.Registerer, log *slog.Logger) (*API, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	return &API{
		cfg: cfg, world: world, engines: engines{keep: 2 * cfg.Concurrency}, log: log,
		admitted: make(chan struct{}, cfg.Concurrency+cfg.Waiting), running: make(chan struct{}, cfg.Concurrency),
		metrics: newMetrics(reg), callers: callers{token: cfg.Token, log: log},
	}, nil
}

// Paths of the interface.
const (
	MatchPath       = "/v1/match"
	DescriptionPath = "/v1/openapi.yaml"
)

// Routes gives the handlers by their patterns, see http.ServeMux.
func (a *API) Routes() map[string]http.HandlerFunc {
	return map[string]http.HandlerFunc{MatchPath: a.match, "GET " + DescriptionPath: describe}
}

func describe(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/yaml")
	_, _ = w.Write(description) // a client that has gone needs no answer
}

// match serves one request. What becomes of it is counted when its place is free again.
func (a *API) match(w http.ResponseWriter, r *http.Request) {
	began := time.Now()
	outcome := a.handle(w, r)
	a.metrics.done(outcome, time.Since(began))
}

// handle gives what became of the request.
func (a *API) handle(w http.ResponseWriter, r *http.Request) string {
	if p := a.callers.check(r); p != nil {
		p.write(w)
		return p.Code
	}
	select {
	case a.admitted <- struct{}{}: // held until the answer has gone, which is memory too
		defer func() { <-a.admitted }()
	default:
		problem(http.StatusTooManyRequests, codeBusy, "", "%d traces are matched or wait already", cap(a.admitted)).write(w)
		return codeBusy
	}
	body, p := a.serve(w, r)
	switch {
	case p == nil:
		a.send(w, body)
		return "ok"
	case r.Context().Err() != nil && p.Code != codeSlow: // nobody listens; a body that is late ends the context, too
		return "client_gone"
	}
	p.write(w)
	return p.Code
}

// serve gives the answer's bytes.
func (a *API) serve(w http.ResponseWriter, r *http.Request) ([]byte, *Problem) {
	if r.Method != http.MethodPost {
		return nil, problem(http.StatusMethodNotAllowed, codeMethod, "", "%s takes a POST with the trace as its body", MatchPath)
	}
	ctx, cancel := context.WithTimeout(r.Context(), a.cfg.TimeLimit)
	defer cancel()
	req, p := a.read(w, r)
	if p != nil {
		return nil, p
	}
	if p := a.allowed(req); p != nil {
		return nil, p
	}
	select {
	case a.running <- struct{}{}:
		defer func() { <-a.running }()
	case <-ctx.Done():
		return nil, a.late()
	}
	out, p := a.solve(ctx, req)
	if p != nil {
		return nil, p
	}
	b, err := json.Marshal(out)
	if err != nil {
		return nil, a.failed(fmt.Errorf("encode the answer: %w", err))
	}
	return append(b, '\n'), nil
}

func (a *API) late() *Problem {
	return problem(http.StatusServiceUnavailable, codeTimeLimit, "", "the trace was not matched within %s: match it in parts, or try later", a.cfg.TimeLimit)
}

// failed logs what a client has no use of.
func (a *API) failed(err error) *Problem {
	a.log.LogAttrs(context.Background(), slog.LevelError, "match a trace", slog.Any("err", err))
	return problem(http.StatusInternalServerError, codeInternal, "", "the trace could not be matched; the service's log says why")
}

// read reads the body.
func (a *API) read(w http.ResponseWriter, r *http.Request) (*request, *Problem) {
	if p := mediaType(r.Header); p != nil {
		return nil, p
	}
	// A server without deadlines, as in a test, has none to set.
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(a.cfg.ReadLimit))
	return decode(http.MaxBytesReader(w, r.Body, a.cfg.MaxBody), a.cfg.MaxPoints)
}

// mediaType refuses what is said to be something else than JSON. curl calls JSON a form unless told otherwise.
func mediaType(h http.Header) *Problem {
	if c := h.Get("Content-Encoding"); c != "" && !strings.EqualFold(c, "identity") {
		return problem(http.StatusUnsupportedMediaType, codeMediaType, "", "the body must not be packed, it is %.40q", c)
	}
	c := h.Get("Content-Type")
	if c == "" {
		return nil
	}
	t, _, err := mime.ParseMediaType(c)
	switch {
	case err != nil:
	case t == "application/json", t == "text/plain", t == "application/x-www-form-urlencoded", strings.HasSuffix(t, "+json"):
		return nil
	}
	return problem(http.StatusUnsupportedMediaType, codeMediaType, "", "the body must be application/json, it is %.80q", c)
}

// allowed checks what the map has.
func (a *API) allowed(req *request) *Problem {
	for _, g := range a.world().Graphs {
		if !g.Vehicles().Has(req.vehicle) {
			return problem(http.StatusBadRequest, codeUnsupported, "/costing", "the road map here has no roads for %s, only for %v", costingOf(req.vehicle), g.Vehicles())
		}
	}
	return nil
}

// solve matches a trace. A panic of the matcher is this request's alone; its engine's memory is not used again.
func (a *API) solve(ctx context.Context, req *request) (out *Answer, p *Problem) {
	defer func() {
		if v := recover(); v != nil {
			out, p = nil, a.failed(fmt.Errorf("the matcher panicked: %v\n%s", v, debug.Stack()))
		}
	}()
	world, cfg := a.world(), a.configuration(req)
	engine, err := a.engines.take(world, cfg)
	if err != nil {
		return nil, a.failed(err)
	}
	run, err := engine.NewRun(offline.Options{Fleet: a.cfg.Fleet})
	if err != nil {
		return nil, a.failed(err)
	}
	run.AddSink(offline.NewTrips(run.Settle, func(trip *offline.Trip) error {
		out = answer(req, trip, offline.NewLocator(cfg.Vehicle, world.Graphs...))
		return nil
	}))
	for i := range req.points {
		if ctx.Err() != nil {
			return nil, a.late()
		}
		if err := run.Add(fix(&req.points[i])); err != nil {
			return nil, a.failed(err)
		}
	}
	if _, err := run.Close(); err != nil {
		return nil, a.failed(err)
	}
	a.engines.give(a.world().Atlas, idleEngine{world.Atlas, cfg, engine})
	a.metrics.points.Add(float64(len(req.points)))
	return out, nil
}

// configuration is the matcher's for a request.
func (a *API) configuration(req *request) mapmatch.Config {
	cfg := a.cfg.Matcher
	cfg.Vehicle = req.vehicle
	if req.radius > 0 {
		cfg.MinRadiusM, cfg.MaxRadiusM = req.radius, req.radius
	}
	if req.spacing >= 0 {
		cfg.SpacingM = req.spacing
	}
	return cfg
}

// fix is a point as the matcher's workload has it. Its vehicle is nobody's: a trace is one trip.
func fix(p *point) *tracefile.Fix {
	return &tracefile.Fix{
		Vehicle: "trace", Time: p.at, Lon: p.lon, Lat: p.lat, SpeedMPS: p.speed, HeadingDeg: wrapped(p.heading), AccuracyM: p.accuracy,
	}
}

// wrapped takes a full turn off a heading; NaN stays.
func wrapped(heading float64) float64 { return math.Mod(heading, 360) }

func (a *API) send(w http.ResponseWriter, body []byte) {
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Content-Length", strconv.Itoa(len(body)))
	h.Set("Cache-Control", "no-store")
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(a.cfg.WriteLimit)) // as with the read deadline
	_, _ = w.Write(body)                                                                 // a client that has gone needs no answer
}
