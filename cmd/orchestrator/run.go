package main

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"milepost/internal/roadnet"
	"milepost/internal/telemetry"
)

func newRun(io streams) *cobra.Command {
	var opts serviceOptions
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Run a worker: consume, decide, commit exactly once",
		Long: `Run a worker of the group. Start as many as you like: Kafka spreads the partitions over them, Postgres fences every
write. SIGTERM or Ctrl-C drains: what is in hand is finished, the partitions are released, the exit code is 0.

With --catalog the worker serves several regions, each on its own road map. SIGHUP reads the file again: a good one with a higher
version comes into force while vehicles drive, any other changes nothing.

A database or broker that is away, at the start or later, is waited for; nothing is lost meanwhile.`,
		Example: `  orchestrator migrate up --dsn postgres://milepost@db/milepost
  orchestrator run --brokers kafka:9092 --dsn postgres://milepost@db/milepost --map delaware.osm.pbf
  orchestrator run --brokers kafka:9092 --dsn postgres://milepost@db/milepost --catalog regions.toml
  MILEPOST_DSN=… orchestrator run --config milepost.toml --topics create --raw-partitions 12`,
		Args: args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if _, err := settle(cmd.Flags()); err != nil {
				return err
			}
			if err := opts.validate(); err != nil {
				return err
			}
			log, err := newLogger(io, opts.log)
			if err != nil {
				return err
			}
			t, err := loadTerritory(cmd.Context(), &opts, log)
			if err != nil {
				return err
			}
			return runService(cmd.Context(), opts, t, log, nil)
		},
	}
	opts.flags(cmd.Flags())
	return cmd
}

func newLogger(io streams, o logOptions) (*slog.Logger, error) {
	level, err := telemetry.ParseLevel(o.level)
	if err != nil {
		return nil, usage(err)
	}
	log, err := telemetry.NewLogger(io.err, telemetry.Format(o.format), level)
	return log, usage(err)
}

// loadMap opens a road map for cars, read by a file of profiles where that has a name, and says what came of it.
func loadMap(ctx context.Context, path, profiles string, log *slog.Logger) (*roadnet.Graph, error) {
	return loadMapFor(ctx, path, profiles, 0, log)
}

// loadMapFor is loadMap for other classes of vehicles; a graph file has those that it was made for.
func loadMapFor(ctx context.Context, path, profiles string, vehicles roadnet.Vehicles, log *slog.Logger) (*roadnet.Graph, error) {
	began := time.Now()
	p, err := readProfiles(profiles)
	if err != nil {
		return nil, err
	}
	graph, err := openMap(ctx, path, roadnet.ImportOptions{Profiles: p, Vehicles: vehicles})
	if err != nil {
		return nil, fmt.Errorf("--map: %w", err)
	}
	hash := graph.Hash()
	log.LogAttrs(ctx, slog.LevelInfo, "road map", slog.String("file", filepath.Base(path)), slog.Int("edges", graph.Edges()),
		slog.Int("restrictions", graph.Stats().Restrictions), slog.String("graph", fmt.Sprintf("%x", hash[:8])),
		slog.Duration("took", time.Since(began).Round(time.Millisecond)))
	return graph, nil
}
