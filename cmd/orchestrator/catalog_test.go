package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"milepost/internal/audit"
	"milepost/internal/devstack"
	"milepost/internal/fleet"
	"milepost/internal/mapmatch"
	"milepost/internal/mapmatch/matchtest"
	"milepost/internal/metrics"
	"milepost/internal/partition"
	"milepost/internal/publish"
	"milepost/internal/roadnet"
	"milepost/internal/stream"
)

// example copies the shipped catalog beside a link to Delaware's map.
func example(t *testing.T) (file, roadMap string) {
	t.Helper()
	roadMap, err := devstack.DelawareMap(t.Context(), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Skipf("no road map: %v", err)
	}
	text, err := os.ReadFile(filepath.FromSlash("../../deploy/catalog/delaware.toml"))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.Symlink(roadMap, filepath.Join(dir, "delaware-latest.osm.pbf")); err != nil {
		t.Fatal(err)
	}
	file = filepath.Join(dir, "delaware.toml")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return file, roadMap
}

func rewritten(t *testing.T, file string, pairs ...string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(pairs); i += 2 {
		if !strings.Contains(string(text), pairs[i]) {
			t.Fatalf("%s is not in the catalog", pairs[i])
		}
	}
	if err := os.WriteFile(file, []byte(strings.NewReplacer(pairs...).Replace(string(text))), 0o600); err != nil {
		t.Fatal(err)
	}
}

// A7, V3: catalog check says what is wrong by line, and imports the maps where it is asked to; show prints table, JSON and GeoJSON.
func TestCatalogVerbs(t *testing.T) {
	file, _ := example(t)
	if got := orchestrator(t, "", "catalog", "check", file); got.code != exitDone || got.out != "version 1, 3 regions: good\n" {
		t.Errorf("check: %+v", got)
	}
	got := orchestrator(t, "", "catalog", "check", "--maps", "--json", file)
	var good checked
	if err := json.Unmarshal([]byte(got.out), &good); err != nil || got.code != exitDone || len(good.Regions) != 3 || len(good.Problems) != 0 {
		t.Fatalf("check --maps: %v, %+v", err, got)
	}
	if n, c, r := good.Regions[0].Edges, good.Regions[1].Edges, good.Regions[2].Edges; n < 50_000 || c < 50_000 || r < n || r < c {
		t.Errorf("edges of the regions: %+v", good.Regions)
	}
	got = orchestrator(t, "", "catalog", "show", "--format", "geojson", file)
	var shapes featureCollection
	if err := json.Unmarshal([]byte(got.out), &shapes); err != nil || len(shapes.Features) != 22+3+6+4 {
		t.Errorf("show --format geojson: %v, %d features", err, len(shapes.Features))
	}
	got = orchestrator(t, "", "catalog", "show", "--json", file)
	if !strings.Contains(got.out, `"id":"coast","graph":"delaware-latest.osm.pbf","bbox":[-75.94,38.49,-74.88,39.38],"coverage":["dqfq","dqfs"]`) {
		t.Errorf("show --json: %+v", got)
	}
	if got = orchestrator(t, "", "catalog", "show", file); !strings.Contains(got.out, "coast   delaware-latest.osm.pbf") {
		t.Errorf("show: %+v", got)
	}
	if got = orchestrator(t, "", "catalog", "show", "--format", "png", file); got.code != exitUsage {
		t.Errorf("show --format png: %+v", got)
	}
	rewritten(t, file, "version = 1", "version = 0", `"dr40", "dr43"`, `"dr41", "dr43"`, "delaware-latest.osm.pbf", "nowhere.pbf")
	got = orchestrator(t, "", "catalog", "check", "--json", file)
	var bad checked
	if err := json.Unmarshal([]byte(got.out), &bad); err != nil || got.code != exitFailed || len(bad.Problems) != 2 || bad.Problems[0].Line != 13 {
		t.Errorf("check of a bad one: %v, %+v", err, got)
	}
	if got = orchestrator(t, "", "run", "--dsn", "x", "--catalog", file); got.code != exitFailed || !strings.Contains(got.err, "delaware.toml:13: version must be") {
		t.Errorf("run with a bad one: %+v", got)
	}
	rewritten(t, file, "version = 0", "version = 1", `"dr41", "dr43"`, `"dr40", "dr43"`)
	if got = orchestrator(t, "", "catalog", "check", file); got.code != exitFailed || strings.Count(got.err, "no map nowhere.pbf: no such file") != 3 {
		t.Errorf("check without maps there: %+v", got)
	}
	if got = orchestrator(t, "", "catalog", "check", "--maps", file); got.code != exitFailed || strings.Count(got.err, "nowhere.pbf") != 3 {
		t.Errorf("check without maps there: %+v", got)
	}
	if got = orchestrator(t, "", "run", "--dsn", "x", "--catalog", file, "--map", "y"); got.code != exitUsage || !strings.Contains(got.err, "exclude each other") {
		t.Errorf("run with both: %+v", got)
	}
}

