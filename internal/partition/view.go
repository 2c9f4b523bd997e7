package partition

import (
	"maps"
	"time"

	"milepost/internal/stream"
)

// View is a snapshot for status and metrics.
type View struct {
	Frontier                          stream.Frontier
	Keys, Waiting, Active, Committing int
	Blocked, Quarantined, Spilled     int
	Held                              int // within Waiting: for admission
	Unpromoted, Dirty, Queued         int
	QueuedBytes                       int64
	OldestPending                     time.Time // zero: nothing pending
	Paused                            bool
	Stats                             Stats
	Reasons                           Reasons
}

// View takes the snapshot. It costs the same however many keys there are.
func (m *Machine) View() View {
	return View{
		Frontier: m.frontier(),
		Keys:     len(m.keys), Waiting: m.count[ready] + m.count[restoring] + m.count[onErrand] + m.count[held], Active: m.count[solving],
		Committing: m.count[committing], Blocked: m.count[blocked] + m.count[finishing],
		Quarantined: m.quarantined, Spilled: m.spilled, Held: m.count[held],
		Unpromoted: m.unpromoted, Dirty: m.dirty, Queued: m.records, QueuedBytes: m.bytes,
		OldestPending: m.tracker.oldest(), Paused: m.paused, Stats: m.stats, Reasons: maps.Clone(m.reasons),
	}
}

// Stats are a machine's counters since its start. Each delivery (a refetch is another) moves Offered and
// exactly one of Queued, Poison, Suppressed, Deferred and SetAside; one whose key's row is not read yet does so when it is.
type Stats struct {
	Offered, Queued, Poison, Suppressed, Deferred, SetAside                 int64
	Persisted, Rebuilt, Diverged                                            int64 // observations; Diverged: within Rebuilt
	Coalesced, Missing                                                      int64 // Coalesced: within Deferred
	Dispatched, Cached, TripMisses, Resent, Accepted, Parked                int64
	Rejected, QuarantinedResults                                            int64
	Committed, Terminals, Resets, Conflicts, Fenced, Promoted               int64 // Committed: observations; Terminals and Resets: within it
	Commits, Narrowed                                                       int64 // Commits: of one observation or several; Narrowed: jobs that failed and were tried in smaller ones
	Blocked, Retried, QuarantinedKeys, QuarantinedRecords, Evicted, Spilled int64
	Released, Discarded                                                     int64 // observations, by operators
	Held, Late                                                              int64 // Held: jobs that had to wait for admission; Late: past their region's budget
}
