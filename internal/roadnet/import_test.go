package roadnet_test

import (
	"bytes"
	"compress/bzip2"
	"compress/gzip"
	"context"
	"encoding/csv"
	"errors"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/paulmach/osm"
	"github.com/paulmach/osm/osmpbf"
	"github.com/paulmach/osm/osmxml"

	"milepost/internal/roadnet"
)

// moduleMap returns the path of one of the two real maps in the module cache.
func moduleMap(tb testing.TB, name string) string {
	tb.Helper()
	out, err := exec.CommandContext(tb.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "github.com/paulmach/osm").Output()
	file := filepath.Join(strings.TrimSpace(string(out)), "testdata", name)
	if _, statErr := os.Stat(file); err != nil || statErr != nil {
		tb.Skipf("the OSM module with its maps is not in the module cache: %v, %v", err, statErr)
	}
	return file
}

func dataDir(tb testing.TB) string {
	tb.Helper()
	dir := os.Getenv("MILEPOST_DATA")
	if dir == "" {
		tb.Skip("MILEPOST_DATA is not set: make it the folder of maps and traces that docs/matcher.md describes")
	}
	return dir
}

func load(tb testing.TB, file string, opt roadnet.ImportOptions) *roadnet.Graph {
	tb.Helper()
	f, err := os.Open(file)
	if err != nil {
		tb.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	g, err := roadnet.Import(tb.Context(), f, file, opt)
	if err != nil {
		tb.Fatal(err)
	}
	return g
}

func importBytes(ctx context.Context, b []byte) (*roadnet.Graph, error) {
	return roadnet.Import(ctx, bytes.NewReader(b), "/some/where/town.osm", roadnet.ImportOptions{})
}

func zip(b []byte) []byte {
	var z bytes.Buffer
	w := gzip.NewWriter(&z)
	_, _ = w.Write(b)
	_ = w.Close()
	return z.Bytes()
}

// One map in every form of the formats makes one graph, to the hash: XML and PBF, plain and packed, nodes dense and plain.
func TestImportForms(t *testing.T) {
	want, err := importBytes(t.Context(), []byte(smallXML))
	if err != nil {
		t.Fatal(err)
	}
	if s := want.Stats(); want.Edges() != 5 || want.Nodes() != 4 || s.Bans != 2 || s.GatedNodes != 1 || s.Restrictions != 1 {
		t.Fatalf("%d edges, %d nodes, %+v", want.Edges(), want.Nodes(), s)
	}
	for name, b := range map[string][]byte{
		"gzip":           zip([]byte(smallXML)),
		"gzip twice":     zip(zip([]byte(smallXML))),
		"byte order":     []byte("\xef\xbb\xbf" + smallXML),
		"dense":          smallPBF(true, true),
		"dense, raw":     smallPBF(true, false),
		"plain":          smallPBF(false, true),
		"plain, raw":     smallPBF(false, false),
		"pbf, gzip":      zip(smallPBF(true, true)),
		"after newlines": []byte("\n\n" + strings.TrimPrefix(smallXML, `<?xml version="1.0" encoding="UTF-8"?>`)),
	} {
		g, err := importBytes(t.Context(), b)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		} else if g.Hash() != want.Hash() {
			t.Errorf("%s: another graph: %d edges, %+v", name, g.Edges(), g.Stats())
		}
	}
}

