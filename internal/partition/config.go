package partition

import (
	"fmt"
	"time"
)

// Config holds a partition's settings (A1).
type Config struct {
	Tick              time.Duration // the driver's period for Tick
	EvictSweep        time.Duration
	EvictIdle         time.Duration // a key idle for so long leaves memory
	BlockedRetry      time.Duration
	CommitRetryMin    time.Duration // a commit that could not be published: first retry, doubling
	CommitRetryMax    time.Duration
	RequestRetry      time.Duration // a job without an answer is sent again
	DrainGrace        time.Duration
	PromoteAfter      time.Duration // a published commit that no later prepare folded in is promoted
	FrontierEvery     int           // completions between frontier writes
	FrontierInterval  time.Duration
	HeartbeatInterval time.Duration
	KeyQueue          int   // observations queued a key; further ones spill
	Jobs              int   // jobs in flight a partition
	WindowRecords     int   // records in hand a partition; full: pause, resume at half
	WindowBytes       int64 // the same in bytes
	MaxAhead          int64 // offsets above the frontier; beyond: pause
	RestoreBatch      int   // keys a Restore
	QuarantineBound   int   // observations a key in quarantine; beyond: dead letters
}

// DefaultConfig gives the defaults.
func DefaultConfig() Config {
	return Config{
		Tick: 250 * time.Millisecond, EvictSweep: 30 * time.Second, EvictIdle: 10 * time.Minute,
		BlockedRetry: 5 * time.Second, CommitRetryMin: 100 * time.Millisecond, CommitRetryMax: 2 * time.Second,
		RequestRetry: 3 * time.Second, DrainGrace: 20 * time.Second, PromoteAfter: time.Second,
		FrontierEvery: 64, FrontierInterval: time.Second, HeartbeatInterval: time.Second,
		KeyQueue: 256, Jobs: 1024, WindowRecords: 8192, WindowBytes: 64 << 20, MaxAhead: 200_000,
		RestoreBatch: 500, QuarantineBound: 10_000,
	}
}

// Validate checks every limit and reports all that are out of range.
func (c Config) Validate() error {
	for _, l := range []struct {
		name     string
		got, min int64
	}{
		{"tick", int64(c.Tick), int64(time.Millisecond)},
		{"evict sweep", int64(c.EvictSweep), int64(c.Tick)},
		{"evict idle", int64(c.EvictIdle), int64(c.Tick)},
		{"blocked retry", int64(c.BlockedRetry), int64(c.Tick)},
		{"key queue", int64(c.KeyQueue), 1},
		{"jobs", int64(c.Jobs), 1},
		{"window records", int64(c.WindowRecords), 2},
		{"window bytes", c.WindowBytes, 1 << 10},
		{"max ahead", c.MaxAhead, 1},
		{"restore batch", int64(c.RestoreBatch), 1},
		{"frontier every", int64(c.FrontierEvery), 1},
	} {
		if l.got < l.min {
			return fmt.Errorf("partition: %s is %d, must be at least %d", l.name, l.got, l.min)
		}
	}
	return nil
}
