package mapmatch

import (
	"encoding/binary"
	"hash/crc32"
	"math"
	"slices"

	"milepost/internal/roadnet"
)

// stateVersion is the first byte of a state. Invariant 5 of the package has the layout.
const stateVersion = 3

// The versions before are read, too. Where something is missing, the same is matched but for what it says, until their layers have left
// the window.
const (
	oldestVersion   = 1 // has no probabilities (layer.gone, cand.sum, cand.won): confidences go by the likeliest way to each place alone
	previousVersion = 2 // does not have what turn restrictions over several ways remember (cand.at): they begin anew
)

const crcSize = 4

// encode appends the window as a state: version, graph, configuration, the window, CRC32C.
func (m *Matcher) encode(dst []byte) []byte {
	w := &m.w
	b := m.buf[:0]
	b = append(b, stateVersion)
	b = append(b, m.graph[:]...)
	b = binary.LittleEndian.AppendUint32(b, m.config)
	b = binary.AppendUvarint(b, uint64(w.seq))
	flags := uint64(0)
	for i, set := range []bool{w.seen, w.hasGood, w.doubts > 0, w.final} {
		if set {
			flags |= 1 << i
		}
	}
	b = binary.AppendUvarint(b, flags)
	b = binary.AppendVarint(b, w.last)
	b = binary.AppendUvarint(b, uint64(w.off))
	base := sighting{seq: w.seq, at: w.last}
	if w.hasGood {
		b = appendSighting(b, w.good, base)
	}
	if w.doubts > 0 {
		b = binary.AppendUvarint(b, uint64(w.doubts))
		b = appendSighting(b, w.doubt, base)
	}
	b = binary.AppendUvarint(b, uint64(len(w.layers)))
	if len(w.layers) > 0 {
		b = w.appendLayers(b, base)
	}
	b = binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, castagnoli()))
	m.buf = b
	return append(slices.Grow(dst, len(b)), b...)
}

func castagnoli() *crc32.Table { return crc32.MakeTable(crc32.Castagnoli) }

func appendSighting(b []byte, s, base sighting) []byte {
	b = binary.AppendVarint(b, base.seq-s.seq)
	b = binary.AppendVarint(b, base.at-s.at)
	b = binary.AppendVarint(b, int64(s.place.lon)-int64(base.place.lon))
	b = binary.AppendVarint(b, int64(s.place.lat)-int64(base.place.lat))
	b = binary.AppendVarint(b, int64(s.accuracy))
	b = binary.AppendVarint(b, int64(s.speed))
	return binary.AppendVarint(b, int64(s.heading))
}

func (w *window) appendLayers(b []byte, base sighting) []byte {
	skips := w.skips
	for i := range w.layers {
		l := &w.layers[i]
		b = appendSighting(b, l.s, base)
		base = l.s
		bound := uint64(0)
		if l.bound {
			bound = 1
		}
		b = binary.AppendUvarint(b, uint64(l.n)<<1|bound)
		b = binary.AppendUvarint(b, uint64(l.inc))
		b = binary.AppendUvarint(b, uint64(l.gone))
		b = binary.AppendUvarint(b, uint64(l.seen-l.s.at))
		b = binary.AppendUvarint(b, uint64(l.stood-l.s.at))
		edge := int64(0)
		for _, c := range l.c[:l.n] {
			b = binary.AppendVarint(b, int64(c.edge)-edge)
			b = binary.AppendUvarint(b, uint64(c.along))
			b = binary.AppendUvarint(b, uint64(c.cost))
			b = c.appendWay(b)
			b = binary.AppendUvarint(b, uint64(c.sum))
			b = binary.AppendUvarint(b, uint64(c.won))
			edge = int64(c.edge)
		}
		b = binary.AppendUvarint(b, uint64(l.skips))
		last := skip{seq: l.s.seq, at: l.s.at}
		for _, sk := range skips[:l.skips] {
			b = binary.AppendUvarint(b, uint64(sk.seq-last.seq)<<3|uint64(sk.what))
			b = binary.AppendUvarint(b, uint64(sk.at-last.at))
			b = binary.AppendUvarint(b, uint64(sk.dist-last.dist))
			last = sk
		}
		skips = skips[l.skips:]
	}
	return b
}

// appendWay writes how a candidate was reached: over which one before, and, in the low bit, whether turn restrictions remember something.
func (c *cand) appendWay(b []byte) []byte {
	if c.at == roadnet.State(c.edge) {
		return binary.AppendUvarint(b, uint64(c.back+1)<<1)
	}
	return binary.AppendUvarint(binary.AppendUvarint(b, uint64(c.back+1)<<1|1), uint64(c.at))
}

// way reads what appendWay wrote.
func (r *reader) way(c *cand, g *roadnet.Graph) {
	c.at = roadnet.State(c.edge)
	if r.version <= previousVersion {
		c.back = int8(r.int(-1, maxCands-1))
		return
	}
	v := r.uint(maxCands<<1 | 1)
	c.back = int8(v>>1) - 1
	if v&1 != 0 {
		c.at = roadnet.State(r.uint(math.MaxInt32))
		r.check(g.IsOn(c.at, c.edge) && c.at != roadnet.State(c.edge))
	}
}

