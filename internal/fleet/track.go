package fleet

import (
	"slices"

	"milepost/internal/mapmatch"
	"milepost/internal/roadnet"
)

// Track rebuilds a vehicle's driven paths from its events alone, as any consumer of the matched topic can: what is final, and the
// newest provisional stretch after it. The zero value is ready for a vehicle's first event; events come in order.
type Track struct {
	Segments []SegmentPath

	through int64 // the newest observation number that is final, -1 none
	open    []openPath
}

// SegmentPath is one segment's final path; its spans join.
type SegmentPath struct {
	Segment int64
	Path    []Span
}

type openPath struct {
	seq  int64
	path []Span
}

// Apply takes the vehicle's next event.
func (t *Track) Apply(e *Event) {
	if e.Closed != nil {
		t.segment(e.Closed.Segment)
		t.add(e.Closed.Path)
	}
	if e.Reset != nil || len(t.Segments) == 0 {
		t.segment(e.Segment)
		t.open, t.through = nil, -1
	}
	if f := e.Final; f != nil {
		t.add(f.Path)
		if n := len(f.Points); n > 0 {
			t.through = f.Points[n-1].Seq
		}
	}
	t.open = slices.DeleteFunc(t.open, func(o openPath) bool {
		return o.seq <= t.through || e.Supersedes != nil && o.seq >= *e.Supersedes
	})
	if e.Provisional != nil && e.Seq != nil {
		t.open = append(t.open, openPath{*e.Seq, e.Path})
	}
}

func (t *Track) segment(n int64) {
	if k := len(t.Segments); k == 0 || t.Segments[k-1].Segment != n {
		t.Segments = append(t.Segments, SegmentPath{Segment: n})
	}
}

func (t *Track) add(path []Span) {
	last := &t.Segments[len(t.Segments)-1]
	last.Path = append(last.Path, path...)
}

// Open is the provisional path from the last final place to the newest one.
func (t *Track) Open() []Span {
	var out []Span
	for _, o := range t.open {
		out = append(out, o.path...)
	}
	return out
}

// Pairs are the pairs of neighbouring OSM nodes driven over, in order, each traversal once; pairs driven only in part and the
// provisional stretch at the end included.
func (t *Track) Pairs() []mapmatch.Pair {
	var pairs []mapmatch.Pair
	for i, s := range t.Segments {
		path := s.Path
		if i == len(t.Segments)-1 {
			path = append(slices.Clip(path), t.Open()...)
		}
		pairs = AppendPairs(pairs, path)
	}
	return pairs
}

// AppendPairs appends the node pairs of one connected path.
func AppendPairs(dst []mapmatch.Pair, path []Span) []mapmatch.Pair {
	spans := make([]mapmatch.Span, len(path))
	for i, s := range path {
		spans[i] = mapmatch.Span{Key: roadnet.EdgeKey{Way: s.Way, From: s.From, To: s.To}, FromM: s.FromM, ToM: s.ToM, Nodes: s.Nodes}
	}
	return mapmatch.AppendPairs(dst, spans)
}
