package consumer

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"milepost/internal/partition"
)

// refetchSkip is the gap between wanted offsets beyond which a refetch seeks instead of reading on.
const refetchSkip = 2000

// refetcher reads one partition by offset. It has a client of its own, made at the first request, so that neither a paused
// partition nor the group's buffers stand in its way. One request runs at a time.
type refetcher struct {
	w        *worker
	turn     chan struct{} // capacity 1: who holds it uses the fields below
	client   *kgo.Client
	inflater *inflater // the client's
	wanted   []int64   // ascending, what is still to come
}

func newRefetcher(w *worker) *refetcher { return &refetcher{w: w, turn: make(chan struct{}, 1)} }

// close ends the client; the next fetch makes another. No other fetch may be running.
func (r *refetcher) close() {
	if r.client != nil {
		r.client.Close()
		r.client = nil
	}
}

// fetch reads offsets again, ascending. What the log no longer has is reported as missing.
func (r *refetcher) fetch(ctx context.Context, offsets []int64) partition.Arrived {
	in := partition.Arrived{Refetched: true}
	ctx, cancel := context.WithTimeout(ctx, r.w.s.c.cfg.RequestTimeout)
	defer cancel()
	select {
	case r.turn <- struct{}{}:
		defer func() { <-r.turn }()
	case <-ctx.Done():
		in.Err = context.Cause(ctx)
		return in
	}
	r.wanted = offsets
	in.Err = r.begin()
	for len(r.wanted) > 0 && in.Err == nil {
		in.Err = r.read(ctx, &in)
	}
	if in.Err != nil {
		// Whatever the client was doing, its next records could be of this request's position: a gap in them would
		// look like records that the log has lost.
		r.close()
		in.Err = fmt.Errorf("fetch %d offsets of %s again: %w", len(r.wanted), r.w.tenure.Partition, in.Err)
		if errors.Is(in.Err, kerr.OffsetOutOfRange) {
			r.w.checkBounds()
		}
		return in
	}
	r.client.PauseFetchPartitions(r.w.topicPartition())
	return in
}

// begin moves the client to the first wanted offset.
func (r *refetcher) begin() error {
	if r.client != nil {
		r.seek()
		r.client.ResumeFetchPartitions(r.w.topicPartition())
		return nil
	}
	p, cfg := r.w.tenure.Partition, &r.w.s.c.cfg
	opts := append([]kgo.Opt{}, cfg.Client...)
	opts = append(opts,
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{p.Topic: {p.Number: kgo.NewOffset().At(r.wanted[0])}}),
		kgo.ConsumeResetOffset(kgo.NoResetOffset()), kgo.KeepControlRecords(), kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.FetchMaxBytes(cfg.FetchBytes), kgo.FetchMaxPartitionBytes(max(cfg.FetchBytes/4, 1)), kgo.FetchMaxWait(100*time.Millisecond),
	)
	inflater, err := newInflater(cfg.InflatedBytes)
	if err != nil {
		return err
	}
	client, err := kgo.NewClient(append(opts, kgo.WithDecompressor(inflater))...)
	if err != nil {
		return fmt.Errorf("make a client: %w", err)
	}
	r.client, r.inflater = client, inflater
	return nil
}

func (r *refetcher) seek() {
	p := r.w.tenure.Partition
	r.client.SetOffsets(map[string]map[int32]kgo.EpochOffset{p.Topic: {p.Number: {Offset: r.wanted[0], Epoch: -1}}})
}

// read takes one fetch. What lies below a record that came, and did not come, the log no longer has.
func (r *refetcher) read(ctx context.Context, in *partition.Arrived) error {
	fetches := r.client.PollRecords(ctx, 1000)
	r.inflater.polled()
	var failed error
	var bomb *kgo.ErrDecompressTooLarge
	fetches.EachError(func(_ string, _ int32, err error) {
		if !errors.As(err, &bomb) && !errors.Is(err, errInflated) {
			failed = err
		}
	})
	if failed != nil {
		return failed
	}
	last := int64(-1)
	fetches.EachRecord(func(k *kgo.Record) {
		last = k.Offset
		for len(r.wanted) > 0 && r.wanted[0] < k.Offset {
			in.Missing = append(in.Missing, r.wanted[0])
			r.wanted = r.wanted[1:]
		}
		if len(r.wanted) == 0 || r.wanted[0] != k.Offset {
			return
		}
		r.wanted = r.wanted[1:]
		if k.Attrs.IsControl() {
			in.Missing = append(in.Missing, k.Offset)
			return
		}
		in.Records = append(in.Records, record(r.w.tenure.Partition, k))
	})
	switch {
	case bomb != nil:
		r.unreadable(bomb, in)
	case len(r.wanted) > 0 && last >= 0 && r.wanted[0]-last > refetchSkip:
		r.seek()
	}
	return nil
}

// unreadable gives the wanted records of an unreadable batch for what they are, and moves on past it.
func (r *refetcher) unreadable(batch *kgo.ErrDecompressTooLarge, in *partition.Arrived) {
	for len(r.wanted) > 0 && r.wanted[0] < batch.NextOffset {
		if r.wanted[0] < batch.Offset {
			in.Missing = append(in.Missing, r.wanted[0])
		} else {
			in.Records = append(in.Records, unreadable(batch, r.wanted[0], r.wanted[0]+1, r.w.s.c.cfg.InflatedBytes)...)
		}
		r.wanted = r.wanted[1:]
	}
	if len(r.wanted) > 0 {
		r.seek()
	}
}
