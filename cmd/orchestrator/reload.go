package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"os/signal"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"milepost/internal/fleet"
	"milepost/internal/fleet/catalog"
	"milepost/internal/metrics"
	"milepost/internal/partition"
	"milepost/internal/roadnet"
)

// reloadOutcome is what "catalog reload --json" prints.
type reloadOutcome struct {
	Outcome string `json:"outcome"` // taken, unchanged or refused
	Version int64  `json:"version"` // of the catalog in force
	Regions int    `json:"regions"`
	Error   string `json:"error,omitempty"`
}

// reloader reads a process's catalog again, at SIGHUP or when it is asked to, and puts it into force or changes nothing.
type reloader struct {
	path, profiles string // empty path: there is no catalog
	inForce        atomic.Pointer[territory]
	log            *slog.Logger

	// fits says whether a catalog that is good is one for this process, before its maps are imported.
	fits func(*catalog.Catalog) error
	at   func([32]byte) *roadnet.Graph // a graph at hand, by its hash
	// use puts a territory into force; on an error nothing has changed.
	use   func(context.Context, *territory) error
	count func(outcome string)

	ready   atomic.Bool    // what is above is there
	hangups chan os.Signal // capacity 1: one more while one is being served
	mu      sync.Mutex     // one catalog at a time
}

// newReloader takes SIGHUP from here on, so that one which comes early is served and does not end the process. Without a catalog the
// signal keeps its usual meaning. close gives it back.
func newReloader(path, profiles string, t *territory, log *slog.Logger) *reloader {
	r := &reloader{path: path, profiles: profiles, log: log, hangups: make(chan os.Signal, 1)}
	r.inForce.Store(t)
	if path != "" {
		signal.Notify(r.hangups, syscall.SIGHUP)
	}
	return r
}

func (r *reloader) close() { signal.Stop(r.hangups) }

// run reads the catalog again at each SIGHUP until ctx ends.
func (r *reloader) run(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-r.hangups:
			r.reload(ctx)
		}
	}
}

// reload reads the catalog again and puts it into force, or leaves everything as it is and says why.
func (r *reloader) reload(ctx context.Context) reloadOutcome {
	r.mu.Lock()
	defer r.mu.Unlock()
	outcome, err := r.take(ctx)
	r.count(outcome)
	now := r.inForce.Load()
	out := reloadOutcome{Outcome: outcome, Version: now.version()}
	if now.catalog != nil {
		out.Regions = len(now.catalog.Regions)
	}
	if err != nil {
		out.Error = err.Error()
		r.log.LogAttrs(ctx, slog.LevelError, "the catalog is refused; the one in force stays", slog.Any("err", err))
		return out
	}
	r.log.LogAttrs(ctx, slog.LevelInfo, "catalog in force", slog.String("outcome", outcome), slog.Int64("version", out.Version),
		slog.Int("regions", out.Regions))
	return out
}

func (r *reloader) take(ctx context.Context) (outcome string, err error) {
	if r.path == "" {
		return metrics.ReloadRefused, errors.New("this process has no --catalog")
	}
	was := r.inForce.Load()
	text, c, err := readCatalog(r.path)
	switch {
	case err != nil:
		return metrics.ReloadRefused, err
	case text == was.text:
		// The maps may have changed under it, but then nobody could tell which one a version means.
		return metrics.ReloadUnchanged, nil
	case c.Version <= was.version():
		return metrics.ReloadRefused, fmt.Errorf("version %d is not above %d, which is in force: a changed catalog needs a higher one, also when it goes back to an earlier state",
			c.Version, was.version())
	}
	if err := r.fits(c); err != nil {
		return metrics.ReloadRefused, err
	}
	t, err := catalogLoader{path: r.path, profiles: r.profiles, at: r.at, log: r.log}.load(ctx, text, c)
	if err != nil {
		return metrics.ReloadRefused, err
	}
	if err := r.use(ctx, t); err != nil {
		return metrics.ReloadRefused, err
	}
	r.inForce.Store(t)
	return metrics.ReloadTaken, nil
}

// serve answers POST /catalog/reload.
func (r *reloader) serve(w http.ResponseWriter, req *http.Request) {
	if !r.ready.Load() {
		http.Error(w, "starting", http.StatusServiceUnavailable)
		return
	}
	// The server's time-out for reading is for requests; left as it is, it would end the context of one that takes long to answer.
	if err := http.NewResponseController(w).SetReadDeadline(time.Time{}); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	out := r.reload(req.Context())
	w.Header().Set("Content-Type", "application/json")
	if out.Outcome == metrics.ReloadRefused {
		w.WriteHeader(http.StatusUnprocessableEntity)
	}
	_ = json.NewEncoder(w).Encode(out) // a client that is gone
}

// takeReloads completes the worker's reloader.
func (s *service) takeReloads() {
	s.reloader.fits = func(*catalog.Catalog) error { return nil }
	s.reloader.at = s.pools.Graph
	s.reloader.count = s.metrics.regions.Reloaded
	s.reloader.use = func(ctx context.Context, t *territory) error {
		if err := s.solveTopics(ctx, t); err != nil {
			return err
		}
		w, err := s.putInForce(t)
		if err != nil {
			return err
		}
		s.consumer.Replace(w)
		return nil
	}
	s.reloader.ready.Store(true)
}

// putInForce makes a territory ready to be served: its graphs, before there are jobs for them. It gives the workload that makes those.
func (s *service) putInForce(t *territory) (partition.Workload, error) {
	w, err := fleet.New(s.fleet, t.atlas)
	if err != nil {
		return nil, err
	}
	if err := s.pools.Use(t.graphs, time.Now()); err != nil {
		return nil, err
	}
	s.credits.Configure(t.credits())
	return s.metrics.Workload(w), nil
}