// feed builds a graph from what another decoder of the formats reads.
func feed(t *testing.T, open func() (osm.Scanner, io.Closer)) *roadnet.Graph {
	t.Helper()
	b := roadnet.NewBuilder(nil)
	tagsOf := func(in osm.Tags) (out roadnet.Tags) {
		for _, x := range in {
			out = append(out, roadnet.Tag{Key: x.Key, Value: x.Value})
		}
		return out
	}
	for pass := range 2 {
		s, file := open()
		for s.Scan() {
			switch o := s.Object().(type) {
			case *osm.Node:
				if pass == 1 && b.Needs(int64(o.ID)) {
					b.AddNode(int64(o.ID), roundE7(o.Lon), roundE7(o.Lat), tagsOf(o.Tags))
				}
			case *osm.Way:
				if pass == 0 {
					refs := make([]int64, len(o.Nodes))
					for i, n := range o.Nodes {
						refs[i] = int64(n.ID)
					}
					b.AddWay(int64(o.ID), refs, tagsOf(o.Tags))
				}
			case *osm.Relation:
				if pass == 0 {
					var members []roadnet.Member
					kinds := map[osm.Type]roadnet.MemberKind{osm.TypeNode: roadnet.MemberNode, osm.TypeWay: roadnet.MemberWay, osm.TypeRelation: roadnet.MemberRelation}
					for _, m := range o.Members {
						members = append(members, roadnet.Member{Kind: kinds[m.Type], Ref: m.Ref, Role: m.Role})
					}
					b.AddRelation(int64(o.ID), members, tagsOf(o.Tags))
				}
			}
		}
		if err := errors.Join(s.Err(), s.Close(), file.Close()); err != nil && !errors.Is(err, osm.ErrScannerClosed) {
			t.Fatal(err)
		}
	}
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func roundE7(v float64) int64 {
	n, _ := strconv.ParseInt(strings.Replace(strconv.FormatFloat(v, 'f', 7, 64), ".", "", 1), 10, 64)
	return n
}

// Delaware imports within seconds and a bounded memory, equals what another decoder of the format reads, and holds together.
func TestImportDelaware(t *testing.T) {
	file := moduleMap(t, "delaware-latest.osm.pbf")
	var reports []roadnet.Progress
	g := load(t, file, roadnet.ImportOptions{Progress: func(p roadnet.Progress) { reports = append(reports, p) }})
	if g.Edges() < 180_000 || g.Edges() > 190_000 || g.Stats().Restrictions < 450 {
		t.Errorf("%d edges, %+v", g.Edges(), g.Stats())
	}
	if n := len(reports); n < 4 || reports[n-1] != (roadnet.Progress{Pass: 2, ReadBytes: 7_812_234, TotalBytes: 7_812_234}) {
		t.Errorf("progress %+v", reports)
	}
	checkGraph(t, g)
	main := 0
	for e := range roadnet.EdgeIndex(g.Edges()) {
		if g.Edge(e).Component == 0 {
			main++
		}
	}
	if share := float64(main) / float64(g.Edges()); share < 0.97 {
		t.Errorf("the biggest component has %.3f of the edges", share)
	}
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	t.Logf("%d edges, %d nodes, %d MB on the heap, %+v", g.Edges(), g.Nodes(), m.HeapAlloc>>20, g.Stats())
	if testing.Short() {
		return
	}
	other := feed(t, func() (osm.Scanner, io.Closer) {
		f, err := os.Open(file)
		if err != nil {
			t.Fatal(err)
		}
		return osmpbf.New(t.Context(), f, 1), f
	})
	if other.Hash() != g.Hash() || other.Stats() != g.Stats() {
		t.Errorf("another decoder makes another graph: %+v, %+v", other.Stats(), g.Stats())
	}
}

// Andorra, as bzip2 of XML, equals what another decoder of the format reads.
func TestImportAndorra(t *testing.T) {
	if testing.Short() {
		t.Skip("bzip2 of 50 MB of XML takes seconds")
	}
	file := moduleMap(t, "andorra-latest.osm.bz2")
	g := load(t, file, roadnet.ImportOptions{})
	checkGraph(t, g)
	other := feed(t, func() (osm.Scanner, io.Closer) {
		f, err := os.Open(file)
		if err != nil {
			t.Fatal(err)
		}
		return osmxml.New(t.Context(), bzip2.NewReader(f)), f
	})
	if other.Hash() != g.Hash() || other.Stats() != g.Stats() || g.Edges() < 6_000 {
		t.Errorf("another decoder makes another graph: %d edges %+v, %d edges %+v", other.Edges(), other.Stats(), g.Edges(), g.Stats())
	}
}

// Every map at hand imports, and holds together (M28: maps of 2012 to 2019, from five makers, with 718 rules on 1278 ways in one).
func TestImportMaps(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(dataDir(t), "maps", "*.osm.*"))
	if err != nil || len(files) < 10 {
		t.Fatalf("%d maps: %v", len(files), err)
	}
	for _, f := range files {
		t.Run(filepath.Base(f), func(t *testing.T) {
			g := load(t, f, roadnet.ImportOptions{})
			checkGraph(t, g)
			if again := load(t, f, roadnet.ImportOptions{}); again.Hash() != g.Hash() {
				t.Error("a second import makes another graph")
			}
			t.Logf("%d edges, %d nodes, %+v", g.Edges(), g.Nodes(), g.Stats())
			checkAllVehicles(t, f)
		})
	}
}

