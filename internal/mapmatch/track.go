package mapmatch

import "slices"

// Pair is two neighbouring OSM nodes of a way, in driving order.
type Pair struct{ Way, From, To int64 }

// AppendPairs appends the node pairs that spans drive over, each traversal once, those included that are driven only in part. The
// spans are of one connected path, in order.
func AppendPairs(dst []Pair, spans []Span) []Pair {
	var before *Span
	for i := range spans {
		s := &spans[i]
		if s.FromM == s.ToM {
			continue // a turn, over which nothing was driven
		}
		for k := 1; k < len(s.Nodes); k++ {
			p := Pair{Way: s.Key.Way, From: s.Nodes[k-1], To: s.Nodes[k]}
			if k == 1 && before != nil && touches(before, s) && dst[len(dst)-1] == p {
				continue // the span before ended within this pair
			}
			dst = append(dst, p)
		}
		before = s
	}
	return dst
}

func touches(a, b *Span) bool { return a.Key == b.Key && a.ToM == b.FromM }

// Track puts results together again, as a consumer of them does: what is final, and the newest provisional stretch after it. The zero
// value is ready for a trip's first result.
type Track struct {
	Points []Position // final
	Legs   [][]Span   // final; a new leg after each break, and none of its spans joins the one before

	through int64 // the newest observation that is final
	open    []stretch
}

// stretch is one result's provisional path.
type stretch struct {
	seq  int64
	path []Span
}

// Apply takes the results of a trip in order.
func (t *Track) Apply(r Result) {
	if len(t.Legs) == 0 {
		t.Legs, t.through = append(t.Legs, nil), -1
	}
	last := len(t.Legs) - 1
	t.Legs[last] = append(t.Legs[last], r.FinalPath...)
	t.Points = append(t.Points, r.FinalPoints...)
	if n := len(r.FinalPoints); n > 0 {
		t.through = r.FinalPoints[n-1].Seq
	}
	if r.Break != NoBreak {
		t.Legs, t.open = append(t.Legs, nil), nil
	}
	t.open = slices.DeleteFunc(t.open, func(s stretch) bool {
		return s.seq <= t.through || r.Provisional != nil && s.seq >= r.Supersedes
	})
	if r.Provisional != nil {
		t.open = append(t.open, stretch{seq: r.Seq, path: r.Path})
	}
}

// Open is the provisional path from the last final place to the newest one.
func (t *Track) Open() []Span {
	var out []Span
	for _, s := range t.open {
		out = append(out, s.path...)
	}
	return out
}

// Paths are the connected paths driven, the provisional stretch at the end of the last.
func (t *Track) Paths() [][]Span {
	out := slices.Clone(t.Legs)
	if n := len(out); n > 0 {
		out[n-1] = append(slices.Clip(out[n-1]), t.Open()...)
	}
	return slices.DeleteFunc(out, func(p []Span) bool { return len(p) == 0 })
}
