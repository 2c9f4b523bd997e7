package commit

import (
	"context"

	"milepost/internal/stream"
)

// PublishMode says what a Publisher promises. A group keeps the mode that it began with: it changes only while the group is empty (H9).
type PublishMode string

// The modes.
const (
	// Transactional: a batch becomes visible as a whole, once.
	Transactional PublishMode = "transactional"
	// Idempotent: without transactions, at least once. A repeat has the same bytes and identity; readers drop what they have seen.
	Idempotent PublishMode = "idempotent"
)

// Publisher makes a batch of prepared commits visible and enters them in the ledger. What follows is promised in mode
// Transactional. In mode Idempotent the batch is not one whole, "certainly not published" means no more than "not in the ledger
// yet" (some of it may be visible), and a process that has lost a partition without knowing it can repeat what it had in hand. The
// bytes are those of the prepared commit in either mode, so that a repeat is the same record.
type Publisher interface {
	// Lanes is how many Publish calls may run at once, each with its own lane number 0 … Lanes()-1.
	Lanes() int
	// Publish publishes the batch in one transaction of the lane, in the order lane → epochs → generation → nonces →
	// send, the same on every retry. It returns only when the outcome is known for certain:
	//   - each commit of Published.Positions' partitions is visible to read_committed readers, or
	//   - the commit's index is in Published.Failed with an error, and it is certainly not published: Fenced for
	//     lost tenures, Permanent for a commit that no retry can publish, Transient otherwise.
	// The second result is non-nil only when ctx ended or the lane is closed before the outcome was known.
	Publish(ctx context.Context, lane int, batch []Commit) (Published, error)
}

// Published is the outcome of one Publish.
type Published struct {
	// Positions is the ledger position of the batch's entry, by raw partition.
	Positions map[stream.Partition]int64
	// Failed is the error of each commit that was not published, by its index in the batch.
	Failed map[int]error
}

// Ledger reads back what was published. The ledger has the raw topic's partition count.
type Ledger interface {
	// Settled waits until no transactional offset of the partition is pending (OffsetFetch with RequireStable), then
	// notes the ledger partition's end and reads with read_committed from floor to that position; it calls each
	// for every entry in order and returns the noted end: the first position not read. A ledger that starts above
	// the floor or ends below it is an error that names the repair command, never an empty ledger.
	Settled(ctx context.Context, p stream.Partition, floor int64, each func(position int64, e Entry) error) (end int64, err error)
}

// Entry is what one transaction published for one key of one partition.
type Entry struct {
	Group           string
	Topic           string
	TopicGeneration int32
	Epoch           stream.Epoch
	Key             stream.Key
	Base            stream.Revision
	Offsets         []int64 // the observations, in order
	Segment         int64
	Digest          ID // of the outputs
	DeadLetter      bool
	Landed          []Landing
}

// Landing is where one output landed.
type Landing struct {
	Topic     string
	Partition int32
	Offset    int64
}
