package consumer

import (
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"milepost/internal/commit"
	"milepost/internal/partition"
)

// StartPolicy says where a group without a frontier and without a committed offset begins.
type StartPolicy string

// The policies.
const (
	StartEarliest StartPolicy = "earliest"
	StartLatest   StartPolicy = "latest"
)

// Protocol is how the group divides the partitions.
type Protocol string

// The protocols.
const (
	// Classic: the members divide, cooperative-sticky.
	Classic Protocol = "classic"
	// ConsumerGroup: the broker divides (KIP-848); brokers from 4.3.
	ConsumerGroup Protocol = "consumer"
)

// DataLossPolicy says what happens where retention has overtaken the frontier.
type DataLossPolicy string

// The policies.
const (
	DataLossStop  DataLossPolicy = "stop"  // the partition stops with an error that names both offsets
	DataLossReset DataLossPolicy = "reset" // it goes on, and each key that had history begins anew with a data loss reset
)

// Config holds the consumer's settings.
type Config struct {
	Group       string
	Topic       string // raw
	LedgerTopic string
	Start       StartPolicy // first start only
	// OnDataLoss says what happens where retention has overtaken the frontier.
	OnDataLoss DataLossPolicy
	Instance   string // unique per process start; lane ids derive from it
	Lanes      int    // transactional producers; 0 in publish mode idempotent
	Protocol   Protocol
	// PublishMode is how the pipeline's publisher works: a row of another mode is refused (H9). Idempotent: the group's offsets ride in no
	// transaction, so hints carry those of busy partitions too.
	PublishMode commit.PublishMode

	SessionTimeout    time.Duration // with protocol consumer the broker's own setting counts
	HeartbeatInterval time.Duration
	RebalanceTimeout  time.Duration
	DrainGrace        time.Duration // of a revocation; below the rebalance time-out
	ReleaseTimeout    time.Duration // to settle, commit the group's offset and release after a drain
	CloseTimeout      time.Duration // to leave the group

	AcquireTimeout  time.Duration // one try, inside the callback or outside
	AcquireRetryMin time.Duration // backoff between tries outside, doubling
	AcquireRetryMax time.Duration
	AcquireGiveUp   time.Duration // not acquired for so long: leave the group and join again
	RequestTimeout  time.Duration // of one request of the effects
	StuckAfter      time.Duration // work pending and no answer of any kind for so long: leave the group (P18)
	HintInterval    time.Duration // the group's committed offset of quiet partitions
	FloorInterval   time.Duration // between deletions of ledger records below the floor
	// StateRetention is after how long without a commit a key's state is let go of: its next observation begins a segment, with a reset
	// of reason expired (A5). 0: never.
	StateRetention time.Duration

	PollRecords  int   // a poll
	InboxRecords int   // handed to a worker and not yet taken; beyond: pause, resume at half
	FetchBytes   int32 // a fetch response
	// InflatedBytes is what one compressed batch of records, and what those of a poll, may come to: a batch beyond it is unreadable, its
	// records are dead letters; what comes after is fetched again.
	InflatedBytes int
	FetchMaxWait  time.Duration

	Partition partition.Config
	// Client are the options that every client shares: brokers, security, logger.
	Client []kgo.Opt
}

// DefaultConfig gives the defaults.
func DefaultConfig() Config {
	return Config{
		Start: StartEarliest, OnDataLoss: DataLossStop, Lanes: 3, Protocol: Classic, PublishMode: commit.Transactional,
		SessionTimeout: 10 * time.Second, HeartbeatInterval: 2 * time.Second, RebalanceTimeout: 60 * time.Second,
		DrainGrace: 20 * time.Second, ReleaseTimeout: 3 * time.Second, CloseTimeout: 10 * time.Second,
		AcquireTimeout: 5 * time.Second, AcquireRetryMin: 100 * time.Millisecond, AcquireRetryMax: 10 * time.Second,
		AcquireGiveUp: 5 * time.Minute, RequestTimeout: 15 * time.Second, StuckAfter: 2 * time.Minute,
		HintInterval: 5 * time.Second, FloorInterval: 30 * time.Second,
		PollRecords: 4096, InboxRecords: 16384, FetchBytes: 16 << 20, InflatedBytes: 64 << 20, FetchMaxWait: 500 * time.Millisecond,
		Partition: partition.DefaultConfig(),
	}
}

