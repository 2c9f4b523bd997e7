package commit

import (
	"context"
	"time"

	"milepost/internal/stream"
)

// Store is the durable home of checkpoints, prepared commits, frontiers and quarantined observations. Every
// write is one statement that joins the fence: it locks the owner row KEY SHARE where epoch and nonce are the
// tenure's, so once a newer acquisition has returned no older write can land (I13). A batch may span
// keys and partitions; each item gets a verdict of its own, in the batch's order. An error as the second
// result means that the outcome of the whole batch is unknown or that nothing was done; the same batch may
// be sent again, and only its verdicts decide (H11).
type Store interface {
	// Prepare writes next checkpoint and outputs beside the current row if the row's revision is Base, taking
	// a prepared commit at Base as promoted (its publish is known). Verdicts: nil error and the Prepared state; *ConflictError,
	// *BusyError, *FencedError, or one of class Permanent. The batch holds at most one commit a key and none with NoRow.
	Prepare(ctx context.Context, batch []Commit) ([]PrepareVerdict, error)
	// Persist makes the checkpoint of commits that were published without a prepare the current one, if the row's revision is
	// Base and nothing stands prepared in it (mode deferred, and what a recovery rebuilt). Verdicts: nil, also where exactly this
	// checkpoint is current already; *ConflictError, whose Actual tells what is stored, *BusyError, *FencedError, or one of class
	// Permanent. A conflict is the verdict of a statement whose fence held.
	Persist(ctx context.Context, batch []Persist) ([]error, error)
	// Promote folds a prepared commit whose publication is known into the current columns. A row that is already
	// at or past the revision is success. The quarantine row of an observation that becomes current leaves in the same
	// statement (H10).
	Promote(ctx context.Context, batch []Promotion) ([]error, error)
	// Unprepare takes a prepared commit out of its row, as if it had never been prepared: it is certainly not published and never will
	// be, and what it is of is to be committed otherwise. Where it does not stand (any more) nothing changes and that is success.
	Unprepare(ctx context.Context, p Promotion) error
	// Restore reads keys' rows, in the order of the keys. It needs no fence: what is planned over a stale read
	// fails its swap.
	Restore(ctx context.Context, t *Tenure, keys []stream.Key) ([]Restored, error)
	// SaveFrontier writes frontier and ledger floor in one statement, fenced and monotone in both. A lower
	// value than the stored one leaves the row and is success.
	SaveFrontier(ctx context.Context, batch []FrontierWrite) ([]error, error)
	// Quarantine writes observations of keys that cannot go on by themselves. The same observation twice is success. The
	// prepared commit of an observation that is not Published moves into its quarantine row in the same statement, as evidence: it is
	// never listed or published again (H10). A partition without room answers with a verdict that wraps ErrQuarantineFull, and
	// clears such a prepared commit all the same: the observation becomes a dead letter, which the frontier passes.
	Quarantine(ctx context.Context, batch []Quarantined) ([]error, error)
	// Prepared lists the partition's prepared commits in key order, after the given key, at most limit.
	// The outputs are the stored bytes, the ID the stored one, the Tenure is t.
	Prepared(ctx context.Context, t *Tenure, after stream.Key, limit int) ([]Commit, error)
}

// PrepareVerdict is the fate of one commit of a prepare.
type PrepareVerdict struct {
	Err error // nil: prepared, now or by an earlier sending of the same commit
	// Current says that the same commit is already promoted: it was published, do not publish it again.
	Current bool
}

// Persist is a key's newest published checkpoint on its way into the key's row.
type Persist struct {
	Tenure *Tenure
	Key    stream.Key
	Base   stream.Revision // that the row must have; zero: no row
	Next   Checkpoint
	ID     ID // of the commit that made Next
}

// Promotion names a prepared commit to promote.
type Promotion struct {
	Tenure   *Tenure
	Key      stream.Key
	Revision stream.Revision
	ID       ID
}

// Restored is what the store knows of a key.
type Restored struct {
	Key        stream.Key
	Checkpoint Checkpoint // zero Revision: never seen
	// Expired says that the row is a tail without state: revision, segment and last event time only.
	Expired bool
	// Prepared is the commit that stands prepared in the row, nil without one.
	Prepared *Commit
	// Quarantined says that the key has quarantined observations: later ones follow them there.
	Quarantined bool
	// Discarded is the highest revision of the key that an operator discarded and a tombstone remembers: what is at
	// or below it is done. Zero: none.
	Discarded stream.Revision
}

// FrontierWrite is a partition's frontier and ledger floor to save.
type FrontierWrite struct {
	Tenure      *Tenure
	Frontier    stream.Frontier
	LedgerFloor int64
	Live        Live
}

// Live is what only a live owner knows of its partition; it is saved with the heartbeat, so that nobody need reach the owner.
type Live struct {
	OldestPending time.Duration // age of the oldest observation in hand; 0 without one
	Waiting       int           // keys that wait for their turn or their row
	Blocked       int           // keys that wait for a retry
}

// Quarantined is one observation on its way into the quarantine table.
type Quarantined struct {
	Tenure    *Tenure
	Key       stream.Key
	Revision  stream.Revision
	Class     string // of the cause
	Reason    string // for people; no payload
	Published bool   // its outputs are in the ledger
	Record    stream.Record
	At        time.Time
}
