package roadnet

import (
	"bufio"
	"crypto/sha256"
	"encoding/binary"
	"hash"
)

// formatVersion is part of the graph's hash: change it with every change of how ways are cut, numbered or measured.
const formatVersion = "roadnet-2"

// hashGraph covers all that a graph was made of. Lengths, the index and the components follow from it.
func hashGraph(g *Graph) (sum [32]byte) {
	h := sha256.New()
	w := digest{w: bufio.NewWriterSize(h, 1<<16), h: h}
	w.text(formatVersion)
	w.text(tagVersion)
	w.text(g.profile)
	w.numbers(int64(g.vehicles), int64(len(g.nodeID)), int64(len(g.edges)), int64(len(g.vertices)), int64(len(g.turns.keys)), int64(len(g.turns.edgeOf)))
	for i := range g.edges {
		e := &g.edges[i]
		w.numbers(int64(e.From), int64(e.To), e.Way, int64(e.SpeedKMH), int64(e.Lanes), int64(e.Layer), int64(e.Class), int64(e.Flags),
			int64(e.Access), int64(e.Private), int64(e.Contra), int64(g.shape[i]))
	}
	for _, off := range g.geomOff {
		w.numbers(int64(off))
	}
	for i, v := range g.vertices {
		w.numbers(int64(v.lon), int64(v.lat), g.vertexNode[i])
	}
	for i, k := range g.turns.keys {
		r := g.turns.rules[i]
		w.numbers(int64(k), int64(r.next), int64(r.ban), int64(r.wall))
	}
	for _, e := range g.turns.edgeOf {
		w.numbers(int64(e))
	}
	return w.sum()
}

// digest writes to a hash, whose writes never fail.
type digest struct {
	w   *bufio.Writer
	h   hash.Hash
	buf [8]byte
}

func (d *digest) text(s string) {
	d.numbers(int64(len(s)))
	_, _ = d.w.WriteString(s)
}

func (d *digest) numbers(ns ...int64) {
	for _, n := range ns {
		binary.LittleEndian.PutUint64(d.buf[:], uint64(n))
		_, _ = d.w.Write(d.buf[:])
	}
}

func (d *digest) sum() (sum [32]byte) {
	_ = d.w.Flush()
	d.h.Sum(sum[:0])
	return sum
}
