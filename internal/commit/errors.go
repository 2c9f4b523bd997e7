package commit

import (
	"context"
	"errors"
	"fmt"

	"milepost/internal/stream"
)

// Class says what an error does to the key or partition that met it. Adapters translate SQLSTATE and
// Kafka codes at the border; the core sees only classes.
type Class uint8

// The classes of errors.
const (
	// Transient is the default: block the key, back off, send the same bytes again. After a publish it
	// also promises that nothing was published.
	Transient Class = iota
	// Canceled: the caller gave up; unwind without a log line.
	Canceled
	// Conflict: the stored row is not the base that was planned from; reload and judge anew.
	Conflict
	// Busy: another prepared commit stands there; it is finished first, then as Conflict.
	Busy
	// Fenced: another owner has the partition; no further write under this tenure.
	Fenced
	// Permanent: no retry can help (cannot be encoded, over a size limit); the key goes to quarantine.
	Permanent
	// Poison: the record itself is bad; dead-letter it and count it done.
	Poison
)

// String gives the class's label.
func (c Class) String() string {
	switch c {
	case Transient:
		return "transient"
	case Canceled:
		return "canceled"
	case Conflict:
		return "conflict"
	case Busy:
		return "busy"
	case Fenced:
		return "fenced"
	case Permanent:
		return "permanent"
	case Poison:
		return "poison"
	}
	return "unknown"
}

// ErrPermanent is wrapped by errors of class Permanent.
var ErrPermanent = errors.New("permanent")

// ConflictError says that a key's stored row is not the expected base.
type ConflictError struct {
	Key          stream.Key
	Want, Actual stream.Revision
}

func (e *ConflictError) Error() string {
	return fmt.Sprintf("key %q: stored revision is %s, planned over %s", e.Key, e.Actual, e.Want)
}

// BusyError says that another prepared commit stands in the key's row.
type BusyError struct {
	Key      stream.Key
	Prepared stream.Revision
}

func (e *BusyError) Error() string {
	return fmt.Sprintf("key %q: another commit is prepared at revision %s", e.Key, e.Prepared)
}

// FencedError says that the partition has another owner, or this tenure ended.
type FencedError struct {
	Partition stream.Partition
	Held      stream.Epoch
	Owner     stream.Epoch // 0: not known
	Reason    string
}

func (e *FencedError) Error() string {
	s := fmt.Sprintf("partition %s: ownership epoch %d is no longer ours", e.Partition, e.Held)
	if e.Owner != 0 {
		s += fmt.Sprintf(" (owner's epoch is %d)", e.Owner)
	}
	if e.Reason != "" {
		s += ": " + e.Reason
	}
	return s
}

// PoisonError says why a raw record can never be decided.
type PoisonError struct {
	Reason string // a label from the workload's closed list
	Detail string // for people; never the payload
}

func (e *PoisonError) Error() string { return "poison record (" + e.Reason + "): " + e.Detail }

// ClassOf gives the class of err; nil is not an error and panics.
func ClassOf(err error) Class {
	var (
		conflict *ConflictError
		busy     *BusyError
		fenced   *FencedError
		poison   *PoisonError
	)
	switch {
	case err == nil:
		panic("commit: ClassOf(nil)")
	case errors.As(err, &conflict):
		return Conflict
	case errors.As(err, &busy):
		return Busy
	case errors.As(err, &fenced):
		return Fenced
	case errors.As(err, &poison):
		return Poison
	case errors.Is(err, ErrPermanent):
		return Permanent
	// A cancelled context is the caller's wish, a deadline is the world being slow: only the first unwinds.
	case errors.Is(err, context.Canceled):
		return Canceled
	}
	return Transient
}