// A7, A11, F29: while vehicles drive on the embedded stack, bad catalogs change nothing and a good one moves them to another graph: nothing
// is lost, nothing comes twice, and nothing that was announced is taken back.
func TestCatalogRollOver(t *testing.T) {
	if testing.Short() {
		t.Skip("drives for some seconds")
	}
	file, roadMap := example(t)
	log := slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn}))
	o := devOptions{vehicles: 60, interval: 250 * time.Millisecond, seed: 3, drain: 30 * time.Second, partitions: 4}
	o.service.listen, o.service.lanes, o.service.maxRecordBytes = "127.0.0.1:0", 3, 1_000_012
	o.service.catalog, o.service.log = file, logOptions{format: "text", level: "warn"}
	graph, err := loadMap(t.Context(), roadMap, "", log)
	if err != nil {
		t.Fatal(err)
	}
	serves, err := loadTerritory(t.Context(), &o.service, log)
	if err != nil {
		t.Fatal(err)
	}
	stop, err := devStores(t.Context(), &o, true, log, t.Logf)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := stop(); err != nil {
			t.Error(err)
		}
	}()
	job, err := newDevJob(o, graph, serves, log)
	if err != nil {
		t.Fatal(err)
	}
	var retracted, unserved int
	var moved atomic.Int64
	topics := publish.Topics{Prefix: job.opts.service.prefix}
	job.auditor = audit.New(audit.Config{
		Client: job.client, Raw: job.opts.service.raw, Outputs: []string{topics.Matched(), topics.DeadLetter()},
		Each: func(r *kgo.Record) {
			e, err := fleet.DecodeEvent(r.Value)
			if err != nil {
				t.Error(err)
				return
			}
			if e.Reset != nil && e.Reset.Reason == fleet.ResetGraphChange {
				moved.Add(1)
			}
			if e.Retracted != nil {
				retracted++
			}
			if e.Disposition == fleet.TerminalUnsupported {
				unserved++
			}
			if err := job.routes.apply(r.Value); err != nil {
				t.Error(err)
			}
		},
	})
	ctx, enough := context.WithCancel(t.Context())
	defer enough()
	reloaded := make(chan error, 1) // capacity 1: sent once
	job.built = func(s *service) {
		go func() {
			defer enough()
			err := rollOver(t, s, file)
			if err == nil {
				err = waitFor(t, "15 vehicles on another graph and 1000 observations done", func(ctx context.Context) bool {
					done, err := counted(ctx, s.server.Address(), "milepost_committed_total")
					return err == nil && done >= 1000 && moved.Load() >= 15
				})
			}
			reloaded <- err
		}()
	}
	f, err := job.run(ctx, newScreen(streams{out: t.Output(), err: t.Output()}, devOptions{asJSON: true}))
	if err != nil {
		t.Fatal(err)
	}
	if err := <-reloaded; err != nil {
		t.Fatal(err)
	}
	if f.Observations < 1000 || f.Outputs != f.Observations || f.Lost+f.Repeated+f.Disordered+f.Foreign != 0 || f.PreparedLeft != 0 || f.FrontierLag != 0 {
		t.Errorf("figures: %+v", f)
	}
	if moved.Load() < 15 || retracted != 0 || unserved != 0 {
		t.Errorf("%d vehicles moved to another graph, %d retractions, %d observations unserved", moved.Load(), retracted, unserved)
	}
}

