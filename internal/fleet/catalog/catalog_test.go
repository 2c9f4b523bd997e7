package catalog

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

const good = `# comments are fine
version = 7

[[region]]
id = "b"
graph = 'maps/b.osm.pbf'
bbox = [-76, 38.5, -75, 40.25]
coverage = [
  "dr41", # with a comment
  "dr44",
]
overlap = ["dr40", "dr46"]
lanes = 0x10
resource_class = "big"
min_replicas = 2
max_replicas = 1_6
freshness_budget = "1m30s"
max_jobs = 10
max_bytes = 1000

[[region]]
id = "a"
graph = "a.osm"
coverage = ["dr46"]
overlap = ["dr41", "dr40"]
`

func cells(t *testing.T, names ...string) []Cell {
	t.Helper()
	var out []Cell
	for _, n := range names {
		c, err := ParseCell(n)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, c)
	}
	return out
}

// A7: a whole catalog says what its file says, with defaults for what it leaves out; owner and overlaps by cell, the lowest id first.
func TestParse(t *testing.T) {
	c, err := Parse("some/where/regions.toml", []byte(good))
	if err != nil {
		t.Fatal(err)
	}
	want := &Catalog{Version: 7, Regions: []Region{
		{
			ID: "b", Graph: "maps/b.osm.pbf", Box: &Box{-76, 38.5, -75, 40.25}, Coverage: cells(t, "dr41", "dr44"), Overlap: cells(t, "dr40", "dr46"),
			Lanes: 16, ResourceClass: "big", MinReplicas: 2, MaxReplicas: 16, FreshnessBudget: 90 * time.Second, MaxJobs: 10, MaxBytes: 1000,
		},
		{
			ID: "a", Graph: "a.osm", Coverage: cells(t, "dr46"), Overlap: cells(t, "dr41", "dr40"),
			ResourceClass: "standard", MinReplicas: 1, MaxReplicas: 1,
		},
	}}
	if d := cmp.Diff(want, c, cmpopts.IgnoreUnexported(Catalog{})); d != "" {
		t.Error(d)
	}
	for _, l := range []struct {
		cell     string
		owner    int
		overlaps []int
	}{{"dr41", 0, []int{1}}, {"dr44", 0, nil}, {"dr46", 1, []int{0}}, {"dr40", -1, []int{1, 0}}, {"u33d", -1, nil}} {
		cell := cells(t, l.cell)[0]
		owner, ok := c.Owner(cell)
		if !ok {
			owner = -1
		}
		if d := cmp.Diff(l.overlaps, c.Overlaps(cell)); owner != l.owner || d != "" {
			t.Errorf("%s: owner %d, want %d; overlaps: %s", l.cell, owner, l.owner, d)
		}
	}
}

// A7: everything that is wrong is said at once, each with its line; nothing is passed over.
func TestProblems(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"empty": {"", "f: version is missing: a whole number that grows with each change\nf: there is no [[region]]"},
		"all of a kind": {`verson = 1
version = 0
[[region]]
id = "A B"
coverage = ["dr41", "dr4", "dr41", 7]
overlap = ["dr41", "dra1"]
speed = 3
[[region]]
id = "b"
graph = " "
coverage = []
lanes = 0
min_replicas = 3
max_replicas = 2
freshness_budget = "soon"
bbox = [1, 2, 3]
max_jobs = "many"
[[region]]
id = "b"
graph = "x"
coverage = ["dr41"]
bbox = [2, 1, 1, 2]
freshness_budget = 5
[[region]]
id = "all"
lanes = 2
min_replicas = 3
graph = 5
coverage = "dr45"
[server]
x = 1
[[region.more]]
y = 1
`, `f:1: unknown setting verson outside the regions: only version stands there
f:2: version must be a whole number from 1
f:3: the region has no graph
f:4: id "A B" must be 1 to 63 of a-z, 0-9 and -, for topics and labels are named after it
f:5: coverage: cell "dr4" is not a geohash of 4 characters
f:5: coverage: cell dr41 is there twice
f:5: coverage must hold texts: geohash cells of 4 characters
f:6: overlap: cell "dra1" is not a geohash: it has no character 'a' (they are 0123456789bcdefghjkmnpqrstuvwxyz)
f:6: overlap cell dr41 is the region's own coverage, in line 5
f:7: unknown setting speed (a region has id, graph, bbox, coverage, overlap, lanes, resource_class, min_replicas, max_replicas, freshness_budget, max_jobs, max_bytes)
f:10: graph must be a text
f:11: coverage must be a list of geohash cells
f:12: lanes is 0, must be at least 1
f:14: max_replicas is 2, below min_replicas 3
f:15: freshness_budget must be a duration above 0, such as "5s" or "250ms"
f:16: bbox must be four numbers: west, south, east, north
f:17: max_jobs must be a whole number
f:19: region "b" is there already, in line 9
f:21: cell dr41 is covered by region "A B" already, in line 5
f:22: bbox must be west < east within 180 and south < north within 90 degrees
f:23: freshness_budget must be a duration above 0, such as "5s" or "250ms"
f:25: id "all" stands for all regions together
f:26: lanes is 2, below max_replicas 3: a replica more than there are lanes would get nothing to do
f:28: graph must be a text
f:29: coverage must be a list of geohash cells
f:30: unknown table server: regions are [[region]] tables
f:32: unknown table region.more: regions are [[region]] tables`},
		"not TOML":         {"version = 1\n[[region]\n", "f:2: not TOML: "},
		"a key twice":      {good + "id = \"c\"\n", "f:26: id is given twice, first in line 22"},
		"version twice":    {"version = 1\n" + good, "f:3: version is given twice, first in line 1"},
		"dotted":           {good + "lanes.of = 3\n", "f:26: unknown setting lanes.of (a region has id, graph"},
		"inline region":    {"version = 1\nregion = [{id = \"a\"}]\n", "f: there is no [[region]]\nf:2: unknown setting region outside the regions: only version stands there"},
		"one table region": {"version = 1\n[region]\nid = \"a\"\n", "f: there is no [[region]]\nf:2: unknown table region: regions are [[region]] tables"},
	} {
		_, err := Parse("dir/f", []byte(c.text))
		bad := (*Error)(nil)
		if !errors.As(err, &bad) {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got := err.Error(); !strings.HasPrefix(got, c.want) || strings.Count(got, "\n") != strings.Count(c.want, "\n") && !strings.HasPrefix(name, "not") {
			t.Errorf("%s: (-want +got)\n%s", name, cmp.Diff(c.want, got))
		}
	}
}

