package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"milepost/internal/roadnet"
)

// A graph file matches as its extract does, byte for byte; building it again gives the same file; info and check agree on it (M44: the hash
// in every output is that of the map, however it was loaded).
func TestGraphFile(t *testing.T) {
	extract := mapFile(t)
	file := filepath.Join(t.TempDir(), "crossroads.graph")
	got := orchestrator(t, "", "graph", "build", extract, "-o", file)
	if got.code != 0 || !strings.HasPrefix(got.out, "crossroads.graph: 6 edges, 4 nodes, 0 restrictions, ") {
		t.Fatalf("build: %+v", got)
	}
	first, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	got = orchestrator(t, "", "graph", "build", extract, "--output", file, "--json")
	var built description
	if err := json.Unmarshal([]byte(got.out), &built); err != nil || built.Edges != 6 || built.Bytes != int64(len(first)) || built.Vehicles != "car" {
		t.Errorf("build --json: %+v, %v", got, err)
	}
	if again, err := os.ReadFile(file); err != nil || !bytes.Equal(first, again) {
		t.Errorf("built twice, two files: %v", err)
	}
	for _, args := range [][]string{{"--format", "json"}, {"--format", "csv"}, {"--route"}} {
		args = append([]string{"match", "--input", "csv", "-"}, args...)
		fromExtract := orchestrator(t, trip, append(args, "--map", extract)...)
		fromFile := orchestrator(t, trip, append(args, "--map", file)...)
		if fromFile.code != 0 || fromFile.out != fromExtract.out || fromFile.out == "" {
			t.Errorf("%v: %+v, from the extract %+v", args, fromFile, fromExtract)
		}
	}
	for _, name := range []string{file, extract} {
		var d description
		got = orchestrator(t, "", "graph", "info", name, "--json")
		if err := json.Unmarshal([]byte(got.out), &d); err != nil || d.Graph != built.Graph || d.Stats.Ways != 2 || d.Largest["car"] != 1 {
			t.Errorf("info %s: %+v, %v", filepath.Base(name), got, err)
		}
	}
	if got = orchestrator(t, "", "graph", "info", file); got.code != 0 || !strings.Contains(got.out, built.Graph) || !strings.Contains(got.out, "largest piece, car  100.00 %") {
		t.Errorf("info: %+v", got)
	}
	if got = orchestrator(t, "", "graph", "check", file, "--map", extract); got.code != 0 || got.out != "crossroads.graph: sound, 6 edges\n" {
		t.Errorf("check: %+v", got)
	}
}

