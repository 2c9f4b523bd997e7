package commit

import (
	"errors"
	"fmt"

	"milepost/internal/stream"
)

// ErrQuarantineFull is wrapped by the verdict of a quarantined observation for which its partition has no room: it
// goes to the dead-letter topic instead.
var ErrQuarantineFull = errors.New("quarantine is full")

// RefusedError says that what is stored belongs to another raw topic, ledger or partition count than those found now:
// no retry helps, a person has to decide. Its class is Permanent.
type RefusedError struct {
	Group         string
	Partition     stream.Partition // whose row says so
	What          string           // the thing that differs
	Stored, Found string
	Remedy        string
}

func (e *RefusedError) Error() string {
	return fmt.Sprintf("group %q, partition %s: %s is %s, but the stored one is %s: %s",
		e.Group, e.Partition, e.What, e.Found, e.Stored, e.Remedy)
}

// Unwrap gives ErrPermanent.
func (e *RefusedError) Unwrap() error { return ErrPermanent }
