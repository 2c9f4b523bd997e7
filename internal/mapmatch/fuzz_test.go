package mapmatch

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"math"
	"testing"
	"time"

	"milepost/internal/roadnet"
)

// seal gives a state a valid head and checksum, so that the fuzzer reaches what lies behind them.
func seal(m *Matcher, body []byte) []byte {
	b := append([]byte{stateVersion}, m.graph[:]...)
	b = binary.LittleEndian.AppendUint32(b, m.config)
	b = append(b, body...)
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, castagnoli()))
}

// A5, M44: whatever a state holds, it is refused by its kind of error or can be gone on with; what was read is written back the same,
// and nothing panics, loops or allocates without bound.
func FuzzState(f *testing.F) {
	m := town(f)
	mt, err := New(m.Graph, DefaultConfig())
	if err != nil {
		f.Fatal(err)
	}
	for seed := range uint64(8) {
		var state []byte
		for _, o := range wander(m, seed, 40) {
			if state, _, err = mt.Push(state, o); err != nil {
				f.Fatal(err)
			}
			f.Add(state[13:len(state)-crcSize], 3.0, 5.0, int64(5))
		}
	}
	f.Fuzz(func(t *testing.T, body []byte, x, y float64, dt int64) {
		state := seal(mt, body)
		if err := mt.decode(state); err != nil {
			if !errors.Is(err, ErrForeignState) {
				t.Fatalf("error of another kind: %v", err)
			}
			return
		}
		if got := mt.encode(nil); !bytes.Equal(got, state) && mt.decode(got) != nil {
			t.Fatal("a state that was read is written as one that cannot be")
		}
		at := mt.w.last/1e6 + dt%1000
		o := Observation{Time: time.Unix(at, 0), Point: m.Point(math.Mod(x, 1000), math.Mod(y, 1000)), AccuracyM: x, SpeedMPS: y, Heading: x}
		next, _, err := mt.Push(state, o)
		if err != nil {
			t.Fatalf("push on a state that was read: %v", err)
		}
		if next, _, err = mt.Push(next, Observation{Time: o.Time.Add(time.Second), Point: o.Point}); err != nil {
			t.Fatalf("push on the state after it: %v", err)
		}
		if _, err := mt.Flush(next); err != nil {
			t.Fatalf("flush: %v", err)
		}
	})
}

// M25: no observation panics or stops the matcher, whatever its numbers.
func FuzzObservation(f *testing.F) {
	m := town(f)
	mt, err := New(m.Graph, DefaultConfig())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(9.0, 48.0, 5.0, 3.0, 90.0, int64(1))
	f.Add(math.NaN(), math.Inf(1), -1.0, math.NaN(), 1e300, int64(math.MaxInt64))
	f.Add(180.0, -90.0, 0.0, 0.0, -720.5, int64(math.MinInt64))
	f.Fuzz(func(t *testing.T, lon, lat, accuracy, speed, heading float64, at int64) {
		state, _, err := mt.Push(nil, Observation{Time: time.Unix(1_700_000_000, 0), Point: m.Point(0, 60)})
		if err != nil {
			t.Fatal(err)
		}
		o := Observation{Time: time.Unix(at, 0), Point: roadnet.Point{Lon: lon, Lat: lat}, AccuracyM: accuracy, SpeedMPS: speed, Heading: heading}
		for range 2 {
			if state, _, err = mt.Push(state, o); err != nil {
				t.Fatal(err)
			}
			o.Time = o.Time.Add(time.Second)
		}
		if _, err := mt.Flush(state); err != nil {
			t.Fatal(err)
		}
	})
}
