package consumer

import (
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"

	"github.com/twmb/franz-go/pkg/kgo"

	"milepost/internal/stream"
)

// A compressed batch of records can come to ten thousand times its size, and a fetch response holds thousands of batches: the bound on
// what is fetched is none on what it becomes.

// maxUnreadable is how many records of one unreadable batch become dead letters; a batch that claims more stops its partition.
const maxUnreadable = 100_000

// errInflated ends a fetch early: what it would come to has no room before the poller has taken what is there. The client gives what it has
// decompressed and fetches the rest again.
var errInflated = errors.New("the batches of one poll come to more than they may")

// inflater decompresses the batches of one client: each within the bound, and together no more between two polls than the bound
// and one batch.
type inflater struct {
	inner kgo.Decompressor
	bound int64
	held  atomic.Int64 // since the last poll
}

func newInflater(bound int) (*inflater, error) {
	// The client makes a decompressor with this bound and gives it to nobody but through its options.
	client, err := kgo.NewClient(kgo.MaxDecompressBatchBytes(bound))
	if err != nil {
		return nil, fmt.Errorf("make a decompressor: %w", err)
	}
	defer client.Close()
	inner, ok := client.OptValue(kgo.WithDecompressor).(kgo.Decompressor)
	if !ok {
		return nil, errors.New("make a decompressor: the Kafka client has none")
	}
	return &inflater{inner: inner, bound: int64(bound)}, nil
}

// Decompress implements kgo.Decompressor.
func (i *inflater) Decompress(src []byte, codec kgo.CompressionCodecType) ([]byte, error) {
	if codec == kgo.CodecNone {
		return src, nil // bounded by what is fetched
	}
	if i.held.Load() >= i.bound {
		return nil, errInflated
	}
	out, err := i.inner.Decompress(src, codec)
	i.held.Add(int64(len(out)))
	return out, err
}

// polled says that a poll has taken what was decompressed.
func (i *inflater) polled() { i.held.Store(0) }

// UnreadableError says that a batch of records comes to more than may be held, and claims more records than can be dead letters.
type UnreadableError struct {
	Partition    stream.Partition
	Offset, Next int64
	Bound        int
}

func (e *UnreadableError) Error() string {
	return fmt.Sprintf("partition %s: the compressed batch of records at offsets %d to %d comes to more than %d bytes, which is too much to be held, "+
		"and has too many records to be dead letters; find out who wrote it, then skip it with: orchestrator partition seek --partition %d --offset %d",
		e.Partition, e.Offset, e.Next-1, e.Bound, e.Partition.Number, e.Next)
}

// unreadable gives the records of a batch that could not be decompressed, from one offset up to another: all that is known of
// them is that the log has them.
func unreadable(batch *kgo.ErrDecompressTooLarge, from, to int64, bound int) []stream.Record {
	why := fmt.Sprintf("its compressed batch, offsets %d to %d, comes to more than %d bytes", batch.Offset, batch.NextOffset-1, bound)
	records := make([]stream.Record, 0, max(to-from, 0))
	for offset := from; offset < to; offset++ {
		records = append(records, stream.Record{
			Partition: stream.Partition{Topic: batch.Topic, Number: batch.Partition}, Offset: offset, LeaderEpoch: batch.Epoch, Unreadable: why,
		})
	}
	return records
}

// skipUnreadable hands the records of an unreadable batch to the partition's worker as what they are, and seeks past them.
func (s *session) skipUnreadable(batch *kgo.ErrDecompressTooLarge) {
	s.mu.Lock()
	defer s.mu.Unlock()
	sl := s.assigned[batch.Partition]
	if sl == nil || sl.worker == nil {
		return // its next worker seeks to its frontier, and meets the batch again
	}
	w, bound := sl.worker, s.c.cfg.InflatedBytes
	s.c.log.Warn("a batch of records is unreadable", slog.Int("partition", int(batch.Partition)),
		slog.Int64("offset", batch.Offset), slog.Int64("records", batch.NextOffset-batch.Offset), slog.Int("most_bytes", bound))
	if batch.NextOffset-batch.Offset > maxUnreadable {
		w.stop(&UnreadableError{Partition: w.tenure.Partition, Offset: batch.Offset, Next: batch.NextOffset, Bound: bound})
		return
	}
	w.offerUnreadable(batch, bound)
	s.seeks[batch.Partition] = w
}

// offerUnreadable is offer for a batch without its records: the batch holds the position that is expected next, or begins above it, after a gap
// that the broker's answer has shown.
func (w *worker) offerUnreadable(batch *kgo.ErrDecompressTooLarge, bound int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.seeking || w.refused || batch.NextOffset <= w.next {
		return // what was fetched belongs to an older position
	}
	if batch.Offset > w.next && !w.proven {
		w.seeking = true
		return
	}
	records := unreadable(batch, max(batch.Offset, w.next), batch.NextOffset, bound)
	w.next, w.epoch = batch.NextOffset, batch.Epoch
	w.accept(records)
}
