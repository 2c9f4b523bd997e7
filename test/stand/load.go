package stand

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Key is the name of key i, which is in partition i modulo the partitions.
func Key(i int) string { return "k" + strconv.Itoa(i) }

// Load writes records of numbered keys at a rate, in bursts where Quiet is set.
type Load struct {
	Keys int
	Rate int // records a second
	// Busy and Quiet take turns; zero: always busy.
	Busy, Quiet time.Duration

	sent   atomic.Int64
	failed atomic.Int64
}

// Sent counts the records so far.
func (l *Load) Sent() int64 { return l.sent.Load() }

// Start begins to write in a goroutine of its own; stop ends it and waits until every record is acknowledged.
func (l *Load) Start(ctx context.Context, j *Job) (stop func() error) {
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() { l.run(ctx, j) })
	return func() error {
		cancel()
		wg.Wait()
		flush, done := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
		defer done()
		if err := j.Client.Flush(flush); err != nil {
			return fmt.Errorf("flush the load: %w", err)
		}
		if n := l.failed.Load(); n > 0 {
			return fmt.Errorf("%d records of the load were not written", n)
		}
		return nil
	}
}

func (l *Load) run(ctx context.Context, j *Job) {
	start := time.Now()
	last, owed := start, 0.0
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		now := time.Now()
		if l.Quiet > 0 && now.Sub(start)%(l.Busy+l.Quiet) > l.Busy {
			last = now
			continue
		}
		// What a stall held back is not made up for at once.
		owed = min(owed+now.Sub(last).Seconds()*float64(l.Rate), float64(l.Rate))
		last = now
		for ; owed >= 1; owed-- {
			n := l.sent.Add(1)
			key := rand.IntN(l.Keys) //nolint:gosec // no secret
			record := &kgo.Record{
				Topic: j.Raw, Partition: int32(key) % j.Partitions, Key: []byte(Key(key)), Value: strconv.AppendInt(nil, n, 10),
			}
			j.Client.Produce(context.WithoutCancel(ctx), record, func(_ *kgo.Record, err error) {
				if err != nil {
					l.failed.Add(1)
				}
			})
		}
	}
}
