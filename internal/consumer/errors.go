package consumer

import (
	"errors"
	"fmt"

	"milepost/internal/stream"
)

var (
	// errReleased ends a tenure after a clean drain.
	errReleased = errors.New("drained")
	// errRevoked ends a tenure whose partition the group took away while it could not be drained.
	errRevoked = errors.New("the group took the partition away")
	// errLost ends a tenure whose membership is over.
	errLost = errors.New("the group's session ended")
	// errBound ends a drain that took too long.
	errBound = errors.New("the drain took longer than its bound")
	// errLeave makes a session leave the group and Run join it again.
	errLeave = errors.New("partitions could not be acquired")
	// ErrUnreleased is wrapped by Run's error when the final drain could not release a partition: nothing is lost, its next owner
	// recovers it.
	ErrUnreleased = errors.New("drained incompletely, not released")
	// ErrStuck ends Run: a worker has work, no answer of any kind comes, and the group must give it to another process (P18).
	ErrStuck = errors.New("a worker makes no progress")
)

// MemberError says that the group does not know this member, or not under this generation: we are the zombie.
type MemberError struct {
	MemberID   string
	Generation int32
	Err        error
}

func (e *MemberError) Error() string {
	return fmt.Sprintf("the group refuses member %s at generation %d: %v", e.MemberID, e.Generation, e.Err)
}

func (e *MemberError) Unwrap() error { return e.Err }

// RangeError says that the frontier is not inside the log: retention has overtaken it, or the log was truncated.
type RangeError struct {
	Partition stream.Partition
	Frontier  int64
	LogStart  int64
	LogEnd    int64
}

func (e *RangeError) Error() string {
	if e.Frontier < e.LogStart {
		return fmt.Sprintf("partition %s: the log starts at offset %d, the frontier is %d: %d offsets were deleted before they were done; "+
			"restore them, or move the frontier with: orchestrator partition seek --partition %d --offset %d",
			e.Partition, e.LogStart, e.Frontier, e.LogStart-e.Frontier, e.Partition.Number, e.LogStart)
	}
	return fmt.Sprintf("partition %s: the log ends at offset %d, the frontier is %d: the log was truncated; "+
		"open a new topic generation with: orchestrator partition reset --yes --offset %d=%d", e.Partition, e.LogEnd, e.Frontier, e.Partition.Number, e.LogEnd)
}