// rollOver asks for catalogs that are not taken, then for one that gives the rest of the state another map.
func rollOver(t *testing.T, s *service, file string) error {
	t.Helper()
	err := waitFor(t, "every vehicle to have driven some way", func(ctx context.Context) bool {
		done, err := counted(ctx, s.server.Address(), "milepost_committed_total")
		return err == nil && done >= 600
	})
	if err != nil {
		return err
	}
	ask := func(code int, outcome string, version int64) error {
		got := orchestrator(t, "", "catalog", "reload", "--json", "--address", s.server.Address())
		var out reloadOutcome
		if err := json.Unmarshal([]byte(got.out), &out); err != nil || got.code != code || out.Outcome != outcome || out.Version != version {
			return fmt.Errorf("reload: %w, %+v, want %s with version %d", err, got, outcome, version)
		}
		return nil
	}
	if err := ask(exitDone, metrics.ReloadUnchanged, 1); err != nil {
		return err
	}
	rewritten(t, file, "lanes = 4", "lanes = 5")
	if err := ask(exitFailed, metrics.ReloadRefused, 1); err != nil { // no higher version
		return err
	}
	rewritten(t, file, "version = 1", "version = 2", `"dqfq"`, `"dqfx!"`)
	if err := ask(exitFailed, metrics.ReloadRefused, 1); err != nil { // not good
		return err
	}
	rewritten(t, file, `"dqfx!"`, `"dqfq"`, `graph = "delaware-latest.osm.pbf" # all of it`, "graph = \"delaware-latest.osm.pbf\"\nbbox = [-76, 38.3, -75.06, 39.95]")
	if err := ask(exitDone, metrics.ReloadTaken, 2); err != nil {
		return err
	}
	return says(t, s.server.Address(), "milepost_catalog_version 2\n", "milepost_graphs 4\n",
		`milepost_catalog_reloads_total{outcome="refused"} 2`, `milepost_admission_jobs{region="rest"}`)
}

// says waits until the metrics say everything: a region is there with its first job.
func says(t *testing.T, address string, wants ...string) error {
	t.Helper()
	return waitFor(t, fmt.Sprintf("the metrics to say %q", wants), func(ctx context.Context) bool {
		text, err := scraped(ctx, address)
		return err == nil && !slices.ContainsFunc(wants, func(want string) bool { return !strings.Contains(text, want) })
	})
}

// waitFor looks again and again until a condition holds; the bound is for a machine that does not get on at all.
func waitFor(t *testing.T, what string, cond func(ctx context.Context) bool) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	for !cond(ctx) {
		select {
		case <-ctx.Done():
			return fmt.Errorf("waited in vain for %s: %w", what, ctx.Err())
		case <-ticker.C:
		}
	}
	return nil
}

// counted reads a counter without labels.
func counted(ctx context.Context, address, name string) (float64, error) {
	text, err := scraped(ctx, address)
	if err != nil {
		return 0, err
	}
	_, rest, ok := strings.Cut(text, "\n"+name+" ")
	if !ok {
		return 0, fmt.Errorf("there is no %s", name)
	}
	value, _, _ := strings.Cut(rest, "\n")
	return strconv.ParseFloat(value, 64)
}

func scraped(ctx context.Context, address string) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/metrics", http.NoBody)
	if err != nil {
		return "", err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", err
	}
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	return string(text), err
}

