package commit

import (
	"sync"
	"sync/atomic"

	"milepost/internal/stream"
)

// Ownership is the identity of a tenure: what fences its writes and names its evidence.
type Ownership struct {
	Group           string
	Partition       stream.Partition
	TopicGeneration int32
	Epoch           stream.Epoch
	Nonce           stream.Nonce
	MemberID        string
}

// Tenure is one uninterrupted ownership of a partition. Its identity never changes; whether it still holds
// is the only shared, mutable thing about it, and that goes one way: a lost tenure stays lost. A rejoin in
// place, an acquisition after being fenced and a generation issued twice each begin a new one.
type Tenure struct {
	Ownership

	// SavedFrontier is the last offset that SaveFrontier made durable: what the group's committed
	// offset, a hint, may follow (P40). The partition's worker writes it, lanes read it.
	SavedFrontier atomic.Int64

	once  sync.Once
	lost  chan struct{}
	cause error
}

// NewTenure begins a tenure.
func NewTenure(o Ownership) *Tenure { return &Tenure{Ownership: o, lost: make(chan struct{})} }

// Lose ends the tenure for good; the first cause stays.
func (t *Tenure) Lose(cause error) {
	t.once.Do(func() {
		t.cause = cause
		close(t.lost)
	})
}

// Lost is closed when the tenure has ended.
func (t *Tenure) Lost() <-chan struct{} { return t.lost }

// Err is nil while the tenure holds, then the cause of its end.
func (t *Tenure) Err() error {
	select {
	case <-t.lost:
		return t.cause
	default:
		return nil
	}
}
