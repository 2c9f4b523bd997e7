//go:build linux

package main

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

// load writes the raw topic at a steady rate: values of no meaning, a little poison, and keys that will go to quarantine.
type load struct {
	client *kgo.Client
	topic  string
	rate   int // records a second
	refuse bool

	gate   sync.Mutex // held while a record is handed over; whoever holds it stops the load
	failed atomic.Int64
	sent   int64
}

const keys = 120

// run writes until ctx ends, then waits until all is acknowledged or flush ends.
func (l *load) run(ctx, flush context.Context, seed uint64) error {
	r := rand.New(rand.NewPCG(seed, 1)) //nolint:gosec // no secret
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	last, owed := time.Now(), 0.0
	for refused := 0; ; {
		select {
		case <-ctx.Done():
			if err := l.client.Flush(flush); err != nil {
				return fmt.Errorf("flush the raw records: %w", err)
			}
			if n := l.failed.Load(); n > 0 {
				return fmt.Errorf("%d raw records could not be written", n)
			}
			return nil
		case now := <-tick.C:
			// What a stall held back is not made up for.
			owed = min(owed+now.Sub(last).Seconds()*float64(l.rate), float64(l.rate)/4)
			last = now
		}
		for ; owed >= 1; owed-- {
			key, value := "k"+strconv.Itoa(r.IntN(keys)), strconv.Itoa(r.IntN(1_000_000))
			switch dice := r.IntN(1000); {
			case dice < 4:
				value = "poison " + value
			case dice < 5 && l.refuse:
				refused++
				key, value = "q"+strconv.Itoa(refused), "refuse"
			case dice < 12 && l.refuse: // before and after it is refused
				key = "q" + strconv.Itoa(1+r.IntN(refused+1))
			}
			l.send(ctx, key, value)
		}
	}
}

func (l *load) send(ctx context.Context, key, value string) {
	l.gate.Lock()
	defer l.gate.Unlock()
	l.sent++
	// A record that was taken is written in the end, whatever becomes of ctx.
	l.client.Produce(context.WithoutCancel(ctx), &kgo.Record{Topic: l.topic, Key: []byte(key), Value: []byte(value)}, func(_ *kgo.Record, err error) {
		if err != nil {
			l.failed.Add(1)
		}
	})
}

// hold stops the load until the function it gives is called; all that was written is acknowledged then.
func (l *load) hold(ctx context.Context) (goOn func(), err error) {
	l.gate.Lock()
	if err := l.client.Flush(ctx); err != nil {
		l.gate.Unlock()
		return nil, fmt.Errorf("flush the raw records: %w", err)
	}
	return l.gate.Unlock, nil
}
