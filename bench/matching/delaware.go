package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"milepost/internal/mapmatch"
	"milepost/internal/roadnet"
	"milepost/internal/traffic"
)

// delawareMap is the map of all Delaware that comes with a Go module.
func delawareMap(ctx context.Context) (string, error) {
	cmd := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", "github.com/paulmach/osm")
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("find the map of Delaware in the Go module cache: %w", err)
	}
	return filepath.Join(strings.TrimSpace(string(out)), "testdata", "delaware-latest.osm.pbf"), nil
}

func importMap(ctx context.Context, path string) (*roadnet.Graph, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	return roadnet.Import(ctx, f, filepath.Base(path), roadnet.ImportOptions{Contraflow: true})
}

// overDelaware gives a set the map of Delaware, and opens it.
func (s *set) overDelaware(ctx context.Context) (*roadnet.Graph, *yardstick, error) {
	var err error
	if s.mapFile, err = delawareMap(ctx); err != nil {
		return nil, nil, err
	}
	g, err := importMap(ctx, s.mapFile)
	if err != nil {
		return nil, nil, err
	}
	return g, newYardstick(g), nil
}

const (
	trafficVehicles = 60
	trafficSeconds  = 1200
	trafficSeed     = 20
)

// trafficSet drives simulated vehicles over Delaware: it needs nothing but this repository and its modules.
func trafficSet(ctx context.Context) (*set, error) {
	s := &set{
		name: "traffic", title: "Delaware: simulated here", richer: true,
		about: fmt.Sprintf("%d vehicles of `internal/traffic` for %d s over all of Delaware, seed %d, thinned to a step. They turn at random at junctions, by the rules, so that no shortest way helps at long steps. The map comes with a Go module: anybody can run this.",
			trafficVehicles, trafficSeconds, trafficSeed),
	}
	g, y, err := s.overDelaware(ctx)
	if err != nil {
		return nil, err
	}
	fleet, err := traffic.New(g, trafficVehicles, trafficSeed)
	if err != nil {
		return nil, err
	}
	var drives []drive
	begin := time.Date(2026, 3, 1, 8, 0, 0, 0, time.UTC)
	for i := range fleet.Vehicles() {
		d := drive{id: fleet.ID(i), net: y}
		for k := range trafficSeconds {
			f := fleet.Drive(i, begin.Add(time.Duration(k)*time.Second), time.Second)
			d.obs = append(d.obs, mapmatch.Observation{Time: f.Time, Point: f.Point, AccuracyM: f.AccuracyM, SpeedMPS: f.SpeedMPS, Heading: f.Heading})
		}
		for _, p := range fleet.Truth(i) {
			d.truth = append(d.truth, mapmatch.Pair{Way: p.Way, From: p.From, To: p.To})
		}
		drives = append(drives, d)
	}
	s.batches = thinned(drives, 1, 10, 30, 60)
	return s, nil
}

// delawareSet reads the drives over Delaware that docs/matcher.md describes: quickest ways by the rules, with drift, stops and wild positions.
func delawareSet(ctx context.Context, folder string) (*set, error) {
	s := &set{
		name: "delaware", title: "Delaware: synthetic drives", richer: true,
		about: "Simulated drives that nothing was tuned on but the price of slow roads: quickest ways by the turn rules, AR(1) drift of 3 to 9 m, stops, 0.3 % wild positions; seeds 5, 6 and 7 (docs/matcher.md).",
		goals: []goal{{1, .9}, {10, 1.2}, {60, 3.7}},
	}
	_, y, err := s.overDelaware(ctx)
	if err != nil {
		return nil, err
	}
	for _, b := range []struct {
		name  string
		stepS float64
	}{{"de_1s", 1}, {"de_10s", 10}, {"de_60s", 60}} {
		drives, err := synthetic(filepath.Join(folder, b.name), y)
		if err != nil {
			return nil, err
		}
		s.batches = append(s.batches, batch{stepS: b.stepS, drives: drives})
	}
	return s, nil
}

// synthetic reads simulated drives: positions in NAME.csv, routes in NAME.route.csv.
func synthetic(base string, y *yardstick) ([]drive, error) {
	all := make(map[string]*drive)
	of := func(id string) *drive {
		if all[id] == nil {
			all[id] = &drive{id: id, net: y}
		}
		return all[id]
	}
	err := table(base+".csv", func(get func(string) string) error {
		ms, err := strconv.ParseInt(get("t_ms"), 10, 64)
		if err != nil {
			return err
		}
		var v [5]float64
		for i, name := range []string{"lon", "lat", "accuracy_m", "speed_mps", "heading_deg"} {
			if v[i], err = strconv.ParseFloat(get(name), 64); err != nil {
				return err
			}
		}
		d := of(get("vehicle"))
		d.obs = append(d.obs, mapmatch.Observation{Time: time.UnixMilli(ms), Point: roadnet.Point{Lon: v[0], Lat: v[1]}, AccuracyM: v[2], SpeedMPS: v[3], Heading: v[4]})
		return nil
	})
	if err != nil {
		return nil, err
	}
	err = table(base+".route.csv", func(get func(string) string) error {
		var v [3]int64
		for i, name := range []string{"way", "from", "to"} {
			var err error
			if v[i], err = strconv.ParseInt(get(name), 10, 64); err != nil {
				return err
			}
		}
		d := of(get("vehicle"))
		d.truth = append(d.truth, mapmatch.Pair{Way: v[0], From: v[1], To: v[2]})
		return nil
	})
	var out []drive
	for _, id := range slices.Sorted(maps.Keys(all)) {
		out = append(out, *all[id])
	}
	return out, err
}
