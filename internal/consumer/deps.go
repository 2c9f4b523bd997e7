package consumer

import (
	"context"
	"io"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"milepost/internal/commit"
	"milepost/internal/partition"
	"milepost/internal/stream"
)

// Pipeline runs the commit stages.
type Pipeline interface {
	Submit(c commit.Commit, done func(commit.Outcome))
	Settle(ctx context.Context, tenures []*commit.Tenure) error
}

// Recovery finishes what earlier owners left behind.
type Recovery interface {
	Run(ctx context.Context, t *commit.Tenure, s commit.Start) (commit.RecoveryReport, error)
	FinishKey(ctx context.Context, t *commit.Tenure, key stream.Key) error
}

// Formers initialises the lanes of former owners, so that no transaction of theirs is open or can still commit.
type Formers interface {
	InitFormers(ctx context.Context, topic string, formers []commit.Former) error
}

// Solver decides jobs. Submit never blocks; false means that there is no room now. done is called exactly once, on any
// goroutine, and does not block.
type Solver interface {
	Submit(job partition.Dispatch, done func(partition.Decision, error)) bool
}

// RemoteSolver decides jobs on the other side of a network: a job may have one answer, several, or none, and answers come for
// jobs that nobody here sent. Nothing depends on it: the machine asks again.
type RemoteSolver interface {
	// Attach opens the partition's desk. deliver is called with each answer for the partition, asked for or not, until the
	// desk is closed, on any goroutine; it does not block.
	Attach(p stream.Partition, deliver func(partition.Result)) Desk
}

// Desk takes one partition's jobs. Submit never blocks; false means that there is no room now. After Close nothing is delivered.
type Desk interface {
	Submit(job partition.Dispatch) bool
	Close()
}

// LedgerCutter deletes a ledger partition's records below the floor.
type LedgerCutter interface {
	DeleteBelow(ctx context.Context, p stream.Partition, floor int64) error
}

// Deps are the parts that a Consumer works with.
type Deps struct {
	Owners commit.Owners
	Store  commit.Store
	// Operations executes operators' requests; nil: none are read.
	Operations commit.Operations
	// Retention lets go of old states, and Tail gives what the workload keeps of one, nil for bytes that it cannot read; wanted where
	// Config.StateRetention is set.
	Retention commit.Retention
	Tail      func(state []byte) []byte
	Pipeline  Pipeline
	Recovery  Recovery
	Formers   Formers
	Ledger    LedgerCutter
	Solver    Solver
	Remote    RemoteSolver // set: instead of Solver
	Workload  partition.Workload
	// Admission bounds the jobs in flight over all partitions of the process; nil: each partition by itself.
	Admission *partition.Credits
	// Membership is what the lanes ask for member id and generation; the consumer keeps it current.
	Membership *Membership
	// Rand gives nonces and jitter; crypto/rand.Reader in production.
	Rand     io.Reader
	Log      *slog.Logger
	Observer Observer
}

// Observer is told of what happens; each function may be nil, is called on the consumer's goroutines and must not block.
type Observer struct {
	// GroupChanged: an assignment callback has come, member id or generation may have changed.
	GroupChanged func()
	Acquired     func(p stream.Partition, epoch stream.Epoch, took time.Duration)
	Recovered    func(r commit.RecoveryReport, took time.Duration)
	// Ended: a tenure is over. cause is nil after a clean drain.
	Ended      func(p stream.Partition, epoch stream.Epoch, released bool, cause error, r partition.Report)
	Frontier   func(p stream.Partition, f stream.Frontier, took time.Duration)
	FetchError func(err error)
	// Solved: a job was answered, so long after it was handed to the solver.
	Solved func(took time.Duration, err error)
	// Committed: an observation's outputs are durable, so long after its record's Kafka timestamp.
	Committed func(latency time.Duration)
	// Late: an observation was committed past its region's budget, by so much.
	Late func(region string, by time.Duration)
	// Turned: a worker's loop took a turn, of a kind that Turns lists. One of many is told.
	Turned func(kind string, took time.Duration)
	// Gap: records did not start at the expected offset and were fetched again.
	Gap func(p stream.Partition, expected, got int64)
	// Difference: the group's committed offset is not the frontier; Postgres wins.
	Difference func(p stream.Partition, frontier, committed int64)
	// DataLoss: retention had overtaken the frontier, and the partition goes on at the start of the log.
	DataLoss func(p stream.Partition, frontier, start int64)
	// Expired: so many keys' states were let go of by their age.
	Expired func(n int)
}

// Membership tells the current member id and generation of the group. The zero value is no member.
type Membership struct {
	client atomic.Pointer[kgo.Client]
}

// Generation gives member id and generation as the client holds them now; "" and -1 without a client. They do not mean that
// the group still accepts them.
func (m *Membership) Generation() (memberID string, generation int32) {
	cl := m.client.Load()
	if cl == nil {
		return "", -1
	}
	return cl.GroupMetadata()
}
