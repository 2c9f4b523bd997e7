package mapmatch

import "milepost/internal/roadnet"

const (
	maxCands  = 16  // a layer
	maxLayers = 40  // that wait for finality; beside them the anchor and the newest
	maxSkips  = 128 // positions that wait for a layer, a window
	maxState  = 16 << 10
)

// cand is one place on the network that an observation may have been at.
type cand struct {
	edge  roadnet.EdgeIndex
	along int32         // cm; never behind the place that it follows on the same edge (standing still)
	cost  int32         // 1/1000 nat above the layer's best
	back  int8          // index in the layer before, -1 at the start of a stretch
	sum   int32         // 1/1000 nat: the probability of all ways that lead here, beside that of the likeliest place of the layer
	won   int32         // 1/1000 nat: the share of it that came over back
	at    roadnet.State // the edge, with what turn restrictions over several ways remember of the way here
}

// layer is an observation with its candidates in order of (cost, edge).
type layer struct {
	s     sighting
	seen  int64 // microseconds: when the vehicle was last seen here
	stood int64 // microseconds: until when it stood here
	inc   int32 // what the layer added to the best cost
	skips int   // positions that belong to it: window.skips, in order
	gone  int32 // 1/1000 nat: the probability, as in cand.sum, of the candidates that were removed; never for none
	bound bool  // a provisional stretch that was put out ends here
	n     int
	c     [maxCands]cand
}

// skip is an observation that is no layer: too near the one before to tell anything new, or taken back as an outlier.
type skip struct {
	seq, at int64
	dist    int32 // cm from the layer, never less than the skip's before; an outlier has that one's
	what    Disposition
}

// window is a state, decoded. Layers are in order of time; where final is set the first is the anchor: already announced, with one
// candidate, the place that the next stretch begins at.
type window struct {
	seq     int64    // of the next observation
	last    int64    // microseconds: of the newest observation of any kind
	seen    bool     // there was one
	good    sighting // the newest that was believed
	hasGood bool
	doubt   sighting // the newest that did not fit the stretch
	doubts  int      // in a row, doubt is the last of them
	off     int      // off the road, in a row
	final   bool
	layers  []layer
	skips   []skip
}

func (w *window) reset() { *w = window{layers: w.layers[:0], skips: w.skips[:0]} }

// cut ends the stretch; what is known of time and sequence stays.
func (w *window) cut() {
	w.layers, w.skips = w.layers[:0], w.skips[:0]
	w.final, w.hasGood, w.doubts, w.off = false, false, 0, 0
}

func (w *window) newest() *layer { return &w.layers[len(w.layers)-1] }

// grow adds an empty layer, reusing memory.
func (w *window) grow() *layer {
	if len(w.layers) < cap(w.layers) {
		w.layers = w.layers[:len(w.layers)+1]
	} else {
		w.layers = append(w.layers, layer{})
	}
	l := w.newest()
	l.s, l.seen, l.stood, l.inc, l.skips, l.gone, l.bound, l.n = sighting{}, 0, 0, 0, 0, never, false, 0
	return l
}

// chain writes into dst the candidates of every layer that lead to candidate c of layer i.
func (w *window) chain(dst []int8, i int, c int8) []int8 {
	dst = dst[:0]
	for range w.layers {
		dst = append(dst, -1)
	}
	for ; i >= 0; i-- {
		dst[i] = c
		c = w.layers[i].c[c].back
	}
	return dst
}

// drop forgets the layers before i, with their skips.
func (w *window) drop(i int) {
	n := 0
	for j := range i {
		n += w.layers[j].skips
	}
	w.skips = w.skips[:copy(w.skips, w.skips[n:])]
	w.layers = w.layers[:copy(w.layers, w.layers[i:])]
}

// prune removes the candidates that nothing can come of: before the newest two layers those that no later one follows, everywhere
// those whose predecessor is gone. The newest two stay whole, since the newest may yet turn out to be an outlier (F1: what is
// final is thereby the only thing that the rest can follow). Of the first layer only the anchor stays, where it is one (not -1).
func (w *window) prune(anchor int8, t logSum) {
	n := len(w.layers)
	var keep [maxLayers + 4][maxCands]bool
	for i := range n {
		for j := range w.layers[i].n {
			c := w.layers[i].c[j]
			keep[i][j] = i == 0 && (anchor < 0 || int(anchor) == j) || i > 0 && keep[i-1][c.back]
		}
	}
	for i := n - 3; i >= 0; i-- {
		var used [maxCands]bool
		for j := range w.layers[i+1].n {
			if keep[i+1][j] {
				used[w.layers[i+1].c[j].back] = true
			}
		}
		for j := range w.layers[i].n {
			keep[i][j] = keep[i][j] && used[j]
		}
	}
	var moved, before [maxCands]int8
	for i := range n {
		l, k := &w.layers[i], 0
		for j := range l.n {
			c := l.c[j]
			if !keep[i][j] {
				l.gone = max(t.add(l.gone, c.sum), 0)
				continue
			}
			if i > 0 {
				c.back = before[c.back]
			} else {
				c.back = -1
			}
			l.c[k], moved[j] = c, int8(k)
			k++
		}
		l.n, before = k, moved
	}
}
