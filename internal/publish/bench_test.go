package publish

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"milepost/internal/commit"
)

// BenchmarkPublish measures transactions of 100 outputs of 400 bytes over 1, 2 and 3 lanes that take turns. Run it against
// a real broker: kfake has no markers to wait for.
func BenchmarkPublish(b *testing.B) {
	brokers := realBrokers(b)
	for lanes := 1; lanes <= 3; lanes++ {
		b.Run(fmt.Sprintf("lanes=%d", lanes), func(b *testing.B) {
			r := newRig(b, brokers, func(c *Config) { c.Lanes = lanes })
			p := r.publisher("bench")
			ten := r.tenure(0, 1)
			batches := make([][]commit.Commit, 16)
			for i := range batches {
				batches[i] = r.commits(ten, int64(100*i), 100)
				for n, c := range batches[i] {
					batches[i][n] = with(c, r.output(r.topics.Matched(), ten, c.Key, c.Revision, 400))
				}
			}
			for lane := range lanes {
				r.mustPublish(p, lane, batches[0])
			}
			var next atomic.Int64
			b.ResetTimer()
			var wg sync.WaitGroup
			for lane := range lanes {
				wg.Go(func() {
					for {
						n := next.Add(1)
						if n > int64(b.N) {
							return
						}
						if _, err := p.Publish(r.ctx(), lane, batches[n%16]); err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			wg.Wait()
			b.StopTimer()
			b.ReportMetric(float64(b.Elapsed().Microseconds())/1000/float64(b.N), "ms/txn")
			b.ReportMetric(float64(b.N)*100/b.Elapsed().Seconds(), "outputs/s")
		})
	}
}