// Validate checks every setting and reports the first that is out of range.
func (c *Config) Validate() error {
	for name, value := range map[string]string{
		"group": c.Group, "topic": c.Topic, "ledger topic": c.LedgerTopic, "instance": c.Instance,
	} {
		if value == "" {
			return fmt.Errorf("consumer: %s must be set", name)
		}
	}
	if c.OnDataLoss != DataLossStop && c.OnDataLoss != DataLossReset {
		return fmt.Errorf("consumer: on data loss is %q, must be stop or reset", c.OnDataLoss)
	}
	if c.Start != StartEarliest && c.Start != StartLatest {
		return fmt.Errorf("consumer: start is %q, must be earliest or latest", c.Start)
	}
	if c.Protocol != Classic && c.Protocol != ConsumerGroup {
		return fmt.Errorf("consumer: protocol is %q, must be classic or consumer", c.Protocol)
	}
	leastLanes := int64(1)
	switch c.PublishMode {
	case commit.Transactional:
	case commit.Idempotent:
		leastLanes = 0
	default:
		return fmt.Errorf("consumer: publish mode is %q, must be transactional or idempotent", c.PublishMode)
	}
	if err := c.checkStatic(); err != nil {
		return err
	}
	for _, l := range []struct {
		name     string
		got, min int64
	}{
		{"lanes", int64(c.Lanes), leastLanes},
		{"poll records", int64(c.PollRecords), 1},
		{"inbox records", int64(c.InboxRecords), 2},
		{"fetch bytes", int64(c.FetchBytes), 1},
		{"inflated bytes", int64(c.InflatedBytes), 1 << 10},
	} {
		if l.got < l.min {
			return fmt.Errorf("consumer: %s is %d, must be at least %d", l.name, l.got, l.min)
		}
	}
	for _, l := range []struct {
		name     string
		got, min time.Duration
	}{
		{"session timeout", c.SessionTimeout, time.Second},
		// Three heartbeats a session: two may be lost.
		{"session timeout", c.SessionTimeout, 3 * c.HeartbeatInterval},
		{"rebalance timeout", c.RebalanceTimeout, c.DrainGrace + c.ReleaseTimeout + c.AcquireTimeout},
		{"heartbeat interval", c.HeartbeatInterval, 100 * time.Millisecond},
		{"drain grace", c.DrainGrace, time.Millisecond},
		{"release timeout", c.ReleaseTimeout, time.Millisecond},
		{"close timeout", c.CloseTimeout, time.Millisecond},
		{"acquire timeout", c.AcquireTimeout, time.Millisecond},
		{"acquire retry", c.AcquireRetryMin, time.Millisecond},
		{"longest acquire retry", c.AcquireRetryMax, c.AcquireRetryMin},
		{"acquire give-up", c.AcquireGiveUp, c.AcquireTimeout},
		{"request timeout", c.RequestTimeout, time.Millisecond},
		{"stuck after", c.StuckAfter, c.RequestTimeout},
		{"hint interval", c.HintInterval, time.Millisecond},
		{"floor interval", c.FloorInterval, time.Millisecond},
		{"fetch wait", c.FetchMaxWait, time.Millisecond},
	} {
		if l.got < l.min {
			return fmt.Errorf("consumer: %s is %s, must be at least %s", l.name, l.got, l.min)
		}
	}
	// What a machine has in memory must not expire under it: it would decide again from less after a crash.
	if least := 2 * c.Partition.EvictIdle; c.StateRetention != 0 && c.StateRetention < least {
		return fmt.Errorf("consumer: state retention is %s, must be 0 (for ever) or at least %s", c.StateRetention, least)
	}
	return c.Partition.Validate()
}
