package mapmatch_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"milepost/internal/mapmatch"
	"milepost/internal/mapmatch/matchtest"
	"milepost/internal/roadnet"
)

// TestEvaluateDelaware holds the matcher to OSRM's mismatch on simulated drives over the whole state: the map is in the test data of a
// module that we depend on, the drives de_1s, de_10s and de_60s are made by the generator of the shared data (see docs/matcher.md)
// in the folder "synthetic" of MILEPOST_SYNTH.
func TestEvaluateDelaware(t *testing.T) {
	dir := os.Getenv("MILEPOST_SYNTH")
	if dir == "" {
		t.Skip("MILEPOST_SYNTH is not set: make it the folder of drives over Delaware that docs/matcher.md describes")
	}
	g := delaware(t)
	lengths, lines := matchtest.Lengths(g), matchtest.NewDrawn(g)
	m, err := mapmatch.New(g, mapmatch.DefaultConfig())
	if err != nil {
		t.Fatal(err)
	}
	for _, set := range []struct {
		name    string
		ceiling float64 // per cent
	}{{"de_1s", .9}, {"de_10s", 1.2}, {"de_60s", 3.7}} {
		o := outcome{lines: lines}
		for _, tr := range synthetic(t, dir, set.name) {
			o.match(t, m, &tr, lengths)
		}
		t.Logf("%-12s %v", set.name, &o)
		if got := 100 * max(o.Mismatch(), o.drawn.Mismatch()); got > set.ceiling {
			t.Errorf("%s: mismatch %.2f %%, want at most %.1f %%", set.name, got, set.ceiling)
		}
	}
}

// delaware is the whole state's map, from the test data of a module that we depend on.
func delaware(tb testing.TB) *roadnet.Graph {
	tb.Helper()
	out, err := exec.CommandContext(tb.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "github.com/paulmach/osm").Output()
	if err != nil {
		tb.Fatal(err)
	}
	return readGraph(tb, filepath.Join(strings.TrimSpace(string(out)), "testdata", "delaware-latest.osm.pbf"))
}
