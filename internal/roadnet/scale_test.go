package roadnet_test

import (
	"bufio"
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"flag"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"milepost/internal/roadnet"
)

var copies = flag.Int("copies", 2, "copies of Delaware, side by side, that TestImportMany imports")

// manyDelawares writes a map of so many copies of Delaware, each with ids and places of its own: a country with the detail of a state.
func manyDelawares(tb testing.TB, n int) string {
	tb.Helper()
	data, err := os.ReadFile(moduleMap(tb, "delaware-latest.osm.pbf"))
	if err != nil {
		tb.Fatal(err)
	}
	path := filepath.Join(tb.TempDir(), "many.osm.pbf")
	f, err := os.Create(path)
	if err != nil {
		tb.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	w := bufio.NewWriter(f)
	_, _ = w.Write((&pbfFile{}).header("OsmSchema-V0.6", "DenseNodes").Bytes())
	for kind := range 2 { // the nodes of all copies, then the rest, as in real files
		for c := range n {
			for _, block := range splitBlocks(tb, data) {
				if shifted, nodes := shiftBlock(tb, block, int64(c)); nodes == (kind == 0) {
					_, _ = w.Write((&pbfFile{}).block("OSMData", shifted, true).Bytes())
				}
			}
		}
	}
	if err := w.Flush(); err != nil {
		tb.Fatal(err)
	}
	return path
}

// splitBlocks unpacks a file's blocks of data.
func splitBlocks(tb testing.TB, data []byte) (blocks [][]byte) {
	tb.Helper()
	for len(data) > 0 {
		n := binary.BigEndian.Uint32(data)
		header, rest := data[4:4+n], data[4+n:]
		kind, size := "", uint64(0)
		eachField(tb, header, func(num protowire.Number, v uint64, b []byte) {
			if num == 1 {
				kind = string(b)
			}
			if num == 3 {
				size = v
			}
		})
		blob := rest[:size]
		data = rest[size:]
		if kind != "OSMData" {
			continue
		}
		eachField(tb, blob, func(num protowire.Number, _ uint64, b []byte) {
			if num != 3 {
				return
			}
			z, err := zlib.NewReader(bytes.NewReader(b))
			if err != nil {
				tb.Fatal(err)
			}
			block, err := io.ReadAll(z)
			if err != nil {
				tb.Fatal(err)
			}
			blocks = append(blocks, block)
		})
	}
	return blocks
}

func eachField(tb testing.TB, b []byte, f func(num protowire.Number, v uint64, val []byte)) {
	tb.Helper()
	for len(b) > 0 {
		num, typ, n := protowire.ConsumeTag(b)
		if n < 0 {
			tb.Fatal(protowire.ParseError(n))
		}
		b = b[n:]
		var v uint64
		var val []byte
		n = protowire.ConsumeFieldValue(num, typ, b)
		if typ == protowire.VarintType {
			v, _ = protowire.ConsumeVarint(b)
		}
		if typ == protowire.BytesType {
			val, _ = protowire.ConsumeBytes(b)
		}
		if n < 0 {
			tb.Fatal(protowire.ParseError(n))
		}
		b = b[n:]
		f(num, v, val)
	}
}

// shiftBlock gives a block's objects other ids, and puts it 2 degrees north a copy by the block's own offset. Objects refer to each other by
// ids, so every id is shifted alike.
func shiftBlock(tb testing.TB, block []byte, c int64) (out []byte, nodes bool) {
	tb.Helper()
	const step = 1 << 34 // above all ids of the map
	eachField(tb, block, func(num protowire.Number, v uint64, b []byte) {
		switch {
		case num == 2:
			var group []byte
			eachField(tb, b, func(num protowire.Number, _ uint64, b []byte) {
				if num == 2 { // dense nodes, whose ids are a list themselves
					nodes = true
					group = field(group, num, shiftLists(tb, b, c*step, 1))
					return
				}
				list := map[protowire.Number]protowire.Number{3: 8, 4: 9}[num] // of a way its nodes, of a relation its members
				group = field(group, num, shiftID(tb, shiftLists(tb, b, c*step, list), c*step))
			})
			out = field(out, 2, group)
		case b != nil:
			out = field(out, num, b)
		case num != 19:
			out = number(out, num, v)
		}
	})
	return number(out, 19, uint64(c*2_000_000_000)), nodes
}

// shiftLists adds to the first of a list of differences, which shifts all.
func shiftLists(tb testing.TB, msg []byte, by int64, list protowire.Number) (out []byte) {
	tb.Helper()
	eachField(tb, msg, func(num protowire.Number, v uint64, b []byte) {
		switch {
		case num == list && len(b) > 0:
			first, n := binary.Uvarint(b)
			b = append(protowire.AppendVarint(nil, signed(protowire.DecodeZigZag(first)+by)), b[n:]...)
			out = field(out, num, b)
		case b != nil:
			out = field(out, num, b)
		default:
			out = number(out, num, v)
		}
	})
	return out
}

func shiftID(tb testing.TB, msg []byte, by int64) (out []byte) {
	tb.Helper()
	eachField(tb, msg, func(num protowire.Number, v uint64, b []byte) {
		switch {
		case b != nil:
			out = field(out, num, b)
		case num == 1:
			out = number(out, 1, uint64(int64(v)+by))
		default:
			out = number(out, num, v)
		}
	})
	return out
}

// A country imports in time and memory that grow with its roads alone: -copies 20 is 4 million directed edges. The copies are whole
// Delawares, rules included.
func TestImportMany(t *testing.T) {
	if testing.Short() {
		t.Skip("several states")
	}
	one := load(t, moduleMap(t, "delaware-latest.osm.pbf"), roadnet.ImportOptions{})
	path := manyDelawares(t, *copies)
	began := time.Now()
	g := load(t, path, roadnet.ImportOptions{})
	imported := time.Since(began)
	if g.Edges() != *copies*one.Edges() || g.Stats().Bans != *copies*one.Stats().Bans || g.Stats().RestrictionsViaWay != *copies*one.Stats().RestrictionsViaWay {
		t.Errorf("%d copies of %d edges make %d: %+v", *copies, one.Edges(), g.Edges(), g.Stats())
	}
	out := filepath.Join(t.TempDir(), "many.graph")
	f, err := os.Create(out)
	if err != nil {
		t.Fatal(err)
	}
	began = time.Now()
	n, err := g.WriteTo(f)
	if err != nil || f.Close() != nil {
		t.Fatal(err)
	}
	t.Logf("%d edges: imported in %s, written in %s, %d MB", g.Edges(), imported, time.Since(began), n>>20)
	if to := os.Getenv("MILEPOST_KEEP_MAP"); to != "" {
		if err := os.Rename(path, to); err != nil {
			t.Fatal(err)
		}
	}
}
