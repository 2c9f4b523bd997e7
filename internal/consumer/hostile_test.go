package consumer

import (
	"bytes"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kgo"
)

// bomb writes records of the given sizes as one compressed batch of zeros.
func (r *rig) bomb(codec kgo.CompressionCodec, sizes ...int) {
	r.t.Helper()
	cl := r.newClient(kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerBatchCompression(codec), kgo.ProducerBatchMaxBytes(32<<20),
		kgo.ManualFlushing(), kgo.BrokerMaxWriteBytes(64<<20))
	defer cl.Close()
	for i, n := range sizes {
		cl.Produce(r.t.Context(), &kgo.Record{Topic: rawTopic, Key: fmt.Appendf(nil, "bomb%d", i), Value: make([]byte, n)}, func(_ *kgo.Record, err error) {
			if err != nil {
				r.t.Error(err)
			}
		})
	}
	if err := cl.Flush(r.t.Context()); err != nil {
		r.t.Fatal(err)
	}
}

// P26, P28, A3: a compressed batch that comes to more than the bound is not held: its records are dead letters without their bytes, and
// what stands before and after it is done, in order. The same where its records were spilled and are fetched again.
func TestZipBomb(t *testing.T) {
	codecs := map[string]kgo.CompressionCodec{
		// Not zstd: its decoder's finalizer must not run outside of the bubble of virtual time.
		"gzip": kgo.GzipCompression(), "snappy": kgo.SnappyCompression(), "lz4": kgo.Lz4Compression(),
	}
	for name, codec := range codecs {
		t.Run(name, func(t *testing.T) {
			bubble(t, 1, func(r *rig) {
				t := r.t
				r.produce(0, numbered("a", 1, 3)...)
				r.bomb(codec, 1<<20, 1<<20, 1<<20)
				r.produce(0, numbered("a", 4, 3)...)
				p := r.start("p1", func(c *Config, _ *Deps) {
					c.InflatedBytes = 1 << 20
					c.Partition.KeyQueue = 2 // the third of the batch spills
				})
				r.eventually("all is done", func() bool { return r.frontier(0) == 9 })
				if err := p.stop(); err != nil {
					t.Error(err)
				}
				if diff := cmp.Diff([]string{"a=1", "a=2", "a=3", "a=4", "a=5", "a=6"}, r.values("a")); diff != "" {
					t.Errorf("outputs (-want +got):\n%s", diff)
				}
				dead := 0
				for _, v := range r.broker.Values() {
					if !strings.HasPrefix(v, "a=") {
						dead++
					}
				}
				if dead != 3 {
					t.Errorf("%d dead letters, want those of the batch's 3 records; published: %q", dead, r.broker.Values())
				}
				if !p.log.has("a batch of records is unreadable") {
					t.Error("nobody was told")
				}
			})
		})
	}
}

// P28: thousands of small batches, each within the bound, together come to no more than the bound and one batch between two polls, and all are read.
func TestManyBatchesInflate(t *testing.T) {
	bubble(t, 1, func(r *rig) {
		t := r.t
		const batches, size, bound = 64, 1 << 20, 4 << 20
		for range batches {
			r.bomb(kgo.GzipCompression(), size)
		}
		inflater, err := newInflater(bound)
		if err != nil {
			t.Fatal(err)
		}
		cl := r.newClient(kgo.ConsumeTopics(rawTopic), kgo.WithDecompressor(inflater), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
		defer cl.Close()
		var offsets []int64
		for len(offsets) < batches {
			fetches := cl.PollFetches(t.Context())
			inflater.polled()
			got := 0
			fetches.EachRecord(func(k *kgo.Record) { got += len(k.Value); offsets = append(offsets, k.Offset) })
			if got > bound+size {
				t.Errorf("a poll gave %d bytes, the bound is %d and one batch", got, bound)
			}
			fetches.EachError(func(_ string, _ int32, err error) {
				if !errors.Is(err, errInflated) {
					t.Error(err)
				}
			})
		}
		if !slices.IsSorted(offsets) || len(slices.Compact(offsets)) != batches {
			t.Errorf("read offsets %v, want 0 to %d", offsets, batches-1)
		}
	})
}

// P28: what is refused is not built first: memory allocated for a batch of 256 MiB stays near the bound.
func TestZipBombIsNotBuilt(t *testing.T) {
	for name, codec := range map[string]kgo.CompressionCodec{
		"gzip": kgo.GzipCompression(), "snappy": kgo.SnappyCompression(), "lz4": kgo.Lz4Compression(), "zstd": kgo.ZstdCompression(),
	} {
		compressor, err := kgo.DefaultCompressor(codec)
		if err != nil {
			t.Fatal(err)
		}
		packed, kind := compressor.Compress(new(bytes.Buffer), make([]byte, 256<<20))
		packed = slices.Clone(packed)
		inflater, err := newInflater(1 << 20)
		if err != nil {
			t.Fatal(err)
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err = inflater.Decompress(packed, kind)
		runtime.ReadMemStats(&after)
		if !errors.Is(err, kgo.ErrMaxDecompress) {
			t.Errorf("%s: error %v, want that it is too large", name, err)
		}
		if got := after.TotalAlloc - before.TotalAlloc; got > 32<<20 {
			t.Errorf("%s: %d bytes packed made it allocate %d, the bound is 1 MiB", name, len(packed), got)
		}
	}
}

// P28: a batch that claims more records than can be dead letters stops its partition, and says how to go on.
func TestBatchOfTooManyRecords(t *testing.T) {
	bubble(t, 1, func(r *rig) {
		t := r.t
		w := handWorker(t, r, 10)
		w.s.c.cfg.InflatedBytes = 1 << 20
		w.s.assigned, w.s.seeks = map[int32]*slot{0: {worker: w}}, map[int32]*worker{}
		w.s.skipUnreadable(&kgo.ErrDecompressTooLarge{Topic: rawTopic, Offset: 10, NextOffset: 10 + maxUnreadable + 1})
		err := <-w.stops
		if !stoppedForGood(err) {
			t.Errorf("%v does not stop it for good", err)
		}
		if want := "orchestrator partition seek --partition 0 --offset 100011"; !strings.Contains(err.Error(), want) {
			t.Errorf("error %q does not say %q", err, want)
		}
	})
}

// P10, P14: a batch of an older position, or above a gap that nothing has shown, is not taken for what follows; in the middle of one begins what does.
func TestOfferUnreadable(t *testing.T) {
	bubble(t, 1, func(r *rig) {
		t := r.t
		w := handWorker(t, r, 100)
		batch := func(offset, next int64) *kgo.ErrDecompressTooLarge {
			return &kgo.ErrDecompressTooLarge{Topic: rawTopic, Offset: offset, NextOffset: next}
		}
		for _, step := range []struct {
			name         string
			offset, next int64
			want         []int64
		}{
			{"older", 90, 100, nil},
			{"from its middle on", 98, 102, []int64{100, 101}},
			{"the next", 102, 104, []int64{102, 103}},
			{"above a gap", 110, 112, nil},
		} {
			w.offerUnreadable(batch(step.offset, step.next), 1<<20)
			if diff := cmp.Diff(step.want, arrived(w)); diff != "" {
				t.Errorf("%s: (-want +got):\n%s", step.name, diff)
			}
		}
		w.sought()
		w.offerUnreadable(batch(110, 112), 1<<20)
		if diff := cmp.Diff([]int64{110, 111}, arrived(w)); diff != "" {
			t.Errorf("shown again: (-want +got):\n%s", diff)
		}
	})
}
