package partition

import (
	"encoding/hex"
	"time"

	"milepost/internal/commit"
	"milepost/internal/stream"
)

// Effect is what the driver must do for a partition. The driver runs effects in the order given and feeds
// back exactly one Input for each that waits on the world.
//
//sumtype:decl
type Effect interface{ effect() }

// JobID names a job: a digest of its request, so that the same inputs give the same id (I16).
type JobID [16]byte

// String gives the id in hexadecimal.
func (id JobID) String() string { return hex.EncodeToString(id[:]) }

// Restore reads keys' rows, many a query. Answer: Restored.
type Restore struct{ Keys []stream.Key }

// Dispatch sends a job to a solver. Answer: Result, or none: then it comes again.
type Dispatch struct {
	Job      JobID
	Key      stream.Key
	Revision stream.Revision
	Request  []byte
	// Attempt counts the time-outs of the job so far. A higher one must be able to reach another replica (A9).
	Attempt int
	Region  string // as the workload opened it
	// Replica is set when the request is without the trip: it is for this replica and for no other.
	Replica string
}

// Commit hands a decision to the commit stages. Answer: Committed.
type Commit struct {
	Commit commit.Commit
	// Recorded are the Kafka timestamps of its observations' records, from which the latency of their commit is measured.
	Recorded []time.Time
}

// Persist makes the newest published checkpoints of keys durable (mode deferred). Answer: Persisted.
type Persist struct{ Persists []commit.Persist }

// Promote promotes prepared commits that no later prepare of their key has folded in. Answer: Promoted.
type Promote struct{ Promotions []commit.Promotion }

// Finish finishes another prepared commit that stands in a key's row: the ledger says whether to publish it first. Answer: Finished.
type Finish struct{ Key stream.Key }

// SaveFrontier makes frontier and ledger floor durable; it is the heartbeat too. Answer: FrontierSaved.
type SaveFrontier struct{ Write commit.FrontierWrite }

// Quarantine writes observations to the quarantine table. Answer: QuarantineSaved.
type Quarantine struct{ Rows []commit.Quarantined }

// Refetch reads spilled offsets again, ascending. Answer: Arrived with Refetched set.
type Refetch struct{ Offsets []int64 }

// ReadAsides reads a key's quarantined observations in order, after a revision. Answer: AsidesRead.
type ReadAsides struct {
	Key   stream.Key
	After stream.Revision
	Limit int
}

// Discard makes tombstones of a key's quarantined observations, which the ledger floor must pass too. Answer: DiscardDone.
type Discard struct {
	Key   stream.Key
	Floor int64
}

// Answer ends an operator's request. It may be lost: the request then comes again.
type Answer struct{ Answer commit.Answer }

// Pause stops the partition's fetch, Resume continues it.
type Pause struct{}

// Resume continues the partition's fetch.
type Resume struct{}

// Warn is a condition for the log: a key or the partition met an error. No payloads.
type Warn struct {
	Message  string
	Class    commit.Class
	Key      stream.Key // empty: the partition
	Revision stream.Revision
	Err      error
}

// Drained is the last effect of a drain, with the report.
type Drained struct{ Report Report }

// Stop is the last effect of a machine that cannot go on: fenced, lost, or a broken ledger.
type Stop struct{ Cause error }

func (Restore) effect()      {}
func (Dispatch) effect()     {}
func (Commit) effect()       {}
func (Persist) effect()      {}
func (Promote) effect()      {}
func (Finish) effect()       {}
func (SaveFrontier) effect() {}
func (Quarantine) effect()   {}
func (Refetch) effect()      {}
func (ReadAsides) effect()   {}
func (Discard) effect()      {}
func (Answer) effect()       {}
func (Pause) effect()        {}
func (Resume) effect()       {}
func (Warn) effect()         {}
func (Drained) effect()      {}
func (Stop) effect()         {}

// Report is what a drain left behind.
type Report struct {
	Frontier   stream.Frontier
	Prepared   int // rows of ours left prepared: 0 after a clean drain, but for quarantined evidence
	Dirty      int // keys whose published checkpoint is not persisted: 0 after a clean drain
	Unfinished int // observations in hand that are not done: the next owner's
	Stats      Stats
	Reasons    Reasons
}
