package consumer

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"milepost/internal/commit"
	"milepost/internal/stream"
)

// poll fetches and hands records to the workers until intake ends. It never waits between a poll and AllowRebalance.
func (s *session) poll(intake context.Context) {
	defer s.client.AllowRebalance()
	var outage outage
	for intake.Err() == nil {
		ctx, cancel := context.WithCancel(intake)
		s.mu.Lock()
		if s.pollWanted {
			s.pollWanted = false
			cancel() // the poll returns at once, having excluded callbacks, and the seeks are done
		} else {
			s.wakePoll = cancel
		}
		s.mu.Unlock()
		fetches := s.client.PollRecords(ctx, s.c.cfg.PollRecords)
		s.inflater.polled()
		s.mu.Lock()
		s.wakePoll = nil
		s.mu.Unlock()
		cancel()

		worst := s.fetchErrors(fetches)
		fetches.EachPartition(func(ftp kgo.FetchTopicPartition) {
			if ftp.Topic == s.c.cfg.Topic && len(ftp.Records) > 0 {
				s.hand(ftp.Partition, ftp.Records)
			}
		})
		s.seek()
		s.client.AllowRebalance()
		if pause := outage.next(s, worst); pause > 0 && !sleep(intake, pause) {
			return
		}
	}
}

// hand gives a partition's records to its worker; without one they are dropped, and its next worker seeks to its frontier (P15).
// It holds s.mu over the offer, so that a worker that is being replaced cannot pause its successor's fetch.
func (s *session) hand(n int32, records []*kgo.Record) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if sl := s.assigned[n]; sl != nil && sl.worker != nil && sl.worker.offer(records) {
		s.seeks[n] = sl.worker
	}
}

// seek moves fetches to where workers expect them. It runs between a poll and AllowRebalance: no callback can run, and
// nothing of the old position can be polled afterwards.
func (s *session) seek() {
	s.mu.Lock()
	if len(s.seeks) == 0 {
		s.mu.Unlock()
		return
	}
	seeks := s.seeks
	s.seeks = map[int32]*worker{}
	s.mu.Unlock()
	to := map[int32]kgo.EpochOffset{}
	for n, w := range seeks {
		offset, epoch := w.position()
		to[n] = kgo.EpochOffset{Offset: offset, Epoch: epoch}
	}
	s.client.SetOffsets(map[string]map[int32]kgo.EpochOffset{s.c.cfg.Topic: to})
	for _, w := range seeks {
		w.sought()
	}
}

// fetchErrors handles what a poll brought besides records: an offset outside the log stops that partition, an unreadable batch is
// skipped; anything else is returned, to be waited out.
func (s *session) fetchErrors(fetches kgo.Fetches) error {
	var worst error
	fetches.EachError(func(topic string, n int32, err error) {
		var loss *kgo.ErrDataLoss
		var bomb *kgo.ErrDecompressTooLarge
		switch {
		case errors.Is(err, context.Canceled), errors.Is(err, kgo.ErrClientClosed), errors.Is(err, errInflated):
		case topic != s.c.cfg.Topic:
			worst = err
		case errors.As(err, &bomb):
			s.skipUnreadable(bomb)
		case errors.As(err, &loss):
			s.outOfRange(n, &RangeError{Partition: s.name(n), Frontier: loss.ConsumedTo, LogEnd: loss.ResetTo})
		case errors.Is(err, kerr.OffsetOutOfRange):
			s.outOfRange(n, nil)
		default:
			worst = err
		}
	})
	return worst
}

// outOfRange stops a partition whose fetch position is not in the log. Without the error at hand the worker itself reads the
// bounds and judges (a fetch under an older tenure may have been meant).
func (s *session) outOfRange(n int32, known *RangeError) {
	s.mu.Lock()
	var w *worker
	if sl := s.assigned[n]; sl != nil {
		w = sl.worker
	}
	s.mu.Unlock()
	if w == nil {
		return
	}
	if known != nil {
		w.refuse() // the client has moved itself; what it fetches there is not what follows
		w.stop(known)
		return
	}
	w.checkBounds()
}

// outage tells of fetch errors once, and of their end, and grows the pause between polls that fail.
type outage struct {
	failures int
	told     string
}

func (o *outage) next(s *session, err error) time.Duration {
	if err == nil {
		if o.failures > 0 {
			s.c.log.Info("fetching again", slog.Int("failures", o.failures))
			*o = outage{}
		}
		return 0
	}
	if f := s.c.deps.Observer.FetchError; f != nil {
		f(err)
	}
	if text := err.Error(); text != o.told {
		s.c.log.Warn("fetching failed; it is tried again", slog.Any("err", err))
		o.told = text
	}
	pause := s.c.backoff(min(o.failures, 4))
	o.failures++
	return pause
}

// record turns a fetched record into the core's.
func record(p stream.Partition, r *kgo.Record) stream.Record {
	out := stream.Record{
		Partition: p, Offset: r.Offset, LeaderEpoch: r.LeaderEpoch, Timestamp: r.Timestamp, Key: r.Key, Value: r.Value,
	}
	if len(r.Headers) > 0 {
		out.Headers = make([]stream.Header, len(r.Headers))
		for i, h := range r.Headers {
			out.Headers[i] = stream.Header{Key: h.Key, Value: h.Value}
		}
	}
	return out
}

// fencedBy is the end of a tenure that another owner or an ended membership caused.
func fencedBy(t *commit.Tenure, cause error) error {
	if commit.ClassOf(cause) == commit.Fenced {
		return cause
	}
	return &commit.FencedError{Partition: t.Partition, Held: t.Epoch, Reason: cause.Error()}
}
