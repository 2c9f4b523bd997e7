package publish

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"milepost/internal/commit"
	"milepost/internal/stream"
)

// Ledger is commit.Ledger: the internal topic that says which revisions a Kafka transaction published.
type Ledger struct {
	group, raw string
	read       reader
	known      topicCache
	log        *slog.Logger
}

var _ commit.Ledger = (*Ledger)(nil)

// stuckAfter is after how long a read that does not get past the last stable offset is logged.
const stuckAfter = 5 * time.Second

// NewLedger makes a ledger of (group, raw topic) over a client that is not transactional. It does no I/O.
func NewLedger(client *kgo.Client, group, raw, topic string, log *slog.Logger) *Ledger {
	return &Ledger{
		group: group, raw: raw, read: reader{client: client, topic: topic},
		known: topicCache{client: client}, log: log,
	}
}

// Settled implements commit.Ledger. Kafka being away is waited out until ctx ends.
func (l *Ledger) Settled(ctx context.Context, p stream.Partition, floor int64, each func(int64, commit.Entry) error) (int64, error) {
	if err := l.stable(ctx, p); err != nil {
		return 0, err
	}
	end, err := l.bound(ctx, p.Number, atEnd)
	if err != nil {
		return 0, err
	}
	start, err := l.bound(ctx, p.Number, atStart)
	if err != nil {
		return 0, err
	}
	if start > floor || end < floor {
		return 0, l.floorError(p.Number, floor, start, end)
	}
	err = l.scan(ctx, p.Number, floor, end, func(r *kgo.Record) error { return l.entries(p.Number, r, each) })
	if is(err, kerr.OffsetOutOfRange) {
		// Somebody deleted records while we read.
		start, err := l.bound(ctx, p.Number, atStart)
		if err != nil {
			return 0, err
		}
		return 0, l.floorError(p.Number, floor, start, end)
	}
	if err != nil {
		return 0, err
	}
	return end, nil
}

func (l *Ledger) floorError(n int32, floor, start, end int64) error {
	return &FloorError{Partition: stream.Partition{Topic: l.read.topic, Number: n}, Floor: floor, Start: start, End: end}
}

// entries decodes one ledger record. A record of a stranger stops the reading (X9).
func (l *Ledger) entries(n int32, r *kgo.Record, each func(int64, commit.Entry) error) error {
	entries, err := commit.DecodeEntries(r.Value)
	if err != nil {
		return fmt.Errorf("ledger %s/%d at %d: %w", l.read.topic, n, r.Offset, err)
	}
	for _, e := range entries {
		if e.Group != l.group || e.Topic != l.raw {
			return &StrangerError{
				Partition: stream.Partition{Topic: l.read.topic, Number: n}, Position: r.Offset, Group: e.Group, Topic: e.Topic,
			}
		}
		if err := each(r.Offset, e); err != nil {
			return err
		}
	}
	return nil
}

// scan gives each committed record of [from, end) to do, in order. It ends by position, so it does not matter that the
// last record is a marker or aborted; it waits while an open transaction holds the last stable offset below end.
func (l *Ledger) scan(ctx context.Context, n int32, from, end int64, do func(*kgo.Record) error) error {
	moved, said := time.Now(), false
	for at, try := from, 0; at < end; {
		fp, next, err := l.read.fetch(ctx, n, at)
		switch {
		case is(err, kerr.OffsetOutOfRange):
			return err
		case err != nil:
			if err := l.again(ctx, err, try); err != nil {
				return err
			}
			try++
			continue
		}
		for _, r := range fp.Records {
			if r.Offset >= end {
				break
			}
			if err := do(r); err != nil {
				return err
			}
		}
		if next > at {
			at, try, moved = next, 0, time.Now()
			continue
		}
		if !said && time.Since(moved) > stuckAfter {
			said = true
			l.log.LogAttrs(ctx, slog.LevelWarn, "an open transaction holds the ledger back",
				slog.String("topic", l.read.topic), slog.Int("partition", int(n)), slog.Int64("offset", at),
				slog.Int64("last_stable_offset", fp.LastStableOffset), slog.Int64("end", end))
		}
		if ctx.Err() != nil {
			return fmt.Errorf("read ledger %s/%d: %w", l.read.topic, n, context.Cause(ctx))
		}
	}
	return nil
}

