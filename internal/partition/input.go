package partition

import (
	"errors"

	"milepost/internal/commit"
	"milepost/internal/stream"
)

// Input is what happens to a partition. Every Effect that waits on the world ends as exactly one Input.
//
//sumtype:decl
type Input interface{ input() }

// Arrived brings records in offset order: from the fetch, or asked for by Refetch.
type Arrived struct {
	Records   []stream.Record
	Refetched bool
	// Missing are refetched offsets that the log no longer has (compacted, or a marker): done, and counted.
	Missing []int64
	// Err is set when a refetch failed: the machine asks again at a tick.
	Err error
}

// Restored answers Restore: one entry a key that was asked for, or the error that all of them met.
type Restored struct {
	Keys []stream.Key
	Rows []commit.Restored
	Err  error
}

// Result answers Dispatch: once, several times, late or never, and it may come from a job of an earlier owner before this
// one sends the same. It decides only if it is the active job's (I8).
type Result struct {
	Job      JobID
	Key      stream.Key
	Revision stream.Revision
	Decision Decision
	Err      error // class Permanent (a solver panic) quarantines; any other is tried again
	// Replica names who answered, for a request without the trip later; empty: the solver keeps no trips.
	Replica string
	// TripMiss: the replica does not hold the trip. It decides nothing: the full request follows (A9).
	TripMiss bool
}

// ErrTripMiss is a replica's answer to a request without a trip that it does not hold.
var ErrTripMiss = errors.New("the replica does not hold the trip")

// Committed answers Commit and CommitDeadLetter.
type Committed struct {
	Key      stream.Key
	Revision stream.Revision
	ID       commit.ID
	Position int64 // of the ledger entry; -1: it was published earlier, where is not known
	Err      error // nil: published
}

// Persisted answers Persist, a verdict a checkpoint.
type Persisted struct {
	Persists []commit.Persist
	Errs     []error
	Err      error // of them all
}

// Promoted answers Promote, a verdict a promotion.
type Promoted struct {
	Promotions []commit.Promotion
	Errs       []error
	Err        error // of them all
}

// Finished answers Finish: the foreign prepared commit of a key is published and promoted, or not.
type Finished struct {
	Key stream.Key
	Err error
}

// FrontierSaved answers SaveFrontier.
type FrontierSaved struct {
	Write commit.FrontierWrite
	Err   error
}

// QuarantineSaved answers Quarantine.
type QuarantineSaved struct {
	Rows []commit.Quarantined
	Errs []error
	Err  error
}

// Operate brings an operator's request for a key. Answer, as an effect and much later: Answer. It may come again until then.
type Operate struct{ Request commit.Request }

// AsidesRead answers ReadAsides; no rows: there are no more.
type AsidesRead struct {
	Key  stream.Key
	Rows []commit.Aside
	Err  error
}

// DiscardDone answers Discard.
type DiscardDone struct {
	Key       stream.Key
	Discarded commit.Discarded
	Err       error
}

// Tick lets time pass: due writes, retries and evictions happen on it. Ticks that came late are not made up for.
type Tick struct{}

// Drain stops the intake and every new job; the machine answers with Drained when nothing is in flight.
type Drain struct{}

// Lost says that the tenure has ended: everything is dropped where it stands.
type Lost struct{ Cause error }

func (Arrived) input()         {}
func (Restored) input()        {}
func (Result) input()          {}
func (Committed) input()       {}
func (Persisted) input()       {}
func (Promoted) input()        {}
func (Finished) input()        {}
func (FrontierSaved) input()   {}
func (QuarantineSaved) input() {}
func (Operate) input()         {}
func (AsidesRead) input()      {}
func (DiscardDone) input()     {}
func (Tick) input()            {}
func (Drain) input()           {}
func (Lost) input()            {}
