package publish

import (
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kerr"

	"milepost/internal/commit"
	"milepost/internal/stream"
)

// ErrClosed is returned by Publish after Close.
var ErrClosed = errors.New("publisher is closed")

// errSpoilt says that a lane's client initialised its producer id by itself (X2).
var errSpoilt = errors.New("the client initialised its producer id by itself")

// errPassed says that the ledger was deleted past a position: nobody can tell any more whether it was committed.
var errPassed = errors.New("the ledger was deleted past the position")

// refusedError says that the coordinator refused our member id or generation, or that we have none.
type refusedError struct {
	member     string
	generation int32
	cause      error
}

func (e *refusedError) Error() string {
	return fmt.Sprintf("group generation %d refused: %v", e.generation, e.cause)
}

func (e *refusedError) Unwrap() error { return e.cause }

// culprits are commits, by index, that kept a transaction from being committed.
type culprits struct {
	// certain: these and nobody else (a topic that is not there). Else one of them, perhaps with innocents
	// that shared its produce request.
	certain bool
	slow    bool // they were not answered in time while others were
	commits map[int]error
}

func (e *culprits) Error() string {
	for _, err := range e.commits {
		return fmt.Sprintf("%d commits held back: %v", len(e.commits), err)
	}
	return "no commits held back"
}

// FloorError says that a ledger partition does not reach from the floor that Postgres names: it was made again, or
// records were deleted that nobody may delete. It is never read as an empty ledger.
type FloorError struct {
	Partition  stream.Partition // of the ledger
	Floor      int64            // the first position that is needed
	Start, End int64            // what Kafka has
}

func (e *FloorError) Error() string {
	what := fmt.Sprintf("starts at %d, above the floor %d", e.Start, e.Floor)
	if e.Start <= e.Floor {
		what = fmt.Sprintf("ends at %d, below the floor %d", e.End, e.Floor)
	}
	return fmt.Sprintf("ledger %s %s: what was published before can not be known; %s", e.Partition, what, e.Hint())
}

// Hint tells the operator what to do.
func (e *FloorError) Hint() string {
	return fmt.Sprintf("restore topic %s, or accept the gap: orchestrator partition ledger --accept --yes", e.Partition.Topic)
}

// StrangerError says that the ledger holds an entry of another group or raw topic: two services share a prefix.
type StrangerError struct {
	Partition    stream.Partition // of the ledger
	Position     int64
	Group, Topic string // the entry's
}

func (e *StrangerError) Error() string {
	return fmt.Sprintf("ledger %s holds at %d an entry of group %q, topic %q: give each (group, raw topic) its own prefix",
		e.Partition, e.Position, e.Group, e.Topic)
}

// kind is what a Kafka error says about what to do with a transaction.
type kind uint8

const (
	away    kind = iota // wait and send again
	fatal               // this record can never be published
	missing             // this record's topic is not there, or not ours to write: later perhaps
	regroup             // member or generation are not the group's any more
)

func kindOf(err error) kind {
	switch {
	// INVALID_TIMESTAMP is none of these: records carry this process's clock, so the fault is the clock's, and the record can be
	// published once it is right, or by another process.
	case is(err, kerr.MessageTooLarge, kerr.RecordListTooLarge, kerr.InvalidRecord, kerr.InvalidTopicException,
		kerr.PolicyViolation, kerr.UnsupportedForMessageFormat):
		return fatal
	case is(err, kerr.UnknownTopicOrPartition, kerr.UnknownTopicID, kerr.InconsistentTopicID, kerr.TopicAuthorizationFailed):
		return missing
	// REBALANCE_IN_PROGRESS is for plain commits only; should a broker send it here, waiting for the next
	// generation is right too.
	case is(err, kerr.IllegalGeneration, kerr.UnknownMemberID, kerr.StaleMemberEpoch, kerr.FencedMemberEpoch,
		kerr.FencedInstanceID, kerr.UnreleasedInstanceID, kerr.RebalanceInProgress):
		return regroup
	}
	return away
}

func is(err error, targets ...*kerr.Error) bool {
	for _, t := range targets {
		if errors.Is(err, t) {
			return true
		}
	}
	return false
}

func fenced(t *commit.Tenure, reason string) error {
	return &commit.FencedError{Partition: t.Partition, Held: t.Epoch, Reason: reason}
}
