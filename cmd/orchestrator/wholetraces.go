package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/spf13/pflag"

	"milepost/internal/fleet/offline"
	"milepost/internal/matchapi"
	"milepost/internal/telemetry"
)

// wholeTraces are the settings of POST /v1/match.
type wholeTraces struct {
	atOnce int
	token  string // file
}

// flags of a process that has other work, too: it serves whole traces only where it is told how many.
func (o *wholeTraces) flags(fs *pflag.FlagSet) {
	fs.IntVar(&o.atOnce, "match-traces", 0, "whole traces that POST /v1/match, on --listen, may match at once, beside the stream's work; 0: it is not served")
	o.tokenFlag(fs)
}

func (o *wholeTraces) tokenFlag(fs *pflag.FlagSet) {
	fs.StringVar(&o.token, "match-token-file", "",
		"`file` with the bearer token for POST /v1/match, read at each request; empty: only programs of this machine may ask")
}

func (o *wholeTraces) validate() error {
	var problems []error
	if o.atOnce < 0 {
		problems = append(problems, fmt.Errorf("--match-traces is %d, must not be negative", o.atOnce))
	}
	if o.token != "" {
		if _, err := telemetry.ReadToken(o.token); err != nil {
			problems = append(problems, fmt.Errorf("--match-token-file: %w", err))
		}
	}
	return errors.Join(problems...)
}

// serve adds the interface to a process's server, over the territory that is in force when a request comes.
func (o *wholeTraces) serve(server *telemetry.Server, inForce func() *territory, reg prometheus.Registerer, log *slog.Logger) error {
	if o.atOnce == 0 {
		return nil
	}
	cfg := matchapi.DefaultConfig()
	cfg.Concurrency, cfg.Waiting = o.atOnce, 4*o.atOnce
	if o.token != "" {
		cfg.Token = func() (string, error) {
			token, err := telemetry.ReadToken(o.token)
			return string(token), err
		}
	}
	api, err := matchapi.New(func() offline.World { return worldOf(inForce()) }, cfg, reg, log)
	if err != nil {
		return usage(err)
	}
	for pattern, handler := range api.Routes() {
		server.Handle(pattern, handler)
	}
	return nil
}

// serve answers POST /v1/match until ctx ends.
func (o *matchOptions) serve(ctx context.Context, io streams, log *slog.Logger) error {
	vehicles, err := parseVehicles(o.vehicle)
	if err != nil {
		return err
	}
	t, err := loadWorld(ctx, o.roadMap, o.catalog, o.profiles, vehicles, log)
	if err != nil {
		return err
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	server, err := telemetry.Listen(o.listen, registry, func() error { return nil }, log)
	if err != nil {
		return err
	}
	api := wholeTraces{atOnce: cmp.Or(o.api.atOnce, runtime.GOMAXPROCS(0)), token: o.api.token}
	if err := api.serve(server, func() *territory { return t }, registry, log); err != nil {
		return err
	}
	fmt.Fprintf(io.err, "POST http://%s%s, described at http://%s%s\n", server.Address(), matchapi.MatchPath, server.Address(), matchapi.DescriptionPath)
	return server.Run(ctx)
}
