package commit

import (
	"context"
	"time"

	"milepost/internal/stream"
)

// Quiet is a key that has committed nothing for long.
type Quiet struct {
	Key      stream.Key
	Revision stream.Revision // of its checkpoint
	State    []byte
}

// Tail is what is left of a quiet key's state.
type Tail struct {
	Key      stream.Key
	Revision stream.Revision // of the checkpoint whose state it replaces
	State    []byte
}

// Retention lets go of the states of quiet keys. A row is never deleted: with its revision and segment and a tail in place of the state
// the key has expired, which is neither never seen nor lost (A5, F8).
type Retention interface {
	// Quiet looks at the partition's next keys after a key, in their order, at most limit. It gives those whose last commit is at least so
	// old and whose state may go: below the frontier, nothing prepared, nothing in quarantine, not expired yet. next is the last key that
	// it looked at; empty: there are no more. It needs no fence: Expire swaps.
	Quiet(ctx context.Context, t *Tenure, after stream.Key, age time.Duration, limit int) (quiet []Quiet, next stream.Key, err error)
	// Expire puts tails in place of states, in one fenced statement, where the row still has the tail's revision and what Quiet asks for,
	// but for the age. It reports how many.
	Expire(ctx context.Context, t *Tenure, tails []Tail) (int, error)
}
