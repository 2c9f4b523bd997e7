package publish

import (
	"context"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// reader fetches one topic's partitions by position, read_committed, with raw requests on a shared client. A consumer
// would hide where it stands behind aborted records and markers, and cost a client per partition.
type reader struct {
	client *kgo.Client
	topic  string
}

const (
	fetchWaitMillis = 50
	fetchBytes      = 8 << 20
)

// fetch reads from at. next is the first position that was not looked at: it passes aborted records and markers,
// and stays at the last stable offset. An error of Kafka's is wrapped; those that a new look at the metadata heals are
// retried by the caller.
func (r *reader) fetch(ctx context.Context, partition int32, at int64) (fp kgo.FetchPartition, next int64, err error) {
	leader, id, err := r.leader(ctx, partition)
	if err != nil {
		return fp, at, err
	}
	req := kmsg.NewPtrFetchRequest()
	req.MaxWaitMillis, req.MinBytes, req.MaxBytes, req.IsolationLevel = fetchWaitMillis, 1, fetchBytes, 1
	req.SessionEpoch = -1
	t := kmsg.NewFetchRequestTopic()
	t.Topic, t.TopicID = r.topic, id
	part := kmsg.NewFetchRequestTopicPartition()
	part.Partition, part.FetchOffset, part.PartitionMaxBytes = partition, at, fetchBytes
	t.Partitions = append(t.Partitions, part)
	req.Topics = append(req.Topics, t)
	resp, err := req.RequestWith(ctx, r.client.Broker(int(leader)))
	if err == nil {
		err = kerr.ErrorForCode(resp.ErrorCode)
	}
	if err != nil {
		return fp, at, fmt.Errorf("fetch %s/%d: %w", r.topic, partition, err)
	}
	if len(resp.Topics) != 1 || len(resp.Topics[0].Partitions) != 1 {
		return fp, at, fmt.Errorf("fetch %s/%d: the answer names no such partition", r.topic, partition)
	}
	opts := kgo.ProcessFetchPartitionOpts{
		Offset: at, IsolationLevel: kgo.ReadCommitted(), Topic: r.topic, Partition: partition,
	}
	fp, next = kgo.ProcessFetchPartition(opts, &resp.Topics[0].Partitions[0], kgo.DefaultDecompressor(), nil)
	if fp.Err != nil {
		return fp, at, fmt.Errorf("fetch %s/%d: %w", r.topic, partition, fp.Err)
	}
	return fp, next, nil
}

func (r *reader) leader(ctx context.Context, partition int32) (int32, [16]byte, error) {
	req := kmsg.NewPtrMetadataRequest()
	t := kmsg.NewMetadataRequestTopic()
	t.Topic = new(r.topic)
	req.Topics = append(req.Topics, t)
	resp, err := r.client.RequestCachedMetadata(ctx, req, time.Second)
	if err != nil {
		return 0, [16]byte{}, fmt.Errorf("find leader of %s/%d: %w", r.topic, partition, err)
	}
	for _, t := range resp.Topics {
		if err := kerr.ErrorForCode(t.ErrorCode); err != nil {
			return 0, [16]byte{}, fmt.Errorf("find leader of %s/%d: %w", r.topic, partition, err)
		}
		for _, p := range t.Partitions {
			if p.Partition == partition {
				if err := kerr.ErrorForCode(p.ErrorCode); err != nil {
					return 0, [16]byte{}, fmt.Errorf("find leader of %s/%d: %w", r.topic, partition, err)
				}
				return p.Leader, t.TopicID, nil
			}
		}
	}
	return 0, [16]byte{}, fmt.Errorf("find leader of %s/%d: %w", r.topic, partition, kerr.UnknownTopicOrPartition)
}

// The timestamps that ask for a partition's bounds.
const (
	atEnd   = -1
	atStart = -2
)

// bound gives the partition's start, or its end: the high watermark, open transactions included.
func (r *reader) bound(ctx context.Context, partition int32, which int64) (int64, error) {
	req := kmsg.NewPtrListOffsetsRequest()
	t := kmsg.NewListOffsetsRequestTopic()
	t.Topic = r.topic
	part := kmsg.NewListOffsetsRequestTopicPartition()
	part.Partition, part.Timestamp = partition, which
	t.Partitions = append(t.Partitions, part)
	req.Topics = append(req.Topics, t)
	resp, err := req.RequestWith(ctx, r.client)
	if err != nil {
		return 0, fmt.Errorf("list offsets of %s/%d: %w", r.topic, partition, err)
	}
	for _, t := range resp.Topics {
		for _, p := range t.Partitions {
			if err := kerr.ErrorForCode(p.ErrorCode); err != nil {
				return 0, fmt.Errorf("list offsets of %s/%d: %w", r.topic, partition, err)
			}
			if p.Partition == partition {
				return p.Offset, nil
			}
		}
	}
	return 0, fmt.Errorf("list offsets of %s/%d: the answer names no such partition", r.topic, partition)
}
