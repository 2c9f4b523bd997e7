package consumer

import (
	"context"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kadm"

	"milepost/internal/commit"
	"milepost/internal/stream"
)

// firstStart fills in where the claims of partitions without a frontier begin: at the group's committed offset, so that a
// group that migrates from another consumer goes on where it was; else where the start policy says. The acquisition
// itself writes it, so that a start at latest cannot move under a crash (H7).
func (s *session) firstStart(ctx context.Context, claims []commit.Claim, first []int) error {
	topic := s.c.cfg.Topic
	committed, err := s.admin.FetchOffsets(kadm.RequireStable(ctx), s.c.cfg.Group)
	if err != nil {
		return fmt.Errorf("read the group's committed offsets: %w", err)
	}
	list := s.admin.ListStartOffsets
	if s.c.cfg.Start == StartLatest {
		list = s.admin.ListEndOffsets
	}
	policy, err := list(ctx, topic)
	if err != nil {
		return fmt.Errorf("list the offsets of %s: %w", topic, err)
	}
	floors, err := s.admin.ListStartOffsets(ctx, s.c.cfg.LedgerTopic)
	if err != nil {
		return fmt.Errorf("list the offsets of %s: %w", s.c.cfg.LedgerTopic, err)
	}
	for _, i := range first {
		c := &claims[i]
		floor, err := offsetOf(floors, s.c.cfg.LedgerTopic, c.Partition.Number)
		if err != nil {
			return err
		}
		c.FirstFloor = floor.Offset
		c.First = stream.Frontier{Next: stream.Revision{Generation: c.TopicGeneration}, LeaderEpoch: -1}
		at, ok := committed.Lookup(topic, c.Partition.Number)
		if ok && at.Err != nil {
			return fmt.Errorf("read the group's committed offset of %s: %w", c.Partition, at.Err)
		}
		if ok && at.At >= 0 {
			c.First.Next.Offset, c.First.LeaderEpoch = at.At, at.LeaderEpoch
			continue
		}
		listed, err := offsetOf(policy, topic, c.Partition.Number)
		if err != nil {
			return err
		}
		// The leader epoch of a listed offset is the next record's, not that of the record below it.
		c.First.Next.Offset = listed.Offset
	}
	return nil
}

func offsetOf(l kadm.ListedOffsets, topic string, partition int32) (kadm.ListedOffset, error) {
	o, ok := l.Lookup(topic, partition)
	if !ok {
		return o, fmt.Errorf("list the offsets of %s/%d: %w", topic, partition, errors.New("the broker does not know the partition"))
	}
	if o.Err != nil {
		return o, fmt.Errorf("list the offsets of %s/%d: %w", topic, partition, o.Err)
	}
	return o, nil
}

// bounds reads where a partition's log starts and ends now.
func (s *session) bounds(ctx context.Context, p stream.Partition) (start, end int64, err error) {
	starts, err := s.admin.ListStartOffsets(ctx, p.Topic)
	if err != nil {
		return 0, 0, fmt.Errorf("list the offsets of %s: %w", p.Topic, err)
	}
	ends, err := s.admin.ListEndOffsets(ctx, p.Topic)
	if err != nil {
		return 0, 0, fmt.Errorf("list the offsets of %s: %w", p.Topic, err)
	}
	from, err := offsetOf(starts, p.Topic, p.Number)
	if err != nil {
		return 0, 0, err
	}
	to, err := offsetOf(ends, p.Topic, p.Number)
	if err != nil {
		return 0, 0, err
	}
	return from.Offset, to.Offset, nil
}