// again waits before a repetition; it gives the error that ends the reading.
func (l *Ledger) again(ctx context.Context, err error, try int) error {
	if ctx.Err() != nil {
		return fmt.Errorf("read ledger: %w", errors.Join(err, context.Cause(ctx)))
	}
	if try == 3 {
		l.log.LogAttrs(ctx, slog.LevelWarn, "reading the ledger waits", slog.Any("err", err))
	}
	sleep(ctx, backoff(try+1))
	return nil
}

func (l *Ledger) bound(ctx context.Context, n int32, which int64) (int64, error) {
	for try := 0; ; try++ {
		at, err := l.read.bound(ctx, n, which)
		if err == nil {
			return at, nil
		}
		if err := l.again(ctx, err, try); err != nil {
			return 0, err
		}
	}
}

// stable waits until no transactional offset of the partition is pending.
func (l *Ledger) stable(ctx context.Context, p stream.Partition) error {
	pause := 3 * time.Millisecond
	for try := 0; ; {
		err := l.pending(ctx, p)
		switch {
		case err == nil:
			return nil
		case is(err, kerr.UnstableOffsetCommit):
			// Markers are on their way, or a transaction is open whose lane nobody has initialised.
			if !sleep(ctx, pause) {
				return fmt.Errorf("wait for pending offsets of %s: %w", p, context.Cause(ctx))
			}
			pause = min(2*pause, 100*time.Millisecond)
		default:
			if err := l.again(ctx, err, try); err != nil {
				return err
			}
			try++
		}
	}
}

func (l *Ledger) pending(ctx context.Context, p stream.Partition) error {
	id, err := l.known.id(ctx, p.Topic)
	if err != nil {
		return err
	}
	req := kmsg.NewPtrOffsetFetchRequest()
	req.RequireStable = true
	g := kmsg.NewOffsetFetchRequestGroup()
	g.Group = l.group
	t := kmsg.NewOffsetFetchRequestGroupTopic()
	t.Topic, t.TopicID, t.Partitions = p.Topic, id, []int32{p.Number}
	g.Topics = append(g.Topics, t)
	req.Groups = append(req.Groups, g)
	resp, err := req.RequestWith(ctx, l.read.client)
	if err != nil {
		return fmt.Errorf("fetch offset of %s: %w", p, err)
	}
	for _, g := range resp.Groups {
		err := kerr.ErrorForCode(g.ErrorCode)
		if is(err, kerr.GroupIDNotFound) {
			return nil // a group that does not exist has nothing pending
		}
		if err != nil {
			return fmt.Errorf("fetch offset of %s: %w", p, err)
		}
		for _, t := range g.Topics {
			for _, part := range t.Partitions {
				if err := kerr.ErrorForCode(part.ErrorCode); err != nil {
					return fmt.Errorf("fetch offset of %s: %w", p, err)
				}
				return nil
			}
		}
	}
	return fmt.Errorf("fetch offset of %s: the answer names no such partition", p)
}

// committed reports whether the record at the position is visible to a read_committed reader. The transaction that
// wrote it must have ended for good.
func (l *Ledger) committed(ctx context.Context, n int32, at int64) (bool, error) {
	found := false
	err := l.scan(ctx, n, at, at+1, func(r *kgo.Record) error {
		found = found || r.Offset == at
		return nil
	})
	if is(err, kerr.OffsetOutOfRange) {
		return false, errPassed
	}
	return found, err
}

// DeleteBelow deletes the partition's records below the floor, which must be durable. p is the raw partition. A floor that is already
// deleted is success.
func (l *Ledger) DeleteBelow(ctx context.Context, p stream.Partition, floor int64) error {
	var os kadm.Offsets
	os.AddOffset(l.read.topic, p.Number, floor, -1)
	resps, err := kadm.NewClient(l.read.client).DeleteRecords(ctx, os)
	if err == nil {
		err = resps.Error()
	}
	if is(err, kerr.OffsetOutOfRange) {
		if start, serr := l.read.bound(ctx, p.Number, atStart); serr == nil && start >= floor {
			return nil
		}
	}
	if err != nil {
		return fmt.Errorf("delete records of ledger %s/%d below %d: %w", l.read.topic, p.Number, floor, err)
	}
	return nil
}
