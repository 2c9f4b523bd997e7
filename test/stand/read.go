package stand

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// Header is a record's header of the name; empty: it has none.
func Header(r *kgo.Record, name string) string {
	for _, h := range r.Headers {
		if h.Key == name {
			return string(h.Value)
		}
	}
	return ""
}

// ReadTopic reads a topic from its start to the ends that it has now. With read_committed an end is the last stable offset. The last record before an
// end may be a marker, which is shown here.
func ReadTopic(ctx context.Context, brokers []string, topic string, level kgo.IsolationLevel, take func(*kgo.Record)) error {
	client, err := kgo.NewClient(
		kgo.SeedBrokers(brokers...), kgo.ConsumeTopics(topic), kgo.FetchIsolationLevel(level),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.KeepControlRecords(), kgo.AlwaysRetryEOF(), kgo.FetchMaxWait(100*time.Millisecond),
	)
	if err != nil {
		return fmt.Errorf("read %s: %w", topic, err)
	}
	defer client.Close()
	rest, err := unread(ctx, kadm.NewClient(client), topic, level)
	if err != nil {
		return fmt.Errorf("bounds of %s: %w", topic, err)
	}
	for len(rest) > 0 {
		fetches := client.PollFetches(ctx)
		if err := errors.Join(ctx.Err(), fetches.Err()); err != nil {
			return fmt.Errorf("read %s, still to read %v: %w", topic, rest, err)
		}
		fetches.EachRecord(func(r *kgo.Record) {
			end, open := rest[r.Partition]
			if !open || r.Offset >= end {
				return
			}
			if !r.Attrs.IsControl() {
				take(r)
			}
			if r.Offset == end-1 {
				delete(rest, r.Partition)
			}
		})
	}
	return nil
}

// unread gives the ends of the partitions that have anything.
func unread(ctx context.Context, admin *kadm.Client, topic string, level kgo.IsolationLevel) (map[int32]int64, error) {
	list := admin.ListEndOffsets
	if level == kgo.ReadCommitted() {
		list = admin.ListCommittedOffsets
	}
	ends, err := list(ctx, topic)
	if err == nil {
		err = ends.Error()
	}
	if err != nil {
		return nil, err
	}
	starts, err := admin.ListStartOffsets(ctx, topic)
	if err == nil {
		err = starts.Error()
	}
	if err != nil {
		return nil, err
	}
	rest := map[int32]int64{}
	ends.Each(func(o kadm.ListedOffset) {
		if start, ok := starts.Lookup(topic, o.Partition); ok && o.Offset > start.Offset {
			rest[o.Partition] = o.Offset
		}
	})
	return rest, nil
}