// A7: two vehicles cross the shipped example's borders, 100 km each way between Newark and Lewes. Each changes its region once, in the other
// direction elsewhere, for the overlaps keep it; the whole way is known from its events.
func TestDriveExample(t *testing.T) {
	file, _ := example(t)
	o := serviceOptions{catalog: file}
	serves, err := loadTerritory(t.Context(), &o, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	cfg := fleet.DefaultConfig()
	cfg.Group, cfg.MatchedTopic, cfg.DeadLetterTopic = "g", "m", "d"
	w, err := fleet.New(cfg, serves.atlas)
	if err != nil {
		t.Fatal(err)
	}
	pools, err := fleet.NewPools(fleet.PoolsConfig{Solvers: 1, Queue: 1, Matcher: mapmatch.DefaultConfig()})
	if err != nil {
		t.Fatal(err)
	}
	if err := pools.Use(serves.graphs, time.Now()); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	var done sync.WaitGroup
	done.Go(func() { _ = pools.Run(ctx) })
	defer done.Wait()
	defer stop()
	newark, lewes := roadnet.Point{Lon: -75.7497, Lat: 39.6837}, roadnet.Point{Lon: -75.1394, Lat: 38.7746}
	whole := serves.graphs[2]
	for name, c := range map[string]struct {
		from, to roadnet.Point
		regions  string
	}{"south": {newark, lewes, "north rest"}, "north": {lewes, newark, "coast rest"}} {
		t.Run(name, func(t *testing.T) {
			fixes, truth := journey(t, whole, c.from, c.to)
			got := ride(t, w, pools, fixes)
			if r := strings.Join(got.regions, " "); r != c.regions || got.moves != 1 || got.retracted != 0 {
				t.Errorf("regions %s, want %s; %d moves, %d retractions", r, c.regions, got.moves, got.retracted)
			}
			var score matchtest.Score
			score.Add(matchtest.RouteMismatch(truth, got.track.Pairs(), matchtest.Lengths(whole)))
			if len(fixes) < 300 || score.Mismatch() > 0.02 {
				t.Errorf("%d observations, route mismatch %v", len(fixes), score.Mismatch())
			}
		})
	}
}

// journey is the fastest way between two places: a fix every 10 s, and the node pairs driven.
func journey(t *testing.T, g *roadnet.Graph, from, to roadnet.Point) (fixes []fleet.Fix, truth []mapmatch.Pair) {
	t.Helper()
	a, b := g.Near(nil, from, 300), g.Near(nil, to, 300)
	if len(a) == 0 || len(b) == 0 {
		t.Fatal("no road there")
	}
	path, _, ok := roadnet.NewRouter(g).Route(nil, a[0].Edge, b[0].Edge)
	if !ok {
		t.Fatal("no way")
	}
	const step = 10_000 // milliseconds
	at, due := int64(0), int64(0)
	for _, e := range path {
		edge, took := g.Edge(e), int64(max(g.Millis(e), 1))
		for ; due < at+took; due += step {
			p, bearing := g.At(e, int32(int64(edge.LengthCM)*(due-at)/took))
			fixes = append(fixes, fleet.Fix{Observation: mapmatch.Observation{
				Time: time.UnixMilli(1_700_000_000_000 + due).UTC(), Point: p, AccuracyM: 5, SpeedMPS: math.NaN(), Heading: bearing,
			}})
		}
		at += took
		shape := g.Shape(nil, e)
		for i := 1; i < len(shape); i++ {
			truth = append(truth, mapmatch.Pair{Way: edge.Way, From: shape[i-1].Node, To: shape[i].Node})
		}
	}
	return fixes, truth
}

// ridden is what a ride's events say.
type ridden struct {
	track            fleet.Track
	regions          []string // in the order of their first job
	moves, retracted int
}

// ride takes one vehicle's fixes through the workload, as a partition does.
func ride(t *testing.T, w *fleet.Workload, pools *fleet.Pools, fixes []fleet.Fix) (r ridden) {
	t.Helper()
	var key partition.KeyState
	for i := range fixes {
		rec := &stream.Record{Key: []byte("v"), Value: fleet.AppendFix(nil, &fixes[i]), Offset: int64(i)}
		obs, err := w.Decode(rec)
		if err != nil {
			t.Fatal(err)
		}
		obs.Identity.Revision = stream.Revision{Generation: 1, Offset: int64(i)}
		opening := w.Open(key, obs)
		if opening.Request == nil {
			t.Fatalf("observation %d at %v is decided without a solver: %+v", i, fixes[i].Point, opening.Local)
		}
		if !slices.Contains(r.regions, opening.Region) {
			r.regions = append(r.regions, opening.Region)
		}
		type answer struct {
			d   partition.Decision
			err error
		}
		got := make(chan answer, 1)
		if !pools.Submit(opening.Request, func(d partition.Decision, err error) { got <- answer{d, err} }) {
			t.Fatal("no room")
		}
		a := <-got
		if a.err != nil {
			t.Fatal(a.err)
		}
		e, next, err := w.Apply(key, obs, a.d)
		if err != nil {
			t.Fatal(err)
		}
		if e.Reset != nil {
			r.moves++
			if e.Reset.Reason != fleet.ResetGraphChange || e.Closed == nil {
				t.Errorf("observation %d: %+v, closed %t", i, e.Reset, e.Closed != nil)
			}
		}
		if e.Retracted != nil {
			r.retracted++
		}
		r.track.Apply(&e)
		key.Checkpoint = next
	}
	return r
}
