package roadnet

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"io"
	"math"
)

// The form of a graph file; docs/formats/graph.md describes it.
const (
	fileMagic   = "MPGRAPH\n"
	fileVersion = 1
	fileHeader  = 64
	fileEntry   = 32 // of the table of sections
	fileAlign   = 64
	fileTrailer = 8
	fileEnd     = 0x0a444e45 // "END\n"
)

// The reasons for which a graph file is refused.
var (
	ErrGraphFile    = errors.New("no graph file, or a damaged one")
	ErrGraphVersion = errors.New("a graph file of another version: build it again")
)

// fileMeta is what a file says beside the arrays.
type fileMeta struct {
	Vehicles   Vehicles    `json:"vehicles"`
	Contraflow bool        `json:"contraflow"`
	Profile    string      `json:"profile"`
	Pace       []pace      `json:"pace"`
	GridRow    int32       `json:"grid_row"`
	Stats      ImportStats `json:"stats"`
}

// section is one array of a file.
type section struct {
	name  string
	size  int // bytes of an element
	count int
	put   func(b []byte, i int) []byte
}

// sections lists the arrays in the file's order. The place in the list is the section's number.
func (g *Graph) sections() ([]section, error) {
	meta, err := json.Marshal(fileMeta{
		Vehicles: g.vehicles, Contraflow: g.contraflow, Profile: g.profile, Pace: g.pace, GridRow: g.grid.row0, Stats: g.stats,
	})
	if err != nil {
		return nil, fmt.Errorf("describe the graph: %w", err)
	}
	list := []section{
		{"meta", 1, len(meta), func(b []byte, i int) []byte { return append(b, meta[i]) }},
		column64("node ids", g.nodeID),
		vertexColumn("node places", g.nodePlace),
		{"edges", edgeSize, len(g.edges), func(b []byte, i int) []byte { return appendEdge(b, &g.edges[i]) }},
		column32("shapes", g.shape),
		column32("geometry offsets", g.geomOff),
		column32("geometry edges", g.geomEdge),
		vertexColumn("vertices", g.vertices),
		column64("vertex nodes", g.vertexNode),
		column32("out offsets", g.outOff),
		column32("out edges", g.out),
		column64("turn keys", g.turns.keys),
		{"turn rules", 8, len(g.turns.rules), func(b []byte, i int) []byte {
			r := &g.turns.rules[i]
			return append(binary.LittleEndian.AppendUint32(b, uint32(r.next)), byte(r.ban), byte(r.wall), 0, 0)
		}},
		column32("state edges", g.turns.edgeOf),
		column64("ruled edges", g.turns.ruled),
		column64("stated edges", g.turns.stated),
		column32("grid rows", g.grid.rowOff),
		column32("grid columns", g.grid.cols),
		column32("grid cells", g.grid.cellOff),
		{"grid segments", 8, len(g.grid.refs), func(b []byte, i int) []byte {
			r := g.grid.refs[i]
			return binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(b, uint32(r.geom)), uint32(r.vertex))
		}},
	}
	for v := range Vehicle(numVehicles) {
		list = append(list, column32("strong components of "+v.String(), g.strong[v]))
	}
	return list, nil
}

func column32[T ~int32](name string, list []T) section {
	return section{name, 4, len(list), func(b []byte, i int) []byte { return binary.LittleEndian.AppendUint32(b, uint32(list[i])) }}
}

func column64[T ~int64 | ~uint64](name string, list []T) section {
	return section{name, 8, len(list), func(b []byte, i int) []byte { return binary.LittleEndian.AppendUint64(b, uint64(list[i])) }}
}

func vertexColumn(name string, list []vertex) section {
	return section{name, 12, len(list), func(b []byte, i int) []byte {
		b = binary.LittleEndian.AppendUint32(b, uint32(list[i].lon))
		b = binary.LittleEndian.AppendUint32(b, uint32(list[i].lat))
		return binary.LittleEndian.AppendUint32(b, uint32(list[i].along))
	}}
}

const edgeSize = 40

// appendEdge writes an edge as Edge lies in memory on a little-endian machine.
func appendEdge(b []byte, e *Edge) []byte {
	b = binary.LittleEndian.AppendUint32(b, uint32(e.From))
	b = binary.LittleEndian.AppendUint32(b, uint32(e.To))
	b = binary.LittleEndian.AppendUint64(b, uint64(e.Way))
	b = binary.LittleEndian.AppendUint32(b, uint32(e.LengthCM))
	b = binary.LittleEndian.AppendUint32(b, uint32(e.Twin))
	b = binary.LittleEndian.AppendUint32(b, uint32(e.Component))
	b = append(b, e.SpeedKMH, e.Lanes, byte(e.Layer), byte(e.Class))
	b = binary.LittleEndian.AppendUint16(b, uint16(e.Flags))
	return append(b, byte(e.Access), byte(e.Private), byte(e.Contra), 0, 0, 0)
}

