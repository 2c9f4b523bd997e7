package mapmatch

import (
	"encoding/binary"
	"hash/crc32"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// asPrevious writes a state as an earlier version did, of which there are two.
func asPrevious(t *testing.T, m *Matcher, state []byte, version byte) []byte {
	t.Helper()
	if err := m.decode(state); err != nil {
		t.Fatal(err)
	}
	w := &m.w
	b := append([]byte{version}, m.graph[:]...)
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
		if version > oldestVersion {
			b = binary.AppendUvarint(b, uint64(l.gone))
		}
		b = binary.AppendUvarint(b, uint64(l.seen-l.s.at))
		b = binary.AppendUvarint(b, uint64(l.stood-l.s.at))
		edge := int64(0)
		for _, c := range l.c[:l.n] {
			b = binary.AppendVarint(b, int64(c.edge)-edge)
			b = binary.AppendUvarint(b, uint64(c.along))
			b = binary.AppendUvarint(b, uint64(c.cost))
			b = binary.AppendVarint(b, int64(c.back))
			if version > oldestVersion {
				b = binary.AppendUvarint(binary.AppendUvarint(b, uint64(c.sum)), uint64(c.won))
			}
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
	return sealed(b)
}

// sealed adds the checksum.
func sealed(b []byte) []byte {
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, castagnoli()))
}

// M44, A5: a state that the oldest version has written is gone on with, wherever in a drive the versions change: the same is matched and the same
// becomes final, only confidences are rougher for a while. What is written then is of this version.
func TestM44_PreviousVersionIsRead(t *testing.T) {
	m := town(t)
	mt, err := New(m.Graph, DefaultConfig())
	if err != nil {
		t.Fatal(err)
	}
	rough := cmpopts.IgnoreFields(Position{}, "Confidence")
	for seed := range uint64(6) {
		all := wander(m, 500+seed, 60)
		want := rerun(t, mt, all)
		for _, at := range []int{1, 7, 30, 59} {
			var state []byte
			for i, o := range all {
				if i == at {
					state = asPrevious(t, mt, state, oldestVersion)
				}
				next, got, err := mt.Push(state, o)
				if err != nil {
					t.Fatalf("seed %d, versions change at %d: push %d: %v", seed, at, i, err)
				}
				if diff := cmp.Diff(want[i], got, rough); diff != "" {
					t.Fatalf("seed %d, versions change at %d: push %d (-want +got):\n%s", seed, at, i, diff)
				}
				if state = next; state[0] != stateVersion {
					t.Fatalf("push %d wrote version %d", i, state[0])
				}
			}
			if _, err := mt.Flush(asPrevious(t, mt, state, oldestVersion)); err != nil {
				t.Fatalf("flush of a state of the version before: %v", err)
			}
		}
	}
}
