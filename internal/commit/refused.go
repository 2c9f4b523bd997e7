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

// The remedies: what a person can do, each with the command that does it.
const (
	RemedyTopicMadeAgain = "it was deleted and made again, so its offsets mean nothing to the stored frontiers; " +
		"open its next topic generation with: orchestrator partition reset --yes"
	RemedyPartitionsAdded = "keys have moved between partitions; stop the producers, let every partition reach its end with the old count, " +
		"then open the next topic generation with: orchestrator partition reset --yes"
	RemedyLedgerMadeAgain = "without the old ledger nobody can tell what was published; bring it back, or bind the new one with: " +
		"orchestrator partition ledger --accept --yes"
	RemedyLedgerTaken = "a ledger belongs to one group and raw topic; choose another --prefix"
	RemedyPublishMode = "all processes of a group publish in one mode, and it changes only while the group is empty: " +
		"start this process with the stored mode, or stop every process of the group first"
)