// check finds a file that is damaged or of another map, and lists what is odd about an extract with the object's name.
func TestGraphCheck(t *testing.T) {
	dir := t.TempDir()
	file, other := filepath.Join(dir, "a.graph"), filepath.Join(dir, "other.osm")
	write(t, other, strings.Replace(crossroads, `<nd ref="3"/>`, `<nd ref="3"/><nd ref="9"/>`, 1)+"\n")
	if got := orchestrator(t, "", "graph", "build", mapFile(t), "-o", file); got.code != 0 {
		t.Fatalf("build: %+v", got)
	}
	got := orchestrator(t, "", "graph", "check", other)
	if want := "way 100: node 9 is missing: the way is cut there\nother.osm: 1 finding, 6 edges\n"; got.code != 0 || got.out != want {
		t.Errorf("check of an extract: %+v, want %q", got, want)
	}
	got = orchestrator(t, "", "graph", "check", other, "--json")
	if lines := strings.Split(got.out, "\n"); got.code != 0 || lines[0] != `{"object":"way 100","text":"node 9 is missing: the way is cut there"}` || !strings.Contains(lines[1], `"edges":6`) {
		t.Errorf("check --json: %+v", got)
	}
	moved := filepath.Join(dir, "moved.osm")
	write(t, moved, strings.Replace(crossroads, `lat="48.005"`, `lat="48.006"`, 1))
	if got = orchestrator(t, "", "graph", "check", file, "--map", moved); got.code != exitFailed || !strings.Contains(got.err, "a.graph is not what the default profiles make of moved.osm") {
		t.Errorf("another map: %+v", got)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	data[len(data)/2] ^= 1
	write(t, file, string(data))
	for _, args := range [][]string{{"graph", "check", file}, {"graph", "info", file}, {"match", "--map", file, "x.csv"}} {
		if got = orchestrator(t, "", args...); got.code != exitFailed || !strings.Contains(got.err, "a.graph: no graph file, or a damaged one: its checksum is wrong") {
			t.Errorf("%v of a damaged file: %+v", args, got)
		}
	}
}

// Wrong usage is told before any work; a build that fails leaves nothing behind.
func TestGraphUsage(t *testing.T) {
	dir := t.TempDir()
	bad, good, graph := filepath.Join(dir, "bad.toml"), filepath.Join(dir, "good.toml"), filepath.Join(dir, "g.graph")
	write(t, bad, "[car]\nmax_speed = 500\n[tram]\n")
	write(t, good, strings.Replace(string(roadnet.DefaultProfilesTOML()), "residential    = 35", "residential = 36", 1))
	m := mapFile(t)
	for _, c := range []struct {
		args []string
		code int
		say  string
	}{
		{[]string{"build", m}, exitUsage, "a map and --output are needed"},
		{[]string{"build", m, "-o", graph, "--vehicles", "car,tram"}, exitUsage, `--vehicles: "tram" is none of car, truck, bus, bicycle, foot, all`},
		{[]string{"build", m, "-o", graph, "--box", "1,2,3"}, exitUsage, "W,S,E,N"},
		{[]string{"build", m, "-o", graph, "--box", "1,2,3,north"}, exitUsage, "degrees"},
		{[]string{"build", m, "-o", graph, "--box", "1,9,3,4"}, exitUsage, "south"},
		{[]string{"build", m, "-o", graph, "--profiles", bad}, exitUsage, "bad.toml:2: max_speed must be a whole number of km/h from 1 to 140\nbad.toml:3: [tram]: no such class"},
		{[]string{"build", m, "-o", graph, "--profiles", dir + "/none"}, exitFailed, "--profiles: "},
		{[]string{"build", dir + "/none.osm", "-o", graph}, exitFailed, "none.osm"},
		{[]string{"build", bad, "-o", graph}, exitFailed, "import bad.toml: neither OSM PBF nor OSM XML"},
		{[]string{"build", m, "-o", dir + "/no/such/g.graph"}, exitFailed, "no such"},
		{[]string{"build", m, "-o", graph, "--box", "100,10,101,11"}, exitFailed, "no roads for these vehicles"},
		{[]string{"info", dir + "/none"}, exitFailed, "none"},
		{[]string{"check", m, "--map", m}, exitUsage, "is for checking a graph file"},
	} {
		got := orchestrator(t, "", append([]string{"graph"}, c.args...)...)
		if got.code != c.code || !strings.Contains(got.err, c.say) || got.out != "" {
			t.Errorf("%v: %+v, want code %d and %q", c.args, got, c.code, c.say)
		}
	}
	if left, err := filepath.Glob(filepath.Join(dir, "*.graph*")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	got := orchestrator(t, "", "graph", "build", m, "-o", graph, "--profiles", good, "--vehicles", "all", "--contraflow", "--box", "8,47,10,49", "--json")
	if got.code != 0 || !strings.Contains(got.out, `"vehicles":"car,truck,bus,bicycle,foot","contraflow":true`) {
		t.Errorf("build for all: %+v", got)
	}
	if got = orchestrator(t, "", "match", "--map", graph, "--profiles", good, "x.csv"); got.code != exitUsage || !strings.Contains(got.err, "which has its profiles in it") {
		t.Errorf("profiles for a graph file: %+v", got)
	}
	if got = orchestrator(t, trip, "match", "--map", m, "--profiles", good, "--input", "csv", "--route", "-"); got.code != 0 || got.out == "" {
		t.Errorf("profiles for an extract: %+v", got)
	}
	if got = orchestrator(t, "", "graph", "build", "--print-profiles"); got.code != 0 || got.out != string(roadnet.DefaultProfilesTOML()) {
		t.Errorf("print-profiles: code %d", got.code)
	}
}
