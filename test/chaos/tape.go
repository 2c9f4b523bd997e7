//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"google.golang.org/protobuf/proto"

	"milepost/internal/wire"
	"milepost/test/chaos/judge"
)

// topics are a run's.
type topics struct{ raw, outputs, dead, ledger string }

func (t topics) all() []string { return []string{t.raw, t.outputs, t.dead, t.ledger} }

// tape reads the topics from their beginnings while they are written, as any reader with read_committed would, and keeps everything. It has
// to: the ledger's beginning goes away, and so does the raw topic's when a fault deletes it.
type tape struct {
	client *kgo.Client
	topics topics

	mu        sync.Mutex
	raw       []judge.Raw
	outputs   []judge.Output
	ledger    []judge.Entry
	whole     bool            // of the ledger nothing is missing
	gaps      map[int32]int64 // of the ledger, to be explained: where each partition's begins
	positions map[string]map[int32]int64
	done      map[judge.ID]bool
	open      map[judge.ID]bool // raw records without an output
	bad       error
}

func newTape(s *stack, t topics) (*tape, error) {
	client, err := s.client(kgo.ConsumeTopics(t.all()...), kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.KeepControlRecords(),
		kgo.ConsumeStartOffset(kgo.NewOffset().AtStart()), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.FetchMaxWait(250*time.Millisecond))
	if err != nil {
		return nil, err
	}
	return &tape{
		client: client, topics: t, whole: true, positions: map[string]map[int32]int64{}, done: map[judge.ID]bool{}, open: map[judge.ID]bool{},
	}, nil
}

// run reads until ctx ends.
func (t *tape) run(ctx context.Context) {
	for {
		fetches := t.client.PollFetches(ctx)
		if ctx.Err() != nil {
			return
		}
		t.mu.Lock()
		fetches.EachRecord(t.take)
		gaps := t.gaps
		t.gaps = nil
		t.mu.Unlock()
		t.explain(ctx, gaps)
	}
}

// explain finds out whether offsets that the ledger did not show were deleted before they were read. If not, they were of transactions that
// were aborted.
func (t *tape) explain(ctx context.Context, gaps map[int32]int64) {
	if len(gaps) == 0 {
		return
	}
	starts, err := kadm.NewClient(t.client).ListStartOffsets(ctx, t.topics.ledger)
	whole := err == nil && starts.Error() == nil
	for partition, from := range gaps {
		if start, ok := starts.Lookup(t.topics.ledger, partition); !ok || start.Offset > from {
			whole = false
		}
	}
	if !whole {
		t.mu.Lock()
		t.whole = false
		t.mu.Unlock()
	}
}

func (t *tape) take(r *kgo.Record) {
	at := t.positions[r.Topic]
	if at == nil {
		at = map[int32]int64{}
		t.positions[r.Topic] = at
	}
	next := at[r.Partition]
	if r.Offset < next {
		return // a reset to the start: read already
	}
	if r.Offset > next {
		switch r.Topic {
		case t.topics.ledger:
			if t.gaps == nil {
				t.gaps = map[int32]int64{}
			}
			if _, earlier := t.gaps[r.Partition]; !earlier {
				t.gaps[r.Partition] = next
			}
		case t.topics.raw:
			t.bad = errors.Join(t.bad, fmt.Errorf("raw records %d to %d of partition %d were deleted before they were read", next, r.Offset-1, r.Partition))
		}
	}
	at[r.Partition] = r.Offset + 1
	if r.Attrs.IsControl() {
		return
	}
	switch r.Topic {
	case t.topics.raw:
		id := judge.ID{Partition: r.Partition, Offset: r.Offset}
		t.raw = append(t.raw, judge.Raw{ID: id, Key: string(r.Key), Value: string(r.Value)})
		if !t.done[id] {
			t.open[id] = true
		}
	case t.topics.ledger:
		t.takeLedger(r)
	default:
		t.takeOutput(r)
	}
}

func (t *tape) takeOutput(r *kgo.Record) {
	o := judge.Output{Dead: r.Topic == t.topics.dead, Partition: r.Partition, Offset: r.Offset, Key: string(r.Key), Value: string(r.Value)}
	for _, h := range r.Headers {
		o.Headers = append(o.Headers, judge.Header{Name: h.Key, Value: string(h.Value)})
	}
	t.outputs = append(t.outputs, o)
	if parts := strings.Split(o.Header("ce_id"), "/"); len(parts) == 5 {
		p, _ := strconv.ParseInt(parts[2], 10, 32) // what is not a number is a finding of the judge's
		offset, _ := strconv.ParseInt(parts[3], 10, 64)
		id := judge.ID{Partition: int32(p), Offset: offset}
		t.done[id] = true
		delete(t.open, id)
	}
}

func (t *tape) takeLedger(r *kgo.Record) {
	m := &wire.LedgerRecord{}
	if err := proto.Unmarshal(r.Value, m); err != nil {
		t.bad = errors.Join(t.bad, fmt.Errorf("ledger record %d@%d: %w", r.Partition, r.Offset, err))
		return
	}
	for _, e := range m.GetEntries() {
		t.ledger = append(t.ledger, judge.Entry{
			Partition: r.Partition, Offset: r.Offset, Epoch: m.GetEpoch(), Producer: r.ProducerID, Key: string(e.GetKey()),
			Offsets: e.GetOffsets(), Dead: e.GetDeadLetter(),
		})
	}
}

// unanswered gives the raw records that have no output yet.
func (t *tape) unanswered() map[judge.ID]bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	open := make(map[judge.ID]bool, len(t.open))
	for id := range t.open {
		open[id] = true
	}
	return open
}

// position gives the next offset that the tape will read.
func (t *tape) position(topic string, partition int32) int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.positions[topic][partition]
}

// caughtUp waits until the topics are read to the stable ends that they have now.
func (t *tape) caughtUp(ctx context.Context, admin *kadm.Client, names ...string) error {
	var ends kadm.ListedOffsets
	for {
		var err error
		ends, err = admin.ListCommittedOffsets(ctx, names...)
		if err = errors.Join(err, ends.Error()); err == nil {
			break
		}
		if waited := pause(ctx, 300*time.Millisecond); waited != nil {
			return fmt.Errorf("list the topics' ends: %w", err)
		}
	}
	for {
		behind := ""
		ends.Each(func(o kadm.ListedOffset) {
			if at := t.position(o.Topic, o.Partition); at < o.Offset {
				behind = fmt.Sprintf("%s/%d is read to %d of %d", o.Topic, o.Partition, at, o.Offset)
			}
		})
		if behind == "" {
			return nil
		}
		if err := pause(ctx, 100*time.Millisecond); err != nil {
			return fmt.Errorf("read the topics to their ends: %s: %w", behind, err)
		}
	}
}