// checkAllVehicles imports a map for every class, with contraflow, and holds it against the one for cars.
func checkAllVehicles(t *testing.T, file string) {
	t.Helper()
	findings := 0
	g := load(t, file, roadnet.ImportOptions{Vehicles: roadnet.AllVehicles(), Contraflow: true, Note: func(roadnet.Finding) { findings++ }})
	checkGraph(t, g)
	s := g.Stats()
	if told := s.RestrictionsBroken + s.MissingNodes + s.BadSegments + s.Repeated; findings < told {
		t.Errorf("%d findings, %+v", findings, s)
	}
	again, err := roadnet.Open(written(t, g))
	if err != nil || again.Hash() != g.Hash() || again.Verify() != nil {
		t.Errorf("through a graph file: %v", err)
	}
	car, against := 0.0, 0.0
	for e := range roadnet.EdgeIndex(g.Edges()) {
		metres := float64(g.Edge(e).LengthCM) / 100
		if g.Passable(e, roadnet.View{}) {
			car += metres
		} else if g.Passable(e, roadnet.View{Contraflow: true}) {
			against += metres
		}
	}
	plain := load(t, file, roadnet.ImportOptions{})
	want := 0.0
	for e := range roadnet.EdgeIndex(plain.Edges()) {
		want += float64(plain.Edge(e).LengthCM) / 100
	}
	if math.Abs(car-want) > 1+want/1e4 || against > want {
		t.Errorf("a car has %.0f m among the roads of all, %.0f m alone; %.0f m against one-way streets", car, want, against)
	}
}

