package main

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"milepost/internal/fleet/catalog"
	"milepost/internal/metrics"
	"milepost/internal/roadnet"
	"milepost/internal/telemetry"
)

// oneRoad is a map of one road.
const oneRoad = `<osm version="0.6"><node id="1" lat="39.6" lon="-75.7"/><node id="2" lat="39.61" lon="-75.7"/>
<way id="5"><nd ref="1"/><nd ref="2"/><tag k="highway" v="residential"/></way></osm>`

const smallCatalog = `version = 1
[[region]]
id = "north"
graph = "north.osm"
coverage = ["dr41"]
resource_class = "big"
`

// smallReloader is a reloader of a catalog with one small region; taken gets the versions that came into force.
func smallReloader(t *testing.T, log *slog.Logger) (r *reloader, file string, taken *[]int64, counted map[string]int) {
	t.Helper()
	dir := t.TempDir()
	file = filepath.Join(dir, "regions.toml")
	for name, text := range map[string]string{file: smallCatalog, filepath.Join(dir, "north.osm"): oneRoad} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	serves, err := loadTerritory(t.Context(), &serviceOptions{catalog: file}, log)
	if err != nil {
		t.Fatal(err)
	}
	r = newReloader(file, "", serves, log)
	t.Cleanup(r.close)
	taken, counted = new([]int64), map[string]int{}
	r.fits, r.at = (&matcherOptions{region: "north", resourceClass: "big"}).fits, func([32]byte) *roadnet.Graph { return nil }
	r.count = func(outcome string) { counted[outcome]++ }
	r.use = func(_ context.Context, t *territory) error {
		*taken = append(*taken, t.version())
		return nil
	}
	r.ready.Store(true)
	return r, file, taken, counted
}

// A7, F29: a matcher takes the catalogs that a worker takes and refuses what a worker refuses, and one that has no work for it any more: without
// its region, or for another kind of machine. What is refused changes nothing.
func TestReloaderOfMatcher(t *testing.T) {
	r, file, taken, counted := smallReloader(t, slog.New(slog.DiscardHandler))
	expect := func(outcome string, version int64, says string) {
		t.Helper()
		got := r.reload(t.Context())
		if got.Outcome != outcome || got.Version != version || got.Regions != 1 || !strings.Contains(got.Error, says) {
			t.Errorf("got %+v, want %s, version %d, %q", got, outcome, version, says)
		}
	}
	expect(metrics.ReloadUnchanged, 1, "")
	rewritten(t, file, "version = 1", "version = 2", `"big"`, `"small"`)
	expect(metrics.ReloadRefused, 1, "resource class small, this one is of big")
	rewritten(t, file, `"small"`, `"big"`, `"north"`, `"south"`)
	expect(metrics.ReloadRefused, 1, "no region north")
	rewritten(t, file, `"south"`, `"north"`, "north.osm", "gone.osm")
	expect(metrics.ReloadRefused, 1, "gone.osm")
	rewritten(t, file, "gone.osm", "north.osm")
	expect(metrics.ReloadTaken, 2, "")
	r.use = func(context.Context, *territory) error { return errors.New("no room for another map") }
	rewritten(t, file, "version = 2", "version = 3")
	expect(metrics.ReloadRefused, 2, "no room for another map")
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	expect(metrics.ReloadRefused, 2, "no such file")
	if d := cmp.Diff([]int64{2}, *taken); d != "" {
		t.Errorf("taken (-want +got):\n%s", d)
	}
	if d := cmp.Diff(map[string]int{metrics.ReloadUnchanged: 1, metrics.ReloadRefused: 5, metrics.ReloadTaken: 1}, counted); d != "" {
		t.Errorf("counted (-want +got):\n%s", d)
	}
	without := newReloader("", "", &territory{}, slog.New(slog.DiscardHandler))
	defer without.close()
	without.count = r.count
	if got := without.reload(t.Context()); got.Outcome != metrics.ReloadRefused || !strings.Contains(got.Error, "no --catalog") {
		t.Errorf("without a catalog: %+v", got)
	}
}

