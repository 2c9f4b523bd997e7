package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"time"

	"milepost/internal/fleet"
	"milepost/internal/fleet/catalog"
	"milepost/internal/partition"
	"milepost/internal/roadnet"
)

// territory is what a worker serves: an atlas with the graphs of its regions.
type territory struct {
	atlas   *fleet.Atlas     // nil: none, the workload needs no map
	catalog *catalog.Catalog // nil: one map
	graphs  []*roadnet.Graph // of the catalog's regions; the same one may come more than once
	text    string           // of the catalog's file
}

// oneMap is the territory of --map.
func oneMap(g *roadnet.Graph) *territory {
	return &territory{atlas: fleet.OneMap(fleet.MapOf(g)), graphs: []*roadnet.Graph{g}}
}

// version is the catalog's; 0: there is none.
func (t *territory) version() int64 {
	if t.atlas == nil {
		return 0
	}
	return t.atlas.Version()
}

// loadTerritory loads what --map or --catalog names; the counter workload has none.
func loadTerritory(ctx context.Context, o *serviceOptions, log *slog.Logger) (*territory, error) {
	if o.workload == workloadCounter {
		return &territory{}, nil
	}
	return loadWorld(ctx, o.roadMap, o.catalog, o.profiles, 0, log)
}

// loadWorld loads a map, or a catalog and its maps, for the classes of vehicles.
func loadWorld(ctx context.Context, roadMap, regions, profiles string, vehicles roadnet.Vehicles, log *slog.Logger) (*territory, error) {
	if regions == "" {
		g, err := loadMapFor(ctx, roadMap, profiles, vehicles, log)
		if err != nil {
			return nil, err
		}
		return oneMap(g), nil
	}
	text, c, err := readCatalog(regions)
	if err != nil {
		return nil, fmt.Errorf("--catalog: %w", err)
	}
	return catalogLoader{path: regions, profiles: profiles, vehicles: vehicles, log: log}.load(ctx, text, c)
}

func readCatalog(path string) (text string, c *catalog.Catalog, err error) {
	b, err := readSmall(path, maxCatalogFile)
	if err != nil {
		return "", nil, err
	}
	c, err = catalog.Parse(path, b)
	return string(b), c, err
}

// catalogLoader loads the maps of a catalog.
type catalogLoader struct {
	path     string           // of the catalog
	profiles string           // file, empty: the default
	vehicles roadnet.Vehicles // none: cars
	// at gives a graph that is at hand already, by its hash: where the same roads come out again, that one is kept. It may be nil.
	at  func([32]byte) *roadnet.Graph
	log *slog.Logger
}

func (l catalogLoader) load(ctx context.Context, text string, c *catalog.Catalog) (*territory, error) {
	profiles, err := readProfiles(l.profiles)
	if err != nil {
		return nil, err
	}
	t := &territory{catalog: c, text: text}
	type part struct {
		file string
		box  catalog.Box
	}
	loaded := map[part]*roadnet.Graph{}
	var maps []fleet.Map
	var problems []error
	for i := range c.Regions {
		r := &c.Regions[i]
		p := part{file: regionMap(l.path, r)}
		if r.Box != nil {
			p.box = *r.Box
		}
		g := loaded[p]
		if g == nil {
			if g, err = importPart(ctx, p.file, r.Box, roadnet.ImportOptions{Profiles: profiles, Vehicles: l.vehicles}); err != nil {
				problems = append(problems, fmt.Errorf("region %s: %w", r.ID, err))
				continue
			}
			if l.at != nil {
				if same := l.at(g.Hash()); same != nil {
					g = same
				}
			}
			loaded[p] = g
		}
		hash := g.Hash()
		l.log.LogAttrs(ctx, slog.LevelInfo, "region", slog.String("region", r.ID), slog.String("file", filepath.Base(p.file)),
			slog.Int("edges", g.Edges()), slog.String("graph", fmt.Sprintf("%x", hash[:8])), slog.Int("cells", len(r.Coverage)))
		t.graphs, maps = append(t.graphs, g), append(maps, fleet.MapOf(g))
	}
	if len(problems) > 0 {
		return nil, errors.Join(problems...)
	}
	t.atlas, err = fleet.NewAtlas(c, maps)
	return t, err
}

// regionMap is where a region's map is: paths in a catalog are relative to it.
func regionMap(path string, r *catalog.Region) string {
	if filepath.IsAbs(r.Graph) {
		return r.Graph
	}
	return filepath.Join(filepath.Dir(path), filepath.FromSlash(r.Graph))
}

func importPart(ctx context.Context, file string, box *catalog.Box, opt roadnet.ImportOptions) (*roadnet.Graph, error) {
	if box != nil {
		opt.Box = &roadnet.Box{West: box.West, South: box.South, East: box.East, North: box.North}
	}
	return openMap(ctx, file, opt)
}

// credits gives the bounds of admission: the defaults, and what regions have of their own.
func (t *territory) credits() partition.CreditsConfig {
	cfg := partition.DefaultCreditsConfig()
	if t.catalog == nil {
		cfg.Region = cfg.Global // there is one region, nobody to protect from it
	} else {
		cfg.Own = map[string]partition.Bound{}
		for _, r := range t.catalog.Regions {
			cfg.Own[r.ID] = partition.Bound{Jobs: r.MaxJobs, Bytes: r.MaxBytes}
		}
	}
	return cfg
}

// graphLinger is how long a map that is out of force stays: as long as an idle vehicle stays in memory, and the time in which its
// last observations come out of a backlog.
func graphLinger() time.Duration { return partition.DefaultConfig().EvictIdle }
