package partition

import (
	"time"

	"milepost/internal/commit"
	"milepost/internal/stream"
)

// Workload is what a raw record means. Every method is pure: the same arguments give the same bytes (I16).
type Workload interface {
	// Decode judges one raw record. A bad one is a *commit.PoisonError with a reason of the workload's closed list.
	Decode(r *stream.Record) (Observation, error)
	// Open says how the observation is to be decided over the key's checkpoint: by the workload itself (Local)
	// or by a solver (Request). A checkpoint that the workload cannot read is not an error: it becomes a pending reset
	// (state lost) that rides on whatever commits next (A5).
	// More are the observations that wait behind it, in order. The workload may let the same job decide as many of them as it can foresee
	// (Opening.Count), as long as what comes of each is what jobs of one observation would have made, byte for byte (F21).
	Open(k KeyState, o Observation, more ...Observation) Opening
	// Plan turns a decision into outputs and the next checkpoint. Next.Revision must be the observation's. An error is
	// of class Permanent and quarantines the key.
	Plan(k KeyState, o Observation, d Decision) (commit.Plan, error)
	// Diverged gives a key's state when what was published cannot be rebuilt to the same bytes: its next commit announces a
	// reset. The state may be one that the workload cannot read, or nil.
	Diverged(state []byte) []byte
	// DeadLetter is the record that tells of a poison record.
	DeadLetter(id stream.Identity, epoch stream.Epoch, r *stream.Record, poison *commit.PoisonError) commit.Output
}

// KeyState is what the machine knows of a key when an observation of it is to be decided.
type KeyState struct {
	Checkpoint commit.Checkpoint // zero Revision: never seen
	Expired    bool              // the row is a tail without state (A5)
	Epoch      stream.Epoch      // the owner's, for the outputs' headers
	// Sticky: a replica answered last for exactly this checkpoint and may still hold its trip, so that Opening.Short is of use.
	Sticky bool
	// Anew is the reason of the reset with which the key begins anew, whatever its checkpoint says: what followed it was lost, or is
	// replayed. Empty: its history goes on.
	Anew string
}

// Observation is a decoded raw record.
type Observation struct {
	Key      stream.Key
	Identity stream.Identity
	Time     time.Time // event time
	Record   *stream.Record
	Value    any // the workload's own decoded form
}

// Opening is how an observation will be decided; exactly one of Local and Request is set.
type Opening struct {
	Local   *Decision
	Request []byte // retained byte for byte until a result begins to commit (A9)
	// Region is whose admission the request takes, and its size the bytes of it; empty: none (A8).
	Region string
	// Budget is how long after its record's Kafka timestamp the observation should be committed; 0: not measured (A16).
	Budget time.Duration
	// Short is the request without the trip: the same job, for the replica that holds the trip already. Nil: there is none.
	Short []byte
	// Count is how many observations are decided so, from the first: Local is about each of them. 0: the first alone.
	Count int
}

// Decision is what a solver, or the workload itself, decided about one observation; a solver's also about those that follow in its job.
type Decision struct {
	Kind   Kind
	Reason string // of a terminal or a reset: from the workload's closed list
	Answer []byte // of a solver: the workload's own encoding
	// More are a solver's answers about the observations that follow in the job's run, in order, if it is Solved. There may be fewer than there
	// are observations: the rest is opened anew.
	More [][]byte
}

// Kind is the kind of a decision.
type Kind uint8

// The kinds of decisions.
const (
	Solved   Kind = iota + 1 // a solver's answer
	Terminal                 // nothing to do, with a reason
	Reset                    // history is void, with a reason
)
