package commit

import (
	"context"

	"milepost/internal/stream"
)

// Owners issues ownership epochs: the rows that every write is fenced by. Rows are always locked in partition order.
type Owners interface {
	// Epochs reads the rows' epochs, inserting rows at epoch 0 where there are none (acquisition, step 2).
	Epochs(ctx context.Context, group string, partitions []stream.Partition) ([]OwnerRow, error)
	// Acquire moves each claimed row from its expected epoch e to e+1 in one statement (SELECT … FOR UPDATE, then the
	// update), with the claim's evidence, and writes the first frontier where there is none. The result says for each
	// claim whether its row was at e. The former owner joins the row's unreleased list unless it had released.
	Acquire(ctx context.Context, claims []Claim) ([]bool, error)
	// Start reads, in a statement later than Acquire's, what the owner goes on from (H5).
	Start(ctx context.Context, tenures []*Tenure) ([]Start, error)
	// Holds reports for each tenure whether the row still has its epoch and nonce: what a process asks after it
	// has initialised a lane and before the lane's first transaction.
	Holds(ctx context.Context, tenures []*Tenure) ([]bool, error)
	// Recovered empties the row's list of unreleased former owners: recovery has finished its last step.
	Recovered(ctx context.Context, t *Tenure, formers []Former) error
	// Release marks the row released: no transaction with the partition is open or unknown and none can be
	// composed any more.
	Release(ctx context.Context, t *Tenure) error
}

// OwnerRow is a partition's owner as it stands.
type OwnerRow struct {
	Partition       stream.Partition
	Epoch           stream.Epoch
	Generation      int32 // the group's, of the last acquisition
	TopicID         [16]byte
	TopicGeneration int32
	LedgerTopicID   [16]byte
	Partitions      int32 // the raw topic's partition count then
	PublishMode     PublishMode
	HasFrontier     bool
}

// Claim is the evidence with which a tenure asks for a partition.
type Claim struct {
	Group      string
	Partition  stream.Partition
	Expected   stream.Epoch // e; the tenure's epoch is e+1
	Nonce      stream.Nonce
	Generation int32  // of the group, proven current after Epochs was read
	MemberID   string // under which the tenure begins
	Instance   string // unique per process start; lane ids derive from it
	Lanes      int    // transactional producers; 0 in mode idempotent
	TopicID    [16]byte
	// TopicGeneration is the row's, 1 for a row that never had an owner.
	TopicGeneration int32
	LedgerTopicID   [16]byte
	Partitions      int32
	// PublishMode is how the owner publishes; a row that was owned in another mode is not moved (H9). Empty: transactional.
	PublishMode PublishMode
	// First is the frontier to write where the row has none yet.
	First stream.Frontier
	// FirstFloor is the ledger floor that goes with First: the ledger partition's start.
	FirstFloor int64
}

// Start is what a new tenure goes on from.
type Start struct {
	Frontier    stream.Frontier
	LedgerFloor int64
	Prepared    int // prepared rows found
	Formers     []Former
	Anew        Anew
}

// Anew says which keys of a partition begin anew: those whose checkpoint is of a lower revision. The next commit of each carries
// a reset of the reason. The zero value: none.
type Anew struct {
	Before stream.Revision
	Reason string // of the workloads' closed list of resets
}

// Former is an earlier owner that has not released: its lanes must be initialised before recovery.
type Former struct {
	Instance string
	Lanes    int
	Epoch    stream.Epoch
}
