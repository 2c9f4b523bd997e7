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
	// Holds, when set, says whether a tenure's owner row still is its own; those that it denies are refused as lost.
	Holds func(t *commit.Tenure) bool
	// MaxRecordBytes, when set, is what an output may have; a larger one is permanent.
	MaxRecordBytes int64
	// Gate, when set, is called with each batch before anything is published and may block (until ctx ends).
	Gate func(ctx context.Context, lane int, batch []commit.Commit) error

	lanes int

	mu      sync.Mutex
	busy    map[int]bool
	ledger  map[stream.Partition][]commit.Entry
	starts  map[stream.Partition]int64
	outputs []commit.Output
	absent  map[string]bool
	topics  map[string]int64 // how many outputs each has
	batches []int
}

// NewMemoryBroker makes a broker with so many lanes.
func NewMemoryBroker(lanes int) *MemoryBroker {
	return &MemoryBroker{
		lanes: lanes, busy: map[int]bool{}, ledger: map[stream.Partition][]commit.Entry{}, starts: map[stream.Partition]int64{},
		absent: map[string]bool{}, topics: map[string]int64{},
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
	out := commit.Published{Positions: map[stream.Partition]int64{}, Failed: map[int]error{}}
	for i := range batch {
		if err := b.lost(batch[i].Tenure); err != nil {
			out.Failed[i] = err
		}
	}
	if b.Gate != nil {
		// What ends from here on is under way already.
		if err := b.Gate(ctx, lane, batch); err != nil {
			return commit.Published{}, err
		}
	}
	b.append(batch, &out)
	return out, nil
}

func (b *MemoryBroker) lost(t *commit.Tenure) error {
	if err := t.Err(); err != nil {
		return &commit.FencedError{Partition: t.Partition, Held: t.Epoch, Reason: err.Error()}
	}
	if b.Holds != nil && !b.Holds(t) {
		return &commit.FencedError{Partition: t.Partition, Held: t.Epoch}
	}
	return nil
}

func (b *MemoryBroker) append(batch []commit.Commit, out *commit.Published) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.batches = append(b.batches, len(batch))
	for i := range batch {
		c := &batch[i]
		p := c.Tenure.Partition
		if out.Failed[i] != nil {
			continue
		}
		if err := b.refuse(c); err != nil {
			out.Failed[i] = err
			continue
		}
		at := b.starts[p] + int64(len(b.ledger[p]))
		if lowest, ok := out.Positions[p]; !ok || at < lowest {
			out.Positions[p] = at
		}
		var landed []commit.Landing
		for _, o := range c.Outputs {
			landed = append(landed, commit.Landing{Topic: o.Topic, Offset: b.topics[o.Topic]})
			b.topics[o.Topic]++
		}
		b.ledger[p] = append(b.ledger[p], commit.EntryOf(c, landed))
		b.outputs = append(b.outputs, c.Outputs...)
	}
}

// refuse says why a commit cannot be published.
func (b *MemoryBroker) refuse(c *commit.Commit) error {
	for i := range c.Outputs {
		o := &c.Outputs[i]
		switch {
		case b.absent[o.Topic]:
			return fmt.Errorf("publish to topic %s: it is not there", o.Topic)
		case b.MaxRecordBytes > 0 && o.Size() > b.MaxRecordBytes:
			return fmt.Errorf("publish to topic %s: the output has %d bytes: %w", o.Topic, o.Size(), commit.ErrPermanent)
		}
	}
	if b.Fault != nil {
		return b.Fault(c)
	}
	return nil
}

// SetAbsent makes a topic be not there, or be there again.
func (b *MemoryBroker) SetAbsent(topic string, absent bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.absent[topic] = absent
}

// Outputs gives what is visible of a topic, in order.
func (b *MemoryBroker) Outputs(topic string) []commit.Output {
	b.mu.Lock()
	defer b.mu.Unlock()
	var outputs []commit.Output
	for _, o := range b.outputs {
		if o.Topic == topic {
			outputs = append(outputs, o)
		}
	}
	return outputs
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