// WriteTo writes the graph as a graph file, which Open reads again. Equal graphs give equal bytes.
func (g *Graph) WriteTo(w io.Writer) (int64, error) {
	list, err := g.sections()
	if err != nil {
		return 0, err
	}
	f := fileWriter{crc: crc32.New(crc32.MakeTable(crc32.Castagnoli))}
	f.w = bufio.NewWriterSize(io.MultiWriter(w, f.crc), 1<<16)
	f.header(g.hash, list)
	for _, s := range list {
		f.pad(fileAlign)
		for i := range s.count {
			f.bytes(s.put(f.buf[:0], i))
		}
	}
	f.pad(fileTrailer)
	if f.err == nil {
		f.err = f.w.Flush()
	}
	if f.err != nil {
		return f.n, fmt.Errorf("write the graph: %w", f.err)
	}
	end := binary.LittleEndian.AppendUint32(nil, f.crc.Sum32())
	n, err := w.Write(binary.LittleEndian.AppendUint32(end, fileEnd))
	if err != nil {
		return f.n + int64(n), fmt.Errorf("write the graph: %w", err)
	}
	return f.n + int64(n), nil
}

// fileWriter writes and sums, and remembers the first error.
type fileWriter struct {
	w   *bufio.Writer
	crc hash.Hash32
	n   int64
	err error
	buf [64]byte
}

func (f *fileWriter) bytes(b []byte) {
	if f.err == nil {
		_, f.err = f.w.Write(b)
		f.n += int64(len(b))
	}
}

func (f *fileWriter) pad(to int64) {
	var zero [fileAlign]byte
	f.bytes(zero[:-f.n&(to-1)])
}

func (f *fileWriter) header(sum [32]byte, list []section) {
	at := int64(fileHeader + fileEntry*len(list))
	var table []byte
	for i, s := range list {
		at += -at & (fileAlign - 1)
		table = binary.LittleEndian.AppendUint32(table, uint32(i+1))
		table = binary.LittleEndian.AppendUint32(table, uint32(s.size))
		table = binary.LittleEndian.AppendUint64(table, uint64(at))
		table = binary.LittleEndian.AppendUint64(table, uint64(s.count))
		table = binary.LittleEndian.AppendUint64(table, 0)
		at += int64(s.size) * int64(s.count)
	}
	at += -at & (fileTrailer - 1)
	b := append([]byte(nil), fileMagic...)
	b = binary.LittleEndian.AppendUint32(b, fileVersion)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(list)))
	b = binary.LittleEndian.AppendUint64(b, uint64(at+fileTrailer))
	b = binary.LittleEndian.AppendUint64(b, 0)
	b = append(b, sum[:]...)
	f.bytes(b)
	f.bytes(table)
}

// IsGraphFile says whether a file that begins so is meant to be a graph file.
func IsGraphFile(head []byte) bool {
	return len(head) >= len(fileMagic) && string(head[:len(fileMagic)]) == fileMagic
}

// fileTable is the header of a file and the places of its sections.
type fileTable struct {
	hash     [32]byte
	sections [][]byte
}

// readTable checks a file's frame: magic, version, length, checksum and the table of sections.
func readTable(data []byte, sizes []int) (t fileTable, err error) {
	if !IsGraphFile(data) {
		return t, fmt.Errorf("%w: it does not begin as one", ErrGraphFile)
	}
	if len(data) < fileHeader+fileTrailer {
		return t, fmt.Errorf("%w: cut short", ErrGraphFile)
	}
	if v := binary.LittleEndian.Uint32(data[8:]); v != fileVersion {
		return t, fmt.Errorf("%w (%d, not %d)", ErrGraphVersion, v, fileVersion)
	}
	if n := binary.LittleEndian.Uint64(data[16:]); n != uint64(len(data)) {
		return t, fmt.Errorf("%w: %d bytes, and its header says %d", ErrGraphFile, len(data), n)
	}
	end := len(data) - fileTrailer
	if binary.LittleEndian.Uint32(data[end+4:]) != fileEnd ||
		binary.LittleEndian.Uint32(data[end:]) != crc32.Checksum(data[:end], crc32.MakeTable(crc32.Castagnoli)) {
		return t, fmt.Errorf("%w: its checksum is wrong", ErrGraphFile)
	}
	if n := binary.LittleEndian.Uint32(data[12:]); n != uint32(len(sizes)) || fileHeader+fileEntry*len(sizes) > end {
		return t, fmt.Errorf("%w: %d sections", ErrGraphFile, n)
	}
	copy(t.hash[:], data[32:])
	from := uint64(fileHeader + fileEntry*len(sizes))
	for i, size := range sizes {
		entry := data[fileHeader+fileEntry*i:]
		at, count := binary.LittleEndian.Uint64(entry[8:]), binary.LittleEndian.Uint64(entry[16:])
		if binary.LittleEndian.Uint32(entry) != uint32(i+1) || binary.LittleEndian.Uint32(entry[4:]) != uint32(size) ||
			count > math.MaxInt32 || at%fileAlign != 0 || at < from || at > uint64(end) || count*uint64(size) > uint64(end)-at {
			return t, fmt.Errorf("%w: section %d is out of place", ErrGraphFile, i+1)
		}
		from = at + count*uint64(size)
		t.sections = append(t.sections, data[at:from:from])
	}
	return t, nil
}
