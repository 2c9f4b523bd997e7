package consumer

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"milepost/internal/partition"
	"milepost/internal/stream"
)

// refetchSkip is the gap between wanted offsets beyond which a refetch seeks instead of reading on.
const refetchSkip = 2000

// refetch reads offsets again, ascending. It has its own client, so that neither a paused partition nor the group's buffers
// stand in its way; one that lives for the request: refetches are rare and their offsets far from the group's fetch.
func (w *worker) refetch(ctx context.Context, offsets []int64) partition.Arrived {
	in := partition.Arrived{Refetched: true}
	ctx, cancel := context.WithTimeout(ctx, w.s.c.cfg.RequestTimeout)
	defer cancel()
	r, err := w.newRefetcher(offsets)
	if err != nil {
		in.Err = err
		return in
	}
	defer r.client.Close()
	for len(r.wanted) > 0 && in.Err == nil {
		in.Err = r.read(ctx, &in)
	}
	if in.Err != nil {
		in.Err = fmt.Errorf("fetch %d offsets of %s again: %w", len(r.wanted), w.tenure.Partition, in.Err)
		if errors.Is(in.Err, kerr.OffsetOutOfRange) {
			w.checkBounds()
		}
	}
	return in
}

// refetcher reads one partition by offset.
type refetcher struct {
	client *kgo.Client
	p      stream.Partition
	wanted []int64 // ascending, what is still to come
}

func (w *worker) newRefetcher(offsets []int64) (*refetcher, error) {
	p := w.tenure.Partition
	opts := append([]kgo.Opt{}, w.s.c.cfg.Client...)
	opts = append(opts,
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{p.Topic: {p.Number: kgo.NewOffset().At(offsets[0])}}),
		kgo.ConsumeResetOffset(kgo.NoResetOffset()), kgo.KeepControlRecords(), kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.FetchMaxBytes(w.s.c.cfg.FetchBytes), kgo.FetchMaxPartitionBytes(max(w.s.c.cfg.FetchBytes/4, 1)), kgo.FetchMaxWait(100*time.Millisecond),
	)
	client, err := kgo.NewClient(opts...)
	if err != nil {
		return nil, fmt.Errorf("make a client to fetch %s again: %w", p, err)
	}
	return &refetcher{client: client, p: p, wanted: offsets}, nil
}

// read takes one fetch. What lies below a record that came, and did not come, the log no longer has.
func (r *refetcher) read(ctx context.Context, in *partition.Arrived) error {
	fetches := r.client.PollRecords(ctx, 1000)
	var failed error
	fetches.EachError(func(_ string, _ int32, err error) { failed = err })
	if failed != nil {
		return failed
	}
	var last int64 = -1
	fetches.EachRecord(func(k *kgo.Record) {
		last = k.Offset
		for len(r.wanted) > 0 && r.wanted[0] < k.Offset {
			in.Missing = append(in.Missing, r.wanted[0])
			r.wanted = r.wanted[1:]
		}
		if len(r.wanted) > 0 && r.wanted[0] == k.Offset {
			r.wanted = r.wanted[1:]
			if k.Attrs.IsControl() {
				in.Missing = append(in.Missing, k.Offset)
				return
			}
			in.Records = append(in.Records, record(r.p, k))
		}
	})
	if len(r.wanted) > 0 && last >= 0 && r.wanted[0]-last > refetchSkip {
		r.client.SetOffsets(map[string]map[int32]kgo.EpochOffset{r.p.Topic: {r.p.Number: {Offset: r.wanted[0], Epoch: -1}}})
	}
	return nil
}
