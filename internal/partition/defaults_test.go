package partition

import (
	"testing"
	"time"
)

// A1: the defaults are those that were asked for.
func TestDefaults(t *testing.T) {
	c, shared := DefaultConfig(), DefaultCreditsConfig()
	for _, l := range []struct {
		name      string
		got, want any
	}{
		{"tick", c.Tick, 250 * time.Millisecond},
		{"eviction sweep", c.EvictSweep, 30 * time.Second},
		{"idle before eviction", c.EvictIdle, 10 * time.Minute},
		{"first commit retry", c.CommitRetryMin, 100 * time.Millisecond},
		{"longest commit retry", c.CommitRetryMax, 2 * time.Second},
		{"blocked retry", c.BlockedRetry, 5 * time.Second},
		{"request retry", c.RequestRetry, 3 * time.Second},
		{"sticky retry", c.StickyRetry, 500 * time.Millisecond},
		{"drain grace", c.DrainGrace, 20 * time.Second},
		{"parked results a key", c.ParkedResults, 4},
		{"commits before a persist", c.PersistCommits, 16},
		{"time before a persist", c.PersistAfter, 2 * time.Second},
		{"persists in flight", c.Persists, 32},
		{"completions before a frontier", c.FrontierEvery, 64},
		{"time before a frontier", c.FrontierInterval, time.Second},
		{"heartbeat", c.HeartbeatInterval, time.Second},
		{"key queue", c.KeyQueue, 256},
		{"global admission", shared.Global, Bound{Jobs: 4096, Bytes: 512 << 20}},
		{"a region's admission", shared.Region, Bound{Jobs: 1024, Bytes: 128 << 20}},
	} {
		if l.got != l.want {
			t.Errorf("%s is %v, want %v", l.name, l.got, l.want)
		}
	}
}
