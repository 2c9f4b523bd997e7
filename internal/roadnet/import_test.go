package roadnet_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"milepost/internal/roadnet"
)

// module returns the folder of the OSM module in the module cache, which holds two real maps.
func module(tb testing.TB) string {
	tb.Helper()
	out, err := exec.CommandContext(tb.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "github.com/paulmach/osm").Output()
	dir := strings.TrimSpace(string(out))
	if err != nil || dir == "" {
		tb.Skipf("the OSM module is not in the module cache: %v", err)
	}
	return filepath.Join(dir, "testdata")
}

func load(tb testing.TB, file string, opt roadnet.ImportOptions) *roadnet.Graph {
	tb.Helper()
	f, err := os.Open(file)
	if err != nil {
		tb.Fatal(err)
	}
	defer f.Close()
	g, err := roadnet.Import(tb.Context(), f, file, opt)
	if err != nil {
		tb.Fatal(err)
	}
	return g
}

// Every map at hand imports, and says what it left (M28, M30, M33).
func TestImportMaps(t *testing.T) {
	dir := os.Getenv("MILEPOST_DATA")
	if dir == "" {
		t.Skip("MILEPOST_DATA is not set")
	}
	files, err := filepath.Glob(filepath.Join(dir, "maps", "*.osm.*"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no maps: %v", err)
	}
	for _, f := range files {
		t.Run(filepath.Base(f), func(t *testing.T) {
			g := load(t, f, roadnet.ImportOptions{})
			t.Logf("%d edges, %d nodes, %+v", g.Edges(), g.Nodes(), g.Stats())
		})
	}
}

func TestImportDelaware(t *testing.T) {
	g := load(t, filepath.Join(module(t), "delaware-latest.osm.pbf"), roadnet.ImportOptions{})
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	sw, ne := g.Bounds()
	t.Logf("%d edges, %d nodes, %d MB, %v %v %+v", g.Edges(), g.Nodes(), m.HeapAlloc>>20, sw, ne, g.Stats())
}
