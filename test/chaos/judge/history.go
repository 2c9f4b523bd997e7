package judge

import (
	"fmt"
	"time"
)

// Mode is what the workers ran with.
type Mode struct {
	Protocol   string `json:"protocol"`   // classic or consumer
	Durability string `json:"durability"` // prepared or deferred
	Publish    string `json:"publish"`    // transactional or idempotent
}

// String names the mode as the flags do.
func (m Mode) String() string { return m.Protocol + "/" + m.Durability + "/" + m.Publish }

// Transactional reports whether a read_committed reader may see nothing twice.
func (m Mode) Transactional() bool { return m.Publish == "transactional" }

// ID is where a raw record stands. Offsets of a partition never come twice in a history: the raw topic is never made again.
type ID struct {
	Partition int32
	Offset    int64
}

// String gives partition@offset.
func (id ID) String() string { return fmt.Sprintf("%d@%d", id.Partition, id.Offset) }

// Raw is a record of the raw topic.
type Raw struct {
	ID         ID
	Key, Value string
}

// Output is a record of the outputs' or the dead letters' topic, read with read_committed.
type Output struct {
	Dead      bool // of the dead letters' topic
	Partition int32
	Offset    int64
	Key       string
	Value     string
	Headers   []Header
}

// Header is one record header.
type Header struct{ Name, Value string }

// Header gives a header's value, empty if there is none.
func (o *Output) Header(name string) string {
	for _, h := range o.Headers {
		if h.Name == name {
			return h.Value
		}
	}
	return ""
}

// Entry is one commit that a ledger record names.
type Entry struct {
	Partition int32 // of the ledger, which is the raw partition
	Offset    int64 // of the ledger record
	Epoch     int64
	Producer  int64 // producer id of its batch
	Key       string
	Offsets   []int64
	Dead      bool
}

// Owner is one change of a partition's owner row.
type Owner struct {
	Partition int32
	Epoch     int64
	Nonce     string
	Instance  string
	At        time.Time
}

// Moved is one write of a frontier.
type Moved struct {
	Partition        int32
	From, To         int64
	FromGen, ToGen   int32
	FromFloor, Floor int64
	At               time.Time
}

// Sample is a look at the frontiers while the workers ran. Everything below a frontier must stand below the ends, which were read after it.
type Sample struct {
	At        time.Time
	Frontiers map[int32]int64
	Outputs   map[int32]int64 // high watermarks of the outputs' topic
	Dead      map[int32]int64
}

// Checkpoint is a row of the checkpoint table.
type Checkpoint struct {
	Partition int32
	Key       string
	Offset    int64 // of its revision
	State     string
	Prepared  bool
}

// Quarantined is a row of the quarantine table.
type Quarantined struct {
	ID         ID
	Key        string
	Value      string // of the record that it keeps
	Discarded  bool
	Unreadable bool
}

// Exit is how a worker ended.
type Exit struct {
	Worker string
	Code   int
	Asked  bool   // by SIGTERM after everything was healed
	Panic  string // what it said of it; empty: it did not
}

// History is what was left behind.
type History struct {
	Mode        Mode
	RawTopic    string
	Raw         []Raw // each partition in order
	Outputs     []Output
	Ledger      []Entry // each partition in order
	LedgerWhole bool    // false: the owners deleted records before they were read
	// Producers says whose a producer id is, as far as the brokers told: transactional ids.
	Producers   map[int64]string
	Owners      []Owner // each partition in order of time
	Frontiers   []Moved // each partition in order of time
	Backwards   []string
	Samples     []Sample
	Final       map[int32]int64 // frontiers after the drain
	Checkpoints []Checkpoint
	Quarantine  []Quarantined
	Exits       []Exit
	// Stuck says what was missing when the time to finish was over; empty: nothing.
	Stuck string
}

// Violation is a promise that was broken.
type Violation struct {
	Kind    string   `json:"kind"`
	Subject string   `json:"subject"`
	Detail  string   `json:"detail"`
	History []string `json:"history,omitempty"`
}

// String gives it on one line, without its history.
func (v Violation) String() string { return v.Kind + " " + v.Subject + ": " + v.Detail }
