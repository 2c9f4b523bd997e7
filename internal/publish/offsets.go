package publish

import (
	"context"
	"fmt"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"milepost/internal/commit"
)

// commitOffsets adds the partitions' saved frontiers to the transaction, under our member id and generation: the
// coordinator refuses them when the group has moved on. It is a raw request, because franz-go offers it to group consumers
// only, whose generation it would read at the time of sending.
func (p *Publisher) commitOffsets(ctx context.Context, l *lane, shares []share, member string, generation int32) error {
	id, epoch, err := l.client.ProducerID(ctx)
	if err != nil {
		return fmt.Errorf("commit offsets: %w", err)
	}
	topicID, err := p.known.id(ctx, p.cfg.Raw)
	if err != nil {
		return fmt.Errorf("commit offsets: %w", err)
	}
	req := kmsg.NewPtrTxnOffsetCommitRequest()
	req.TransactionalID, req.Group = l.id, p.cfg.Group
	req.ProducerID, req.ProducerEpoch = id, epoch
	req.MemberID, req.Generation = member, generation
	t := kmsg.NewTxnOffsetCommitRequestTopic()
	t.Topic, t.TopicID = p.cfg.Raw, topicID // from version 6 on by id only
	at := map[int32]int{}
	for _, s := range shares {
		n := s.tenure.Partition.Number
		offset := s.tenure.SavedFrontier.Load()
		if have, ok := at[n]; ok {
			t.Partitions[have].Offset = max(t.Partitions[have].Offset, offset)
			continue
		}
		part := kmsg.NewTxnOffsetCommitRequestTopicPartition()
		part.Partition, part.Offset, part.LeaderEpoch, part.Metadata = n, offset, -1, new(p.cfg.OffsetMetadata)
		at[n] = len(t.Partitions)
		t.Partitions = append(t.Partitions, part)
	}
	req.Topics = append(req.Topics, t)
	resp, err := req.RequestWith(ctx, l.client)
	if err != nil {
		return fmt.Errorf("commit offsets: %w", err)
	}
	return judgeOffsets(resp, shares, len(t.Partitions), member, generation)
}

// judgeOffsets wants every partition acknowledged: a partition that the answer leaves out is not.
func judgeOffsets(resp *kmsg.TxnOffsetCommitResponse, shares []share, want int, member string, generation int32) error {
	held := &culprits{certain: true, commits: map[int]error{}}
	var other error
	acked := 0
	for _, t := range resp.Topics {
		for _, part := range t.Partitions {
			err := kerr.ErrorForCode(part.ErrorCode)
			if err == nil {
				acked++
				continue
			}
			switch kindOf(err) {
			case regroup:
				return &refusedError{member: member, generation: generation, cause: err}
			case missing, fatal:
				hold(held, shares, part.Partition, fmt.Errorf("commit offset of partition %d: %w", part.Partition, err))
			case away:
				other = fmt.Errorf("commit offset of partition %d: %w", part.Partition, err)
			}
		}
	}
	switch {
	case other != nil:
		return other
	case len(held.commits) > 0:
		return held
	case acked != want:
		return fmt.Errorf("commit offsets: %d of %d partitions acknowledged", acked, want)
	}
	return nil
}

func hold(held *culprits, shares []share, partition int32, err error) {
	for _, s := range shares {
		if s.tenure.Partition.Number != partition {
			continue
		}
		for _, i := range s.commits {
			held.commits[i] = err
		}
	}
}

var _ commit.Publisher = (*Publisher)(nil)
