package pgstore_test

import (
	"fmt"
	"testing"

	"milepost/internal/commit"
	"milepost/internal/commit/committest"
	"milepost/internal/pgstore"
	"milepost/internal/stream"
)

// BenchmarkPrepare measures prepares of 500 rows over 8 partitions with 600 bytes of state and 400 of output, on one connection,
// each folding the key's former one: the steady state of busy keys.
func BenchmarkPrepare(b *testing.B) {
	for _, keys := range []int{500, 10_000} {
		b.Run(fmt.Sprintf("keys=%d", keys), func(b *testing.B) { benchmarkPrepare(b, keys) })
	}
}

func benchmarkPrepare(b *testing.B, keys int) {
	b.Helper()
	const rows, partitions, state, output = 500, 8, 600, 400
	s := store(b, migrated(b), func(c *pgstore.Config) { c.MaxConns = 2 })
	tenures := make([]*commit.Tenure, partitions)
	for i := range tenures {
		tenures[i] = own(b, s, committest.Part(int32(i)), "bench", 1)
	}
	base := make([]stream.Revision, keys)
	at, offset := 0, int64(1000)
	next := func() []commit.Commit {
		batch := make([]commit.Commit, rows)
		for i := range batch {
			k := at % keys
			at, offset = at+1, offset+1
			to := stream.Revision{Generation: 1, Offset: offset}
			batch[i] = commit.NewCommit(tenures[k%partitions], stream.Key(fmt.Sprintf("vehicle-%06d", k)), base[k], commit.Plan{
				Next:    commit.Checkpoint{Revision: to, Segment: 1, State: noise(state, offset)},
				Outputs: []commit.Output{{Topic: "out", Key: []byte("k"), Value: noise(output, offset)}},
			})
			base[k] = to
		}
		return batch
	}
	run := func(batch []commit.Commit) {
		verdicts, err := s.Prepare(b.Context(), batch)
		if err != nil {
			b.Fatal(err)
		}
		for _, v := range verdicts {
			if v.Err != nil {
				b.Fatal(v.Err)
			}
		}
	}
	for range keys / rows {
		run(next())
	}
	for b.Loop() {
		b.StopTimer()
		batch := next()
		b.StartTimer()
		run(batch)
	}
	b.ReportMetric(float64(rows*b.N)/b.Elapsed().Seconds(), "rows/s")
}

// noise gives bytes that do not compress.
func noise(n int, seed int64) []byte {
	b := make([]byte, n)
	x := uint64(seed)*0x9E3779B97F4A7C15 + 1
	for i := range b {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
		b[i] = byte(x)
	}
	return b
}
