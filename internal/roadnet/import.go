package roadnet

import (
	"bufio"
	"bytes"
	"compress/bzip2"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
)

// The reasons for which a file is refused.
var (
	ErrNotOSM  = errors.New("neither OSM PBF nor OSM XML")
	ErrNoRoads = errors.New("no roads for these vehicles")
	ErrCorrupt = errors.New("corrupt OSM data")
)

// ImportOptions narrow an import.
type ImportOptions struct {
	Box        *Box           // only ways that may touch it; nil: all
	Vehicles   Vehicles       // the classes that the graph is for; none: cars
	Profiles   *Profiles      // nil: DefaultProfiles
	Contraflow bool           // edges against one-way streets, too, for views that ask for them
	Progress   func(Progress) // called now and then from within Import; nil: not at all
	Note       func(Finding)  // called for what is odd about an object, and passed over; nil: not at all
}

// Finding is something about an OSM object that an import passed over.
type Finding struct {
	Kind MemberKind
	ID   int64
	Text string
}

// String names the object.
func (f Finding) String() string {
	kind := "relation"
	switch f.Kind {
	case MemberNode:
		kind = "node"
	case MemberWay:
		kind = "way"
	case MemberRelation:
	}
	return fmt.Sprintf("%s %d: %s", kind, f.ID, f.Text)
}

// Progress says how far an import is. The file is read twice, first for the ways, then for the nodes that they need.
type Progress struct {
	Pass       int   // 1 or 2
	ReadBytes  int64 // of the file, in this pass
	TotalBytes int64
}

// Import reads an OSM file (PBF or XML, plain or packed with gzip or bzip2: the content says which) and makes the graph of its roads for
// the vehicles of the options. Memory is that of the roads, not of the file. Errors begin with the last part of the name and, where one is to blame, name the
// OSM object.
func Import(ctx context.Context, r io.ReadSeeker, name string, opt ImportOptions) (*Graph, error) {
	g, err := importFile(ctx, r, opt)
	if err != nil {
		return nil, fmt.Errorf("import %s: %w", path.Base(name), err)
	}
	return g, nil
}

func importFile(ctx context.Context, r io.ReadSeeker, opt ImportOptions) (*Graph, error) {
	size, err := r.Seek(0, io.SeekEnd)
	if err != nil {
		return nil, fmt.Errorf("measure: %w", err)
	}
	in := &importer{b: NewBuilderFor(opt)}
	for in.pass = passWays; in.pass <= passNodes; in.pass++ {
		if _, err := r.Seek(0, io.SeekStart); err != nil {
			return nil, fmt.Errorf("rewind: %w", err)
		}
		src := &source{ctx: ctx, r: r, report: opt.Progress, p: Progress{Pass: int(in.pass), TotalBytes: size}}
		if err := in.read(ctx, src); err != nil {
			return nil, err
		}
		src.done()
		if len(in.b.ways) == 0 {
			return nil, ErrNoRoads
		}
	}
	g, err := in.b.Build()
	if err != nil {
		return nil, err
	}
	if g.Edges() == 0 {
		return nil, ErrNoRoads
	}
	return g, nil
}

// pass says what to take from the file: ways and relations, or nodes.
type pass int

const (
	passWays pass = iota + 1
	passNodes
)

// importer carries what both passes share.
type importer struct {
	b        *Builder
	pass     pass
	hasNodes []bool // of each PBF block, from the first pass
}

// finished says that the second pass has all it came for.
func (in *importer) finished() bool { return in.pass == passNodes && in.b.complete() }

func (in *importer) read(ctx context.Context, src io.Reader) error {
	for range 3 { // a packed file, packed once more by a download, and its content
		br := bufio.NewReaderSize(src, 1<<16)
		head, err := br.Peek(16)
		if err != nil && !errors.Is(err, io.EOF) {
			return fmt.Errorf("read: %w", err)
		}
		switch {
		case len(head) == 0:
			return fmt.Errorf("%w: empty", ErrNotOSM)
		case bytes.HasPrefix(head, []byte{0x1f, 0x8b}):
			z, err := gzip.NewReader(br)
			if err != nil {
				return fmt.Errorf("gzip: %w", err)
			}
			src = z
		case bytes.HasPrefix(head, []byte("BZh")):
			src = bzip2.NewReader(br)
		case isXML(head):
			return in.readXML(ctx, br)
		case isPBF(head):
			return in.readPBF(ctx, br)
		default:
			return ErrNotOSM
		}
	}
	return fmt.Errorf("%w: packed too many times", ErrNotOSM)
}

func isXML(head []byte) bool {
	head = bytes.TrimPrefix(head, []byte{0xef, 0xbb, 0xbf})
	return bytes.HasPrefix(bytes.TrimLeft(head, " \t\r\n"), []byte("<"))
}

// isPBF looks for the length and the type of the first block's header.
func isPBF(head []byte) bool {
	return len(head) >= 15 && head[0] == 0 && head[1] == 0 && bytes.Equal(head[4:15], []byte("\x0a\x09OSMHeader"))
}

// source counts what is read and ends the import when the context does.
type source struct {
	ctx    context.Context //nolint:containedctx // lives as long as one call of Import; readers below know no contexts
	r      io.Reader
	report func(Progress)
	p      Progress
	next   int64
}

func (s *source) Read(b []byte) (int, error) {
	if err := s.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := s.r.Read(b)
	s.p.ReadBytes += int64(n)
	if s.report != nil && s.p.ReadBytes >= s.next {
		s.report(s.p)
		s.next = s.p.ReadBytes + 1<<20
	}
	return n, err
}

func (s *source) done() {
	if s.report != nil {
		s.p.ReadBytes = s.p.TotalBytes
		s.report(s.p)
	}
}