// Of the 718 restrictions of the stress file, each applies or is told of with its reason (M28).
func TestStressRestrictions(t *testing.T) {
	told := map[int64]string{}
	g := load(t, filepath.Join(dataDir(t), "maps", "vh-melborne.osm.pbf"), roadnet.ImportOptions{Note: func(f roadnet.Finding) {
		if f.Kind == roadnet.MemberRelation {
			told[f.ID] = f.String()
		}
	}})
	s := g.Stats()
	if s.Restrictions+s.RestrictionsIgnored+s.RestrictionsBroken != 718 || s.RestrictionsBroken != len(told) || s.Restrictions < 350 {
		t.Errorf("%d reasons, %+v", len(told), s)
	}
	if got, want := told[12], "relation 12: a restriction that names way 872, which is not in the graph"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// The routes of the simulated drives, made by another program from the same maps, are paths of the graph: every driven pair of nodes is
// on an edge, in a direction that it has, and no turn is banned (M27, M28).
func TestTruthIsLegal(t *testing.T) {
	dir := dataDir(t)
	for trace, name := range map[string]string{"newark_5s": "delaware-newark-2016", "dover_1s": "delaware-dover-2016", "dover_30s": "delaware-dover-2016", "andorra_10s": "paulmach-andorra-2018"} {
		t.Run(trace, func(t *testing.T) {
			g := load(t, filepath.Join(dir, "maps", name+".osm.pbf"), roadnet.ImportOptions{})
			edgeOf := map[roadnet.EdgeKey]roadnet.EdgeIndex{}
			for e := range roadnet.EdgeIndex(g.Edges()) {
				shape := g.Shape(nil, e)
				for i := range len(shape) - 1 {
					edgeOf[roadnet.EdgeKey{Way: g.Edge(e).Way, From: shape[i].Node, To: shape[i+1].Node}] = e
				}
			}
			rows := readCSV(t, filepath.Join(dir, "synthetic", trace+".route.csv"))
			vehicle, last := "", roadnet.NoEdge
			banned := 0
			for i, r := range rows {
				k := roadnet.EdgeKey{Way: parse(t, r[1]), From: parse(t, r[2]), To: parse(t, r[3])}
				e, ok := edgeOf[k]
				if !ok {
					t.Fatalf("row %d: %+v is on no edge", i+2, k)
				}
				if r[0] == vehicle && e != last {
					if g.Edge(last).To != g.Edge(e).From {
						t.Fatalf("row %d: edges %d and %d do not meet", i+2, last, e)
					}
					if g.Turn(last, e) == roadnet.TurnBanned {
						banned++
					}
				}
				vehicle, last = r[0], e
			}
			if banned > 0 {
				t.Errorf("%d banned turns in %d rows", banned, len(rows))
			}
		})
	}
}

func readCSV(t *testing.T, file string) [][]string {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil || len(rows) < 2 {
		t.Fatalf("%s: %d rows, %v", file, len(rows), err)
	}
	return rows[1:]
}

func parse(t *testing.T, s string) int64 {
	t.Helper()
	v, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// A box takes a town out of a state.
func TestImportBox(t *testing.T) {
	box := &roadnet.Box{West: -75.80, South: 39.63, East: -75.68, North: 39.72}
	g := load(t, moduleMap(t, "delaware-latest.osm.pbf"), roadnet.ImportOptions{Box: box})
	if g.Edges() < 12_000 || g.Edges() > 16_000 || g.Stats().OutsideWays < 40_000 {
		t.Errorf("Newark has %d edges, %+v", g.Edges(), g.Stats())
	}
	checkGraph(t, g)
}

// What is no map, or a damaged one, is refused with the file's name, the place and the reason; half a map is none.
func TestImportErrors(t *testing.T) {
	pbf := smallPBF(true, true)
	header := (&pbfFile{}).header("OsmSchema-V0.6").Bytes()
	with := func(kind string, blob []byte) []byte {
		return (&pbfFile{Buffer: *bytes.NewBuffer(bytes.Clone(header))}).raw(kind, blob).Bytes()
	}
	way := func(keys, vals []byte) []byte {
		w := field(field(number(nil, 1, 77), 2, keys), 3, vals)
		return field(field(nil, 1, stringTable("", "highway", "primary")), 2, field(nil, 3, w))
	}
	for _, c := range []struct {
		name string
		file []byte
		is   error
		says string
	}{
		{"empty", nil, roadnet.ErrNotOSM, "town.osm: neither OSM PBF nor OSM XML: empty"},
		{"text", []byte("version https://git-lfs.github.com/spec/v1"), roadnet.ErrNotOSM, ""},
		{"a web page", []byte("<!DOCTYPE html><html><body>404</body></html>"), roadnet.ErrNotOSM, "the root is <html>"},
		{"a change file", []byte(`<osmChange version="0.6"/>`), roadnet.ErrNotOSM, "osmChange"},
		{"no roads", []byte(`<osm><node id="1" lat="1" lon="1"/></osm>`), roadnet.ErrNoRoads, ""},
		{"roads without nodes", []byte(`<osm><way id="1"><nd ref="1"/><nd ref="2"/><tag k="highway" v="primary"/></way></osm>`), roadnet.ErrNoRoads, ""},
		{"XML cut short", []byte(smallXML[:len(smallXML)-20]), io.ErrUnexpectedEOF, "line 15: relation 20"},
		{"XML cut short in a way", before(smallXML, `<nd ref="4"`), io.ErrUnexpectedEOF, "way 11"},
		{"a bad id", []byte("<osm>\n<way id=\"x\"/></osm>"), roadnet.ErrCorrupt, "line 2: corrupt OSM data: way without a proper id"},
		{"a bad ref", []byte(`<osm><way id="5"><nd ref="1e3"/></way></osm>`), roadnet.ErrCorrupt, "way 5: corrupt OSM data: a member without a proper ref"},
		{"a bad place", []byte(strings.Replace(smallXML, `lat="48.001"`, `lat="north"`, 1)), roadnet.ErrCorrupt, "node 4: corrupt OSM data: a place that is no number"},
		{"NaN", []byte(strings.Replace(smallXML, `lat="48.001"`, `lat="NaN"`, 1)), roadnet.ErrCorrupt, "node 4"},
		{"bad XML", []byte("<osm>\n<node id=1></osm>"), roadnet.ErrCorrupt, "line 2"},
		{"an end too many", []byte(`</osm>`), roadnet.ErrCorrupt, ""},
		{"a token without end", []byte(`<osm><way id="` + strings.Repeat("1", 6<<20)), roadnet.ErrCorrupt, "a token of more than"},
		{"a way without end", []byte(`<osm><way id="5">` + strings.Repeat(`<nd ref="1"/>`, 110_000)), roadnet.ErrCorrupt, "way 5: corrupt OSM data: more than 100000 parts"},
		{"gzip cut short", zip([]byte(smallXML))[:200], io.ErrUnexpectedEOF, ""},
		{"gzip of nothing", zip(nil), roadnet.ErrNotOSM, ""},
		{"gzip four times", zip(zip(zip(zip([]byte(smallXML))))), roadnet.ErrNotOSM, "packed too many times"},
		{"bzip2 of noise", []byte("BZh91AY&SY nothing of the kind"), nil, ""},
		{"PBF cut short", pbf[:len(pbf)-10], io.ErrUnexpectedEOF, "block at byte"},
		{"PBF cut short in a length", append(bytes.Clone(pbf), 0, 0), io.ErrUnexpectedEOF, "block at byte"},
		{"PBF with history", (&pbfFile{}).header("OsmSchema-V0.6", "HistoricalInformation").Bytes(), roadnet.ErrNotOSM, "HistoricalInformation"},
		{"a block of zstd", with("OSMData", field(nil, 7, []byte("x"))), roadnet.ErrCorrupt, "field 7"},
		{"a block of nothing", with("OSMData", nil), roadnet.ErrCorrupt, "without content"},
		{"bad zlib", with("OSMData", field(nil, 3, []byte("nothing"))), roadnet.ErrCorrupt, ""},
		{"a wire type that is none", with("OSMData", field(nil, 1, []byte{0x0e})), roadnet.ErrCorrupt, ""},
		{"a string that is not there", with("OSMData", field(nil, 1, way(packedList(1), packedList(9)))), roadnet.ErrCorrupt, "way 77: corrupt OSM data: string 9 of 3"},
		{"a key without a value", with("OSMData", field(nil, 1, way(packedList(1, 1), packedList(2)))), roadnet.ErrCorrupt, "way 77"},
		{"a bomb", with("OSMData", field(nil, 3, bomb(t))), roadnet.ErrCorrupt, "a block of more than"},
		{"an endless header", append(bytes.Clone(header), 0xff, 0xff, 0xff, 0xff), roadnet.ErrCorrupt, "a block header of 4294967295 bytes"},
		{"an endless block", append(bytes.Clone(header), append([]byte{0, 0, 0, 15}, number(field(nil, 1, []byte("OSMData")), 3, 1<<33)...)...), roadnet.ErrCorrupt, "a block of 8589934592 bytes"},
	} {
		_, err := importBytes(t.Context(), c.file)
		if err == nil || c.is != nil && !errors.Is(err, c.is) || !strings.Contains(err.Error(), c.says) || !strings.HasPrefix(err.Error(), "import town.osm: ") {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

func before(s, mark string) []byte {
	head, _, _ := strings.Cut(s, mark)
	return []byte(head)
}

// bomb is 40 MB of zeros, packed.
func bomb(t *testing.T) []byte {
	t.Helper()
	f := (&pbfFile{}).block("OSMData", make([]byte, 40<<20), true)
	_, zipped, ok := bytes.Cut(f.Bytes(), []byte("\x78\x9c"))
	if !ok {
		t.Fatal("no zlib stream")
	}
	return append([]byte("\x78\x9c"), zipped...)
}

// A cancelled import ends, with the context's error; a reader's error comes through.
func TestImportCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, b := range [][]byte{[]byte(smallXML), smallPBF(true, true)} {
		if _, err := importBytes(ctx, b); !errors.Is(err, context.Canceled) {
			t.Errorf("cancelled: %v", err)
		}
	}
	broken := errors.New("disk on fire")
	r := &failingReader{Reader: bytes.NewReader(smallPBF(true, true)), err: broken}
	if _, err := roadnet.Import(t.Context(), r, "x.osm.pbf", roadnet.ImportOptions{}); !errors.Is(err, broken) {
		t.Errorf("a failing disk: %v", err)
	}
}

type failingReader struct {
	*bytes.Reader
	err error
}

func (f *failingReader) Read(b []byte) (int, error) {
	if f.Len() < 100 {
		return 0, f.err
	}
	return f.Reader.Read(b[:min(len(b), 50)])
}

// Damaged bytes of either format end in an error or in a graph that holds together, never in a panic.
func FuzzImport(f *testing.F) {
	f.Add([]byte(smallXML))
	f.Add(zip([]byte(smallXML)))
	for _, dense := range []bool{true, false} {
		f.Add(smallPBF(dense, false))
		f.Add(smallPBF(dense, true))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if g, err := importBytes(t.Context(), b); err == nil {
			checkGraph(t, g)
			g.Near(nil, g.NodePoint(0), 100)
		}
	})
}

// The same for the content of blocks, past the compression and the frame that random bytes seldom get right.
func FuzzImportBlock(f *testing.F) {
	b := smallPBF(true, false)
	for i := range 2 {
		at := bytes.LastIndex(b, []byte("OSMData"))
		f.Add(b[at+14:])
		if i == 0 {
			b = b[:at-2]
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		file := (&pbfFile{}).header().block("OSMData", data, false).Bytes()
		if g, err := importBytes(t.Context(), file); err == nil {
			checkGraph(t, g)
		}
	})
}

func BenchmarkImportDelaware(b *testing.B) {
	data, err := os.ReadFile(moduleMap(b, "delaware-latest.osm.pbf"))
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := importBytes(b.Context(), data); err != nil {
			b.Fatal(err)
		}
	}
}
