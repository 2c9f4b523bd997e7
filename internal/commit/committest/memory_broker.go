package committest

import (
	"context"
	"fmt"
	"sync"

	"milepost/internal/commit"
	"milepost/internal/stream"
)

// MemoryBroker is a commit.Publisher and commit.Ledger in memory: what a read_committed reader sees; safe for concurrent use.
type MemoryBroker struct {
	// Fault, when set, may refuse a commit before its batch is published; the others of the batch go on.
	Fault func(c *commit.Commit) error
	// Gate, when set, is called with each batch before anything is published and may block (until ctx ends).
	Gate func(ctx context.Context, lane int, batch []commit.Commit) error

	lanes int

	mu      sync.Mutex
	busy    map[int]bool
	ledger  map[stream.Partition][]commit.Entry
	starts  map[stream.Partition]int64
	outputs []commit.Output
	batches []int
}

// NewMemoryBroker makes a broker with so many lanes.
func NewMemoryBroker(lanes int) *MemoryBroker {
	return &MemoryBroker{
		lanes: lanes, busy: map[int]bool{}, ledger: map[stream.Partition][]commit.Entry{}, starts: map[stream.Partition]int64{},
	}
}

var (
	_ commit.Publisher = (*MemoryBroker)(nil)
	_ commit.Ledger    = (*MemoryBroker)(nil)
)

// Lanes implements commit.Publisher.
func (b *MemoryBroker) Lanes() int { return b.lanes }

// Publish implements commit.Publisher.
func (b *MemoryBroker) Publish(ctx context.Context, lane int, batch []commit.Commit) (commit.Published, error) {
	b.mu.Lock()
	if b.busy[lane] {
		panic(fmt.Sprintf("lane %d has two transactions at once", lane))
	}
	b.busy[lane] = true
	b.mu.Unlock()
	defer func() {
		b.mu.Lock()
		b.busy[lane] = false
		b.mu.Unlock()
	}()
	if b.Gate != nil {
		if err := b.Gate(ctx, lane, batch); err != nil {
			return commit.Published{}, err
		}
	}
	return b.append(batch), nil
}

func (b *MemoryBroker) append(batch []commit.Commit) commit.Published {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.batches = append(b.batches, len(batch))
	out := commit.Published{Positions: map[stream.Partition]int64{}, Failed: map[int]error{}}
	for i := range batch {
		c := &batch[i]
		p := c.Tenure.Partition
		if b.Fault != nil {
			if err := b.Fault(c); err != nil {
				out.Failed[i] = err
				continue
			}
		}
		out.Positions[p] = b.starts[p] + int64(len(b.ledger[p]))
		b.ledger[p] = append(b.ledger[p], commit.EntryOf(c, nil))
		b.outputs = append(b.outputs, c.Outputs...)
	}
	return out
}

// Settled implements commit.Ledger.
func (b *MemoryBroker) Settled(_ context.Context, p stream.Partition, floor int64, each func(int64, commit.Entry) error) (int64, error) {
	b.mu.Lock()
	entries, start := b.ledger[p], b.starts[p]
	b.mu.Unlock()
	end := start + int64(len(entries))
	if start > floor || end < floor {
		return 0, fmt.Errorf("ledger of %s holds positions %d to %d, the floor is %d", p, start, end, floor)
	}
	for i, e := range entries[floor-start:] {
		if err := each(floor+int64(i), e); err != nil {
			return 0, err
		}
	}
	return end, nil
}

// Truncate drops ledger entries below the position.
func (b *MemoryBroker) Truncate(p stream.Partition, position int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ledger[p] = b.ledger[p][position-b.starts[p]:]
	b.starts[p] = position
}

// Values gives the published outputs' values in order.
func (b *MemoryBroker) Values() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	values := make([]string, len(b.outputs))
	for i, o := range b.outputs {
		values[i] = string(o.Key) + "=" + string(o.Value)
	}
	return values
}

// Batches gives the sizes of the batches in the order they were published.
func (b *MemoryBroker) Batches() []int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]int(nil), b.batches...)
}
