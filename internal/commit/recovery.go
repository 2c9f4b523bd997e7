package commit

import (
	"context"

	"milepost/internal/stream"
)

// Recovery finishes what an earlier owner of a partition left behind (design: read the ledger back).
type Recovery struct {
	Store    Store
	Owners   Owners
	Ledger   Ledger
	Pipeline interface {
		Submit(c Commit, done func(Outcome))
	}
}

// RecoveryReport is what a recovery found and did (A2).
type RecoveryReport struct {
	Partition     stream.Partition
	Frontier      stream.Frontier
	Epoch         stream.Epoch
	LedgerFloor   int64
	LedgerHighest int64        // highest position seen plus one
	Prepared      int          // rows found
	Promoted      int          // of them: published by a former owner
	Published     int          // of them: published now
	Done          []int64      // offsets at or above the frontier that are done without a row (dead letters)
	Failed        []stream.Key // could not be finished: they start blocked
}

// Run recovers the tenure's partition. Every lane id of every former has been initialised before. It can be broken off
// by ctx and begun again by anyone.
func (r Recovery) Run(ctx context.Context, t *Tenure, s Start) (RecoveryReport, error) {
	panic("not built yet")
}

// FinishKey finishes the prepared commit that stands in one key's row, whoever left it there: published already, it is
// promoted; else it is published and promoted.
func (r Recovery) FinishKey(ctx context.Context, t *Tenure, key stream.Key, floor int64) error {
	panic("not built yet")
}
