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
	"syscall"
	"time"

	"milepost/internal/fleet"
	"milepost/internal/metrics"
	"milepost/internal/partition"
)

// reloadOutcome is what "catalog reload --json" prints.
type reloadOutcome struct {
	Outcome string `json:"outcome"` // taken, unchanged or refused
	Version int64  `json:"version"` // of the catalog in force
	Regions int    `json:"regions"`
	Error   string `json:"error,omitempty"`
}

// reloads reads the catalog again at each SIGHUP until ctx ends. Without a catalog the signal keeps its usual meaning.
func (s *service) reloads(ctx context.Context) error {
	if s.opts.catalog == "" {
		return nil
	}
	hangups := make(chan os.Signal, 1) // capacity 1: one more while one is being served
	signal.Notify(hangups, syscall.SIGHUP)
	defer signal.Stop(hangups)
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-hangups:
			s.reload(ctx)
		}
	}
}

// reload reads the catalog again and puts it into force, or leaves everything as it is and says why.
func (s *service) reload(ctx context.Context) reloadOutcome {
	s.reloading.Lock()
	defer s.reloading.Unlock()
	outcome, err := s.reloadCatalog(ctx)
	s.metrics.regions.Reloaded(outcome)
	now := s.territory.Load()
	out := reloadOutcome{Outcome: outcome, Version: now.version()}
	if now.catalog != nil {
		out.Regions = len(now.catalog.Regions)
	}
	if err != nil {
		out.Error = err.Error()
		s.log.LogAttrs(ctx, slog.LevelError, "the catalog is refused; the one in force stays", slog.Any("err", err))
		return out
	}
	s.log.LogAttrs(ctx, slog.LevelInfo, "catalog in force", slog.String("outcome", outcome), slog.Int64("version", out.Version),
		slog.Int("regions", out.Regions))
	return out
}

func (s *service) reloadCatalog(ctx context.Context) (outcome string, err error) {
	if s.opts.catalog == "" {
		return metrics.ReloadRefused, errors.New("this worker has a --map and no --catalog")
	}
	was := s.territory.Load()
	text, c, err := readCatalog(s.opts.catalog)
	switch {
	case err != nil:
		return metrics.ReloadRefused, err
	case text == was.text:
		// The maps may have changed under it, but then nobody could tell which one a version means.
		return metrics.ReloadUnchanged, nil
	case c.Version <= was.atlas.Version():
		return metrics.ReloadRefused, fmt.Errorf("version %d is not above %d, which is in force: a changed catalog needs a higher one, also when it goes back to an earlier state",
			c.Version, was.atlas.Version())
	}
	t, err := catalogLoader{path: s.opts.catalog, profiles: s.opts.profiles, at: s.pools.Graph, log: s.log}.load(ctx, text, c)
	if err != nil {
		return metrics.ReloadRefused, err
	}
	if err := s.solveTopics(ctx, t); err != nil {
		return metrics.ReloadRefused, err
	}
	w, err := s.putInForce(t)
	if err != nil {
		return metrics.ReloadRefused, err
	}
	s.consumer.Replace(w)
	return metrics.ReloadTaken, nil
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
	s.territory.Store(t)
	return s.metrics.Workload(w), nil
}

// serveReload answers POST /catalog/reload.
func (s *service) serveReload(w http.ResponseWriter, r *http.Request) {
	if s.consumer == nil {
		http.Error(w, "starting", http.StatusServiceUnavailable)
		return
	}
	// The server's time-out for reading is for requests; left as it is, it would end the context of one that takes long to answer.
	if err := http.NewResponseController(w).SetReadDeadline(time.Time{}); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	out := s.reload(r.Context())
	w.Header().Set("Content-Type", "application/json")
	if out.Outcome == metrics.ReloadRefused {
		w.WriteHeader(http.StatusUnprocessableEntity)
	}
	_ = json.NewEncoder(w).Encode(out) // a client that is gone
}
