package partition

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"milepost/internal/stream"
)

// BenchmarkObservation is the machine's cost of one observation from arrival to the frontier, all inputs together, at
// several numbers of keys in memory.
func BenchmarkObservation(b *testing.B) {
	for _, keys := range []int{100, 10_000, 100_000} {
		b.Run(fmt.Sprintf("keys=%d", keys), func(b *testing.B) {
			w := newInstant(DefaultConfig())
			names := make([]string, keys)
			for i := range names {
				names[i] = fmt.Sprintf("vehicle-%d", i)
			}
			batch := make([]stream.Record, 0, 100)
			offset := int64(0)
			b.ReportAllocs()
			for b.Loop() {
				batch = append(batch[:0], toyRecord(offset, names[int(offset)%keys], "w"))
				w.give(Arrived{Records: batch})
				if offset++; offset%1000 == 0 {
					w.now = w.now.Add(250 * time.Millisecond)
					w.give(Tick{})
				}
			}
		})
	}
}

// BenchmarkIdleKey reports what an idle key with 600 bytes of state keeps in memory.
func BenchmarkIdleKey(b *testing.B) {
	const keys = 100_000
	for b.Loop() {
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		w := newInstant(DefaultConfig())
		for i := range keys {
			w.give(Arrived{Records: []stream.Record{toyRecord(int64(i), fmt.Sprintf("vehicle-%d", i), "w")}})
		}
		for range 3 {
			w.now = w.now.Add(2 * time.Second)
			w.give(Tick{})
		}
		runtime.GC()
		runtime.ReadMemStats(&after)
		b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/keys, "B/key")
		runtime.KeepAlive(w)
	}
}
