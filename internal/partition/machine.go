package partition

import (
	"time"

	"milepost/internal/commit"
	"milepost/internal/stream"
)

// Start is where a machine begins: after the recovery of its partition.
type Start struct {
	Tenure      *commit.Tenure
	Frontier    stream.Frontier
	LedgerFloor int64
	// LedgerHighest is the highest ledger position that recovery saw plus one.
	LedgerHighest int64
	// Done are offsets at or above the frontier that the ledger says are done without a row (dead letters).
	Done []int64
	// Failed are keys whose prepared commit recovery could not finish: they start blocked (A2).
	Failed []stream.Key
}

// Stats are a machine's counters since its start.
type Stats struct {
	Offered, Queued, Poison, Suppressed, Deferred, Coalesced, SetAside      int64
	Dispatched, Resent, Accepted, Rejected                                  int64
	Committed, Terminals, Resets, Conflicts, Fenced, Promoted               int64
	Blocked, Retried, QuarantinedKeys, QuarantinedRecords, Evicted, Spilled int64
}

// Machine is one partition's pure state machine.
type Machine struct {
	// to be filled
}

// New makes the machine of a recovered partition.
func New(cfg Config, w Workload, s Start, now time.Time) *Machine { panic("not built yet") }

// Step takes one input and returns what is to be done, in order.
func (m *Machine) Step(now time.Time, in Input) []Effect { panic("not built yet") }

// View is a snapshot for status and metrics.
type View struct {
	Frontier                          stream.Frontier
	Keys, Waiting, Active, Committing int
	Blocked, Quarantined, Spilled     int
	Unpromoted, Queued                int
	QueuedBytes                       int64
	OldestPending                     time.Time // zero: nothing pending
	Paused                            bool
	Stats                             Stats
}

// View takes the snapshot.
func (m *Machine) View() View { panic("not built yet") }