// decode reads a state into the window. Every number is checked, so that a damaged state with a valid checksum is refused too.
func (m *Matcher) decode(state []byte) error {
	w := &m.w
	w.reset()
	if state == nil {
		return nil
	}
	const head = 1 + 8 + 4
	n := len(state) - crcSize
	if n < head || len(state) > maxState || state[0] < oldestVersion || state[0] > stateVersion || [8]byte(state[1:9]) != m.graph ||
		binary.LittleEndian.Uint32(state[9:]) != m.config || binary.LittleEndian.Uint32(state[n:]) != crc32.Checksum(state[:n], castagnoli()) {
		return ErrForeignState
	}
	r := reader{b: state[head:n], version: state[0]}
	w.seq = int64(r.uint(1 << 62))
	flags := r.uint(15)
	w.seen, w.hasGood, w.final = flags&1 != 0, flags&2 != 0, flags&8 != 0
	w.last = r.int(-maxMicro, maxMicro)
	w.off = int(r.uint(maxOff))
	base := sighting{seq: w.seq, at: w.last}
	if w.hasGood {
		w.good = r.sighting(base)
	}
	if flags&4 != 0 {
		w.doubts = int(r.uint(maxDoubts))
		w.doubt = r.sighting(base)
		r.check(w.doubts > 0)
	}
	layers := int(r.uint(maxLayers + 3))
	for i := 0; i < layers && !r.bad; i++ {
		base = m.decodeLayer(&r, i, base)
	}
	// The parts must agree: a stretch has a newest sighting, and an anchor is one place.
	r.check(w.hasGood == (layers > 0) && (layers == 0 || w.seen) && len(w.skips) <= maxSkips+1)
	r.check(!w.final || layers > 0 && !r.bad && w.layers[0].n == 1)
	if r.bad || len(r.b) > 0 {
		w.reset()
		return ErrForeignState
	}
	return nil
}

func (m *Matcher) decodeLayer(r *reader, i int, base sighting) sighting {
	w := &m.w
	l := w.grow()
	l.s = r.sighting(base)
	r.check(l.s.at <= w.last && l.s.seq < w.seq)
	if i > 0 {
		r.check(l.s.at > w.layers[i-1].seen && l.s.seq > base.seq)
	}
	if n := len(w.skips); n > 0 {
		r.check(l.s.seq > w.skips[n-1].seq && l.s.at > w.skips[n-1].at)
	}
	n := r.uint(maxCands<<1 | 1)
	l.n, l.bound = int(n>>1), n&1 != 0
	r.check(l.n > 0)
	l.inc = int32(r.uint(never))
	if r.version > oldestVersion { // grow has set it to none
		l.gone = int32(r.uint(never))
	}
	l.seen = l.s.at + int64(r.uint(2*maxMicro))
	l.stood = l.s.at + int64(r.uint(2*maxMicro))
	r.check(l.seen <= w.last && l.stood <= l.seen)
	edge := int64(0)
	for j := range l.n {
		c := &l.c[j]
		edge += r.int(-1<<31, 1<<31)
		if r.check(edge >= 0 && edge < int64(m.g.Edges())); r.bad {
			return base
		}
		c.edge = roadnet.EdgeIndex(edge)
		c.along = int32(r.uint(uint64(m.length(c.edge))))
		c.cost = int32(r.uint(never - 1))
		r.way(c, m.g)
		if c.sum, c.won = c.cost, 0; r.version > oldestVersion {
			c.sum = int32(r.uint(never - 1))
			c.won = int32(r.uint(never - 1))
		}
		if i == 0 {
			r.check(c.back == -1)
		} else {
			r.check(c.back >= 0 && int(c.back) < w.layers[i-1].n)
		}
	}
	l.skips = int(r.uint(maxSkips + 1))
	last := skip{seq: l.s.seq, at: l.s.at}
	for k := 0; k < l.skips && !r.bad; k++ {
		d := r.uint(1 << 62)
		sk := skip{seq: last.seq + int64(d>>3), at: last.at + int64(r.uint(2*maxMicro)), what: Disposition(d & 7)}
		sk.dist = last.dist + int32(r.uint(maxCrow))
		r.check(sk.what == Standing || sk.what == Interpolated || sk.what == Outlier)
		r.check(sk.seq > last.seq && sk.seq < w.seq && sk.at > last.at && sk.at <= w.last && sk.dist >= last.dist && sk.dist <= maxCrow)
		w.skips = append(w.skips, sk)
		last = sk
	}
	return l.s
}

// maxMicro bounds times, in microseconds, to some ten thousand years around 1970.
const maxMicro = 1 << 58

// reader reads a state's numbers. After the first bad one everything reads as zero.
type reader struct {
	b       []byte
	version byte
	bad     bool
}

func (r *reader) check(ok bool) { r.bad = r.bad || !ok }

func (r *reader) uint(most uint64) uint64 {
	if r.bad {
		return 0
	}
	v, n := binary.Uvarint(r.b)
	if n <= 0 || v > most {
		r.bad = true
		return 0
	}
	r.b = r.b[n:]
	return v
}

func (r *reader) int(least, most int64) int64 {
	if r.bad {
		return 0
	}
	v, n := binary.Varint(r.b)
	if n <= 0 || v < least || v > most {
		r.bad = true
		return 0
	}
	r.b = r.b[n:]
	return v
}

func (r *reader) sighting(base sighting) sighting {
	s := sighting{seq: base.seq - r.int(-1<<61, 1<<61), at: base.at - r.int(-2*maxMicro, 2*maxMicro)}
	lon := int64(base.place.lon) + r.int(-1<<32, 1<<32)
	lat := int64(base.place.lat) + r.int(-1<<32, 1<<32)
	r.check(s.seq >= 0 && s.at >= -maxMicro && s.at <= maxMicro && lon >= -180e7 && lon <= 180e7 && lat >= -90e7 && lat <= 90e7)
	s.place = place{lon: int32(lon), lat: int32(lat)}
	s.accuracy = int32(r.int(unknown, 1_000_000))
	s.speed = int32(r.int(unknown, 100_000))
	s.heading = int32(r.int(unknown, 359))
	return s
}