// A7: a matcher starts only for a region that its catalog has, on the kind of machine that this wants.
func TestMatcherFits(t *testing.T) {
	c := &catalog.Catalog{Regions: []catalog.Region{{ID: "a", ResourceClass: "standard"}, {ID: "b", ResourceClass: "big"}}}
	for _, l := range []struct{ region, class, want string }{
		{"a", "", ""}, {"b", "", ""}, {"a", "standard", ""}, {"b", "standard", "wants matchers of resource class big"}, {"c", "", "no region c"},
	} {
		err := (&matcherOptions{region: l.region, resourceClass: l.class}).fits(c)
		if got := errText(err); !strings.Contains(got, l.want) || (got == "") != (l.want == "") {
			t.Errorf("%s on %q: %q, want %q", l.region, l.class, got, l.want)
		}
	}
	file, _ := example(t)
	got := orchestrator(t, "", "matcher", "--catalog", file, "--region", "north", "--resource-class", "big")
	if got.code != exitUsage || !strings.Contains(got.err, "region north wants matchers of resource class standard") {
		t.Errorf("a matcher of another class: %+v", got)
	}
	if got = orchestrator(t, "", "matcher", "--map", "x", "--resource-class", "big"); got.code != exitUsage || !strings.Contains(got.err, "needs --catalog") {
		t.Errorf("a class without a catalog: %+v", got)
	}
}

func errText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// A20, F31: the operators' token opens the reload to whoever has it and to nobody else; the token is in no log line and no answer.
func TestReloadByToken(t *testing.T) {
	var lines bytes.Buffer
	log := slog.New(slog.NewTextHandler(&lines, &slog.HandlerOptions{Level: slog.LevelDebug}))
	r, file, taken, _ := smallReloader(t, log)
	token := filepath.Join(t.TempDir(), "operator.token")
	for path, text := range map[string]string{token: "s3cret-token\n", token + ".other": "another"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	server, err := telemetry.Listen("127.0.0.1:0", prometheus.NewRegistry(), func() error { return nil }, log)
	if err != nil {
		t.Fatal(err)
	}
	server.Handle("POST /catalog/reload", telemetry.Operators{TokenFile: token}.Only(r.serve))
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- server.Run(ctx) }()
	defer func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()
	rewritten(t, file, "version = 1", "version = 2")
	ask := func(code int, says string, more ...string) {
		t.Helper()
		got := orchestrator(t, "", append([]string{"catalog", "reload", "--address", server.Address()}, more...)...)
		if got.code != code || !strings.Contains(got.out+got.err, says) || strings.Contains(got.out+got.err, "s3cret") {
			t.Errorf("%q: %+v, want %d and %q", more, got, code, says)
		}
	}
	ask(exitFailed, "401 Unauthorized: this wants the operators' bearer token")
	ask(exitFailed, "401 Unauthorized", "--operator-token-file", token+".other")
	ask(exitUsage, "no such file", "--operator-token-file", token+".none")
	if len(*taken) != 0 {
		t.Fatalf("without the token version %v was taken", *taken)
	}
	ask(exitDone, "taken: version 2, 1 region", "--operator-token-file", token)
	r.ready.Store(false)
	ask(exitFailed, "503 Service Unavailable: starting", "--operator-token-file", token)
	if strings.Contains(lines.String(), "s3cret") {
		t.Errorf("the log has the token:\n%s", lines.String())
	}
	for _, verb := range []string{"run", "matcher"} {
		got := orchestrator(t, "", verb, "--dsn", "x", "--map", "y", "--operator-token-file", token+".none")
		if verb == "matcher" {
			got = orchestrator(t, "", verb, "--map", "y", "--operator-token-file", token+".none")
		}
		if got.code != exitUsage || !strings.Contains(got.err, "--operator-token-file: read the token in operator.token.none: no such file") {
			t.Errorf("%s without its token file: %+v", verb, got)
		}
	}
}
