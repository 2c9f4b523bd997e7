package consumer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"milepost/internal/commit"
)

// proofEvery is how often a drain asks whether the group still accepts this member: a refused one drains in vain.
const proofEvery = time.Second

// retire drains workers within grace, then releases those that drained. It returns an error for each whose ownership was
// lost meanwhile, and one that wraps ErrUnreleased for each that could not be released. Two callers may retire the same worker: the second only waits for the first.
func (s *session) retire(work context.Context, workers []*worker, grace time.Duration) error {
	ctx, cancel := context.WithTimeout(work, grace)
	defer cancel()
	var mine []*worker
	for _, w := range workers {
		if w.retireOne.CompareAndSwap(false, true) {
			mine = append(mine, w)
			w.requestDrain()
		}
	}
	s.awaitDrains(ctx, mine)

	var drained []*worker
	for _, w := range mine {
		if w.drained {
			drained = append(drained, w)
		}
	}
	released := s.release(work, drained)
	var failed error
	for _, w := range mine {
		switch {
		case commit.ClassOf(w.cause) == commit.Fenced:
			failed = errors.Join(failed, fmt.Errorf("ownership lost while draining: %w", w.cause))
		case !released[w] && !errors.Is(w.cause, errRevoked):
			failed = errors.Join(failed, fmt.Errorf("partition %s: %w", w.tenure.Partition, ErrUnreleased))
		}
		s.tellEnd(w, released[w])
		close(w.retired)
	}
	for _, w := range workers {
		select {
		case <-w.retired:
		case <-ctx.Done():
		}
	}
	return failed
}

// awaitDrains waits until the workers have ended. At the bound, or when the group refuses the generation (nothing that
// they could still publish would be accepted), the rest is dropped.
func (s *session) awaitDrains(ctx context.Context, workers []*worker) {
	proof := time.NewTicker(proofEvery)
	defer proof.Stop()
	for _, w := range workers {
		for open := true; open; {
			select {
			case <-w.done:
				open = false
			case <-proof.C:
				if err := s.refusedNow(ctx); err != nil {
					dropAll(workers, err)
				}
			case <-ctx.Done():
				dropAll(workers, errBound)
				<-w.done
				open = false
			}
		}
	}
}

func dropAll(workers []*worker, cause error) {
	for _, w := range workers {
		if errors.Is(cause, errBound) {
			w.tenure.Lose(cause)
		} else {
			w.tenure.Lose(fencedBy(w.tenure, cause))
		}
	}
}

// refusedNow is an error when the group refuses the generation that the client still holds.
func (s *session) refusedNow(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, proofEvery)
	defer cancel()
	member, generation := s.client.GroupMetadata()
	err := s.prove(ctx, member, generation)
	var refused *MemberError
	if !errors.As(err, &refused) {
		return nil // accepted, or no answer, which proves nothing
	}
	if m, g := s.client.GroupMetadata(); m != member || g != generation {
		return nil // a rebalance passed in between; the next proof asks with what it gave
	}
	return refused
}

// release gives up drained partitions: nothing of them is in a transaction that is open or unknown, nothing can be composed any
// more, and the group's offset says where the next owner goes on.
func (s *session) release(work context.Context, workers []*worker) map[*worker]bool {
	released := map[*worker]bool{}
	if len(workers) == 0 {
		return released
	}
	ctx, cancel := context.WithTimeout(work, s.c.cfg.ReleaseTimeout)
	defer cancel()
	tenures := make([]*commit.Tenure, len(workers))
	for i, w := range workers {
		tenures[i] = w.tenure // ended with its worker: nothing of it can be composed any more
	}
	if err := s.c.deps.Pipeline.Settle(ctx, tenures); err != nil {
		s.c.log.WarnContext(ctx, "drained partitions stay unreleased: their last transactions are not settled", slog.Any("err", err))
		for _, t := range tenures {
			s.c.noteUnsettled(t)
		}
		return released
	}
	// A hint: it may take half of the time, so that a group that joins for long does not cost the release.
	hintCtx, hintDone := context.WithTimeout(ctx, s.c.cfg.ReleaseTimeout/2)
	defer hintDone()
	if err := s.commitHints(hintCtx, workers); err != nil {
		s.c.log.DebugContext(ctx, "the group's offsets were not committed", slog.Any("err", err))
	}
	for _, w := range workers {
		if err := s.c.deps.Owners.Release(ctx, w.tenure); err != nil {
			s.c.log.WarnContext(ctx, "a drained partition stays unreleased", slog.Int("partition", int(w.tenure.Partition.Number)), slog.Any("err", err))
			continue
		}
		released[w] = true
	}
	return released
}

// commitHints commits the durable frontiers as the group's offsets, outside any transaction: for tools that show lag.
// It waits, within ctx, for a join or sync under way (P39).
func (s *session) commitHints(ctx context.Context, workers []*worker) error {
	offsets := map[int32]kgo.EpochOffset{}
	for _, w := range workers {
		offsets[w.tenure.Partition.Number] = kgo.EpochOffset{Offset: w.tenure.SavedFrontier.Load(), Epoch: -1}
	}
	var failed error
	s.client.CommitOffsetsSync(ctx, map[string]map[int32]kgo.EpochOffset{s.c.cfg.Topic: offsets},
		func(_ *kgo.Client, _ *kmsg.OffsetCommitRequest, resp *kmsg.OffsetCommitResponse, err error) {
			if failed = err; err != nil {
				return // there is no response
			}
			for _, t := range resp.Topics {
				for _, p := range t.Partitions {
					failed = errors.Join(failed, kerr.ErrorForCode(p.ErrorCode))
				}
			}
		})
	return failed
}

// tellEnd logs and reports, once, how a tenure ended.
func (s *session) tellEnd(w *worker, released bool) {
	if !w.told.CompareAndSwap(false, true) {
		return
	}
	cause := w.cause
	if w.drained {
		cause = nil
	}
	attrs := []any{
		slog.Int("partition", int(w.tenure.Partition.Number)), slog.Int64("epoch", int64(w.tenure.Epoch)), slog.Bool("released", released),
		slog.String("frontier", w.report.Frontier.String()), slog.Int("prepared", w.report.Prepared), slog.Int("unfinished", w.report.Unfinished),
		statistics(w.report.Stats),
	}
	switch {
	case cause == nil:
		s.c.log.Info("drained", attrs...)
	case commit.ClassOf(cause) == commit.Fenced:
		s.c.log.Error("the tenure ended", append(attrs, slog.Any("err", cause))...)
	default:
		s.c.log.Warn("the tenure ended", append(attrs, slog.Any("err", cause))...)
	}
	if f := s.c.deps.Observer.Ended; f != nil {
		f(w.tenure.Partition, w.tenure.Epoch, released, cause, w.report)
	}
}
