package partition

import (
	"errors"
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
	StickyRetry       time.Duration // the same after a request without the trip
	ParkedResults     int           // results a key that came before their job; 0: none
	DrainGrace        time.Duration
	PromoteAfter      time.Duration // a published commit that no later prepare folded in is promoted
	FrontierEvery     int           // completions between frontier writes
	FrontierInterval  time.Duration
	HeartbeatInterval time.Duration
	KeyQueue          int   // observations queued a key; further ones spill
	Run               int   // observations of a key a job and a commit, where so many wait (F21); 1: each has its own
	RunBytes          int64 // the same in bytes, of their records and of their outputs
	Jobs              int   // jobs in flight a partition
	WindowRecords     int   // records in hand a partition; full: pause, resume at half
	WindowBytes       int64 // the same in bytes
	MaxAhead          int64 // offsets above the frontier; beyond: pause
	RefetchRecords    int   // room kept for refetched records, beside the window
	RestoreBatch      int   // keys a Restore, rows a Quarantine, promotions a Promote
	Restores          int   // Restore effects out at once; meanwhile other keys gather
	DeadLetterBytes   int64 // a dead letter with more leaves out of its record what does not fit: it must be publishable
	QuarantineBound   int   // observations a key that was not in quarantine puts there; beyond: dead letters. The store has a bound of its own
	Deferred          bool  // publish first, persist dirty checkpoints in batches (A13)
	PersistCommits    int   // commits of a key between persists
	PersistAfter      time.Duration
	Persists          int   // keys whose persist is out at once
	Reasons           Lists // the workload's, for statistics
}

// DefaultConfig gives the defaults.
func DefaultConfig() Config {
	return Config{
		Tick: 250 * time.Millisecond, EvictSweep: 30 * time.Second, EvictIdle: 10 * time.Minute,
		BlockedRetry: 5 * time.Second, CommitRetryMin: 100 * time.Millisecond, CommitRetryMax: 2 * time.Second,
		RequestRetry: 3 * time.Second, StickyRetry: 500 * time.Millisecond, ParkedResults: 4, DrainGrace: 20 * time.Second, PromoteAfter: time.Second,
		FrontierEvery: 64, FrontierInterval: time.Second, HeartbeatInterval: time.Second,
		KeyQueue: 256, Run: 64, RunBytes: 1 << 20, Jobs: 1024, WindowRecords: 8192, WindowBytes: 64 << 20, MaxAhead: 200_000,
		RefetchRecords: 1024, RestoreBatch: 500, Restores: 4, DeadLetterBytes: 900_000, QuarantineBound: 10_000,
		PersistCommits: 16, PersistAfter: 2 * time.Second, Persists: 32,
	}
}

// Validate checks every limit and reports all that are out of range.
func (c Config) Validate() error {
	var errs []error
	for _, l := range []struct {
		name     string
		got, min int64
	}{
		{"tick", int64(c.Tick), int64(time.Millisecond)},
		{"evict sweep", int64(c.EvictSweep), int64(c.Tick)},
		{"evict idle", int64(c.EvictIdle), int64(c.Tick)},
		{"blocked retry", int64(c.BlockedRetry), int64(c.Tick)},
		{"commit retry min", int64(c.CommitRetryMin), int64(time.Millisecond)},
		{"commit retry max", int64(c.CommitRetryMax), int64(c.CommitRetryMin)},
		{"request retry", int64(c.RequestRetry), int64(c.Tick)},
		{"sticky retry", int64(c.StickyRetry), int64(c.Tick)},
		{"parked results", int64(c.ParkedResults), 0},
		{"drain grace", int64(c.DrainGrace), 0},
		{"promote after", int64(c.PromoteAfter), 0},
		{"frontier every", int64(c.FrontierEvery), 1},
		{"frontier interval", int64(c.FrontierInterval), int64(time.Millisecond)},
		{"heartbeat interval", int64(c.HeartbeatInterval), int64(time.Millisecond)},
		{"key queue", int64(c.KeyQueue), 1},
		{"run", int64(c.Run), 1},
		{"run bytes", c.RunBytes, 1},
		{"jobs", int64(c.Jobs), 1},
		{"window records", int64(c.WindowRecords), 2},
		{"window bytes", c.WindowBytes, 1 << 10},
		{"max ahead", c.MaxAhead, 1},
		{"refetch records", int64(c.RefetchRecords), 1},
		{"restore batch", int64(c.RestoreBatch), 1},
		{"restores", int64(c.Restores), 1},
		{"persist commits", int64(c.PersistCommits), 1},
		{"persist after", int64(c.PersistAfter), int64(time.Millisecond)},
		{"persists", int64(c.Persists), 1},
		{"dead letter bytes", c.DeadLetterBytes, 1 << 10},
		{"quarantine bound", int64(c.QuarantineBound), 1}, // the first one takes the poison prepared commit out of its row
	} {
		if l.got < l.min {
			errs = append(errs, fmt.Errorf("partition: %s is %d, must be at least %d", l.name, l.got, l.min))
		}
	}
	return errors.Join(errs...)
}
