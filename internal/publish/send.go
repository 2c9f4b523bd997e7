package publish

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"milepost/internal/commit"
	"milepost/internal/stream"
)

// partitioner sends ledger records where they say and all others by key, as every Kafka client does.
type partitioner struct{ ledger string }

// ForTopic implements kgo.Partitioner.
func (p partitioner) ForTopic(topic string) kgo.TopicPartitioner {
	if topic == p.ledger {
		return kgo.ManualPartitioner().ForTopic(topic)
	}
	return kgo.StickyKeyPartitioner(nil).ForTopic(topic)
}

func (l *lane) begin() error {
	l.open = true
	if err := l.client.BeginTransaction(); err != nil {
		return fmt.Errorf("begin a transaction of lane %s: %w", l.id, err)
	}
	return nil
}

// end commits. Only nil means that the transaction is committed; every error leaves that unknown (X5). It goes on when ctx
// is cancelled: an answer that is under way decides more than a read-back.
func (l *lane) end(ctx context.Context, within time.Duration) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), within)
	defer cancel()
	if err := l.client.EndTransaction(ctx, kgo.TryCommit); err != nil {
		return fmt.Errorf("commit a transaction of lane %s: %w", l.id, err)
	}
	if l.spoilt() {
		return errSpoilt
	}
	l.open = false
	return nil
}

// sending collects the acknowledgements of records. Late ones of an abandoned sending find it closed.
type sending struct {
	mu      sync.Mutex
	results []error
	acked   []bool
	left    int
	closed  bool
	done    chan struct{}
}

// send hands in the records and waits until all are answered or ctx ends. It gives each record's error, nil when it was
// acknowledged; unanswered ones have ctx's.
func (l *lane) send(ctx context.Context, records []*kgo.Record) []error {
	s := &sending{results: make([]error, len(records)), acked: make([]bool, len(records)), left: len(records), done: make(chan struct{})}
	for i, r := range records {
		l.client.Produce(ctx, r, func(_ *kgo.Record, err error) { s.answer(i, err) })
	}
	// A record that is in flight can not be taken back by its context, so the wait has its own end.
	select {
	case <-s.done:
	case <-ctx.Done():
	}
	return s.close(ctx.Err())
}

func (s *sending) answer(i int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	s.results[i], s.acked[i] = err, true
	if s.left--; s.left == 0 {
		close(s.done)
	}
}

func (s *sending) close(unanswered error) []error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for i, answered := range s.acked {
		if !answered {
			s.results[i] = unanswered
		}
	}
	return s.results
}

// sendOutputs publishes the outputs and says where they landed, by the commit's index.
func (l *lane) sendOutputs(ctx context.Context, b *batchState, part []int) (map[int][]commit.Landing, error) {
	records, owner := outputRecords(b, part)
	landed := make(map[int][]commit.Landing, len(part))
	if len(records) == 0 {
		return landed, nil
	}
	results := l.send(ctx, records)
	if err := judge(results, func(n int, to func(int)) { to(owner[n]) }, records); err != nil {
		return nil, err
	}
	for n, r := range records {
		landed[owner[n]] = append(landed[owner[n]], landing(r))
	}
	return landed, nil
}

// outputRecords gives the part's outputs as records, and for each the index of its commit.
func outputRecords(b *batchState, part []int) (records []*kgo.Record, owner []int) {
	for _, i := range part {
		for o := range b.commits[i].Outputs {
			records = append(records, recordOf(&b.commits[i].Outputs[o]))
			owner = append(owner, i)
		}
	}
	return records, owner
}

func landing(r *kgo.Record) commit.Landing {
	return commit.Landing{Topic: r.Topic, Partition: r.Partition, Offset: r.Offset}
}

func recordOf(o *commit.Output) *kgo.Record {
	r := &kgo.Record{Topic: o.Topic, Key: o.Key, Value: o.Value}
	for _, h := range o.Headers {
		r.Headers = append(r.Headers, kgo.RecordHeader{Key: h.Key, Value: h.Value})
	}
	return r
}

// sendLedger enters every share in its partition of the ledger and gives the positions.
func (l *lane) sendLedger(ctx context.Context, topic string, b *batchState, shares []share, landed map[int][]commit.Landing) (map[stream.Partition]int64, error) {
	records, err := ledgerRecords(topic, b, shares, landed)
	if err != nil {
		return nil, err
	}
	if err := judgeLedger(l.send(ctx, records), shares, records); err != nil {
		return nil, err
	}
	positions := make(map[stream.Partition]int64, len(shares))
	for n, s := range shares {
		if at, ok := positions[s.tenure.Partition]; !ok || records[n].Offset < at {
			positions[s.tenure.Partition] = records[n].Offset
		}
	}
	return positions, nil
}

// ledgerRecords gives a record for each share.
func ledgerRecords(topic string, b *batchState, shares []share, landed map[int][]commit.Landing) ([]*kgo.Record, error) {
	records := make([]*kgo.Record, 0, len(shares))
	for _, s := range shares {
		entries := make([]commit.Entry, 0, len(s.commits))
		for _, i := range s.commits {
			entries = append(entries, commit.EntryOf(&b.commits[i], landed[i]))
		}
		value, err := commit.EncodeEntries(entries)
		if err != nil {
			return nil, suspects(s.commits, err)
		}
		records = append(records, &kgo.Record{Topic: topic, Partition: s.tenure.Partition.Number, Value: value})
	}
	return records, nil
}

func judgeLedger(results []error, shares []share, records []*kgo.Record) error {
	err := judge(results, func(n int, to func(int)) {
		for _, i := range shares[n].commits {
			to(i)
		}
	}, records)
	if held := (*culprits)(nil); errors.As(err, &held) && held.certain && !held.slow {
		// Without a ledger nothing can be published: that is nobody's own fault.
		return fmt.Errorf("write the ledger: %s", held.Error())
	}
	return err
}

func suspects(commits []int, err error) *culprits {
	held := &culprits{commits: map[int]error{}}
	for _, i := range commits {
		held.commits[i] = err
	}
	return held
}

// judge makes one error of the records' results. Errors that belong to records become culprits; when some records
// were acknowledged in time and others not, those are held back too: their topic has trouble of its own.
func judge(results []error, owners func(n int, to func(int)), records []*kgo.Record) error {
	permanent := &culprits{commits: map[int]error{}}
	absent := &culprits{certain: true, commits: map[int]error{}}
	slow := &culprits{certain: true, slow: true, commits: map[int]error{}}
	var other error
	acked := 0
	for n, err := range results {
		if err == nil {
			acked++
			continue
		}
		err = fmt.Errorf("publish to topic %s: %w", records[n].Topic, err)
		into := slow
		switch kindOf(err) {
		case fatal:
			into, err = permanent, fmt.Errorf("%w: %w", err, commit.ErrPermanent)
		case missing:
			into = absent
		case away, regroup:
			if !errors.Is(err, context.DeadlineExceeded) {
				other = err
			}
		}
		owners(n, func(i int) { into.commits[i] = err })
	}
	switch {
	case len(permanent.commits) > 0:
		return permanent
	case len(absent.commits) > 0:
		return absent
	case other != nil:
		return other
	case len(slow.commits) > 0 && acked > 0:
		return slow
	case len(slow.commits) > 0:
		return context.DeadlineExceeded
	}
	return nil
}