// A7: the shipped example is good, and every one of its cells is some region's.
func TestExample(t *testing.T) {
	text, err := os.ReadFile(filepath.FromSlash("../../../deploy/catalog/delaware.toml"))
	if err != nil {
		t.Fatal(err)
	}
	c, err := Parse("delaware.toml", text)
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Regions) != 3 {
		t.Errorf("%d regions, want 3", len(c.Regions))
	}
	for _, r := range c.Regions {
		for _, cell := range r.Overlap {
			if _, ok := c.Owner(cell); !ok {
				t.Errorf("overlap cell %s of %s has no owner", cell, r.ID)
			}
		}
	}
}

// A7, M25: cells by the published algorithm, also at the edges of the world; a cell holds the places that it is the cell of.
func TestCells(t *testing.T) {
	for _, c := range []struct {
		lon, lat float64
		want     string
	}{
		{10.40744, 57.64911, "u4pr"},
		{-5.6, 42.6, "ezs4"},
		{-75.75, 39.68, "dr41"},
		{-75.52, 39.16, "dqfq"},
		{0, 0, "s000"},
		{-180, -90, "0000"},
		{180, 90, "zzzz"},
		{-180, 90, "bpbp"},
		{180, -90, "pbpb"},
		{-1e-9, -1e-9, "7zzz"},
	} {
		if got := CellAt(c.lon, c.lat).String(); got != c.want {
			t.Errorf("(%v, %v) is in %s, want %s", c.lon, c.lat, got, c.want)
		}
	}
	for c := Cell(0); c < 1<<20; c += 617 {
		w, s, e, n := c.Bounds()
		if back, err := ParseCell(c.String()); err != nil || back != c {
			t.Fatalf("%s is parsed to %s, %v", c, back, err)
		}
		for _, p := range [][2]float64{{w, s}, {(w + e) / 2, (s + n) / 2}, {math.Nextafter(e, w), math.Nextafter(n, s)}} {
			if got := CellAt(p[0], p[1]); got != c {
				t.Fatalf("%v is in %s, want %s", p, got, c)
			}
		}
	}
}

// A7: whatever the bytes are, there is a whole catalog or an error with lines of the file.
func FuzzParse(f *testing.F) {
	f.Add(good)
	f.Add("version = 1\n[[region]]\nid=\"a\"\ngraph=\"g\"\ncoverage=[[\"dr41\"], {a=1}, 1e5, 1979-05-27, true]\n")
	f.Fuzz(func(t *testing.T, text string) {
		c, err := Parse("f", []byte(text))
		if err != nil {
			bad := (*Error)(nil)
			if !errors.As(err, &bad) || len(bad.Problems) == 0 {
				t.Fatalf("error %v", err)
			}
			for _, p := range bad.Problems {
				if p.Line < 0 || p.Line > strings.Count(text, "\n")+1 {
					t.Errorf("line %d of %d: %s", p.Line, strings.Count(text, "\n")+1, p.Text)
				}
			}
			return
		}
		if len(c.Regions) == 0 || c.Version < 1 {
			t.Fatalf("a catalog without regions: %+v", c)
		}
		owners := map[Cell]string{}
		for n, r := range c.Regions {
			for _, cell := range r.Coverage {
				if owners[cell] != "" {
					t.Errorf("%s is covered by %s and %s", cell, owners[cell], r.ID)
				}
				owners[cell] = r.ID
				if got, _ := c.Owner(cell); got != n {
					t.Errorf("owner of %s is %d, want %d", cell, got, n)
				}
			}
			for _, cell := range r.Overlap {
				if owner, ok := c.Owner(cell); ok && owner == n {
					t.Errorf("%s overlaps its own cell %s", r.ID, cell)
				}
			}
		}
	})
}
