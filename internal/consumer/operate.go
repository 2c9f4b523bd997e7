package consumer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"milepost/internal/commit"
	"milepost/internal/partition"
	"milepost/internal/stream"
)

const (
	// operateEvery is how often a session looks for operators' requests.
	operateEvery = 500 * time.Millisecond
	// askAgain is when a request that still waits is given to its partition once more: its answer may have been lost.
	askAgain = 5 * time.Second
	// requestsPage bounds the requests that are read at once.
	requestsPage = 200
	// answerTries is how often an answer is sent; should all be lost, the request is executed again, which changes nothing.
	answerTries = 5
)

// errSought ends a tenure that has drained so that the next one begins at another offset.
var errSought = errors.New("drained for a seek")

// operate carries operators' requests to the partitions that the group has given to this process, and sweeps their quarantine.
func (s *session) operate(intake context.Context) {
	if s.c.deps.Operations == nil {
		return
	}
	look := time.NewTicker(operateEvery)
	defer look.Stop()
	sweep := time.NewTicker(s.c.cfg.FloorInterval)
	defer sweep.Stop()
	asked, told := map[int64]time.Time{}, ""
	for {
		select {
		case <-intake.Done():
			return
		case now := <-look.C:
			err := s.askPartitions(intake, asked, now)
			if err != nil && intake.Err() == nil && err.Error() != told {
				told = err.Error()
				s.c.log.WarnContext(intake, "operators' requests could not be read", slog.Any("err", err))
			}
		case <-sweep.C:
			s.sweep(intake)
		}
	}
}

// askPartitions gives each request that waits to its partition; asked says when it did so last.
func (s *session) askPartitions(intake context.Context, asked map[int64]time.Time, now time.Time) error {
	s.mu.Lock()
	ps := make([]stream.Partition, 0, len(s.assigned))
	for _, sl := range s.assigned {
		ps = append(ps, sl.partition)
	}
	s.mu.Unlock()
	if len(ps) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(intake, s.c.cfg.RequestTimeout)
	defer cancel()
	requests, err := s.c.deps.Operations.Requests(ctx, s.c.cfg.Group, ps, requestsPage)
	if err != nil {
		return err
	}
	waiting := map[int64]bool{}
	for _, r := range requests {
		waiting[r.ID] = true
		if now.Sub(asked[r.ID]) >= askAgain && s.ask(r) {
			asked[r.ID] = now
		}
	}
	for id := range asked {
		if !waiting[id] {
			delete(asked, id)
		}
	}
	return nil
}

// ask gives a request to its partition; false: it has no worker that could take it now.
func (s *session) ask(r commit.Request) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	sl := s.assigned[r.Partition.Number]
	if sl == nil {
		return false
	}
	w := sl.worker
	switch {
	case w == nil && r.Kind == commit.RequestSeek:
		// A partition that retention has overtaken rests; the seek is what mends it, and the next tenure executes it.
		sl.next = time.Now()
		s.poke()
		return true
	case w == nil || w.state.Load() != int32(StateRunning):
		return false
	case r.Kind == commit.RequestSeek:
		// Executed by the next tenure, between recovery and the first record: nothing is in hand then.
		w.forSeek.Store(true)
		w.requestDrain()
	default:
		w.mail.post(partition.Operate{Request: r})
	}
	s.c.log.Info("an operator's request", slog.Int64("request", r.ID), slog.String("kind", string(r.Kind)),
		slog.Int("partition", int(r.Partition.Number)), slog.String("key", string(r.Key)))
	return true
}

func (s *session) sweep(intake context.Context) {
	for _, w := range s.running() {
		if w.state.Load() != int32(StateRunning) {
			continue
		}
		ctx, cancel := context.WithTimeout(intake, s.c.cfg.RequestTimeout)
		err := s.c.deps.Operations.Sweep(ctx, w.tenure)
		cancel()
		if err != nil && commit.ClassOf(err) != commit.Canceled {
			s.c.log.WarnContext(intake, "the quarantine was not swept", slog.Int("partition", int(w.tenure.Partition.Number)), slog.Any("err", err))
		}
	}
}

// dataLoss is the reason of the resets that follow lost observations, of every workload's closed list.
const dataLoss = "data_loss"

// overtaken looks, where that is the policy, whether retention has overtaken the frontier; then it goes on at the start of the log, by
// one statement that also makes every key that has history begin anew. It says which keys begin anew.
func (w *worker) overtaken(work context.Context, report *commit.RecoveryReport) (commit.Anew, error) {
	c := w.s.c
	if c.cfg.OnDataLoss != DataLossReset || c.deps.Operations == nil {
		return w.start.Anew, nil
	}
	ctx, cancel := context.WithTimeout(work, c.cfg.RequestTimeout)
	defer cancel()
	frontier := report.Frontier.Next.Offset
	from, _, err := w.s.bounds(ctx, w.tenure.Partition)
	if err != nil || from <= frontier {
		return w.start.Anew, err
	}
	if n := len(report.Failed); n > 0 {
		return w.start.Anew, fmt.Errorf("partition %s: %d keys have prepared commits that could not be published: "+
			"behind a frontier that moves they would be taken as published", w.tenure.Partition, n)
	}
	to := stream.Revision{Generation: w.tenure.TopicGeneration, Offset: from}
	if _, err := c.deps.Operations.Lose(ctx, w.tenure, to, dataLoss); err != nil {
		return w.start.Anew, err
	}
	w.log.ErrorContext(work, "observations were lost: retention has overtaken the frontier; every key that has history begins anew",
		slog.Int64("frontier", frontier), slog.Int64("offset", from), slog.Int64("lost", from-frontier))
	if f := c.deps.Observer.DataLoss; f != nil {
		f(w.tenure.Partition, frontier, from)
	}
	report.Frontier = stream.Frontier{Next: to, LeaderEpoch: -1}
	w.moveTo(from)
	return commit.Anew{Before: to, Reason: dataLoss}, nil
}

// seekAsked executes the seeks that operators ask of the partition: after recovery, before its first record. It gives the
// frontier to start at.
func (w *worker) seekAsked(work context.Context, report *commit.RecoveryReport) error {
	ops := w.s.c.deps.Operations
	if ops == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(work, w.s.c.cfg.RequestTimeout)
	defer cancel()
	requests, err := ops.Requests(ctx, w.tenure.Group, []stream.Partition{w.tenure.Partition}, requestsPage)
	if err != nil {
		return err
	}
	for _, r := range requests {
		if r.Kind != commit.RequestSeek {
			continue
		}
		refused, err := w.refuseSeek(ctx, r, report)
		if err != nil {
			return err
		}
		if refused != "" {
			if err := ops.Answer(ctx, w.tenure, commit.Answer{Request: r.ID, Failed: true, Outcome: refused}); err != nil {
				return err
			}
			continue
		}
		from := report.Frontier.Next.Offset
		to := stream.Revision{Generation: w.tenure.TopicGeneration, Offset: r.Offset}
		moved, err := ops.Seek(ctx, w.tenure, r.ID, to, fmt.Sprintf("the frontier moved from %d to %d: %d offsets are skipped", from, r.Offset, r.Offset-from))
		if err != nil {
			return err
		}
		if moved {
			w.log.WarnContext(work, "the frontier was moved by an operator", slog.Int64("from", from), slog.Int64("offset", r.Offset))
			report.Frontier = stream.Frontier{Next: to, LeaderEpoch: -1}
			w.moveTo(r.Offset)
		}
	}
	return nil
}

// refuseSeek gives the reason for which a seek is not executed, empty when it is.
func (w *worker) refuseSeek(ctx context.Context, r commit.Request, report *commit.RecoveryReport) (string, error) {
	frontier := report.Frontier.Next.Offset
	if r.Offset <= frontier {
		return fmt.Sprintf("the frontier is at %d and goes forward only: what is below it is done, and its rows cover it; "+
			"to replay, open a new topic generation: orchestrator partition reset", frontier), nil
	}
	if n := len(report.Failed); n > 0 {
		return fmt.Sprintf("%d keys have prepared commits that could not be published: they would be taken as published", n), nil
	}
	start, end, err := w.s.bounds(ctx, w.tenure.Partition)
	switch {
	case err != nil:
		return "", err
	case r.Offset < start || r.Offset > end:
		return fmt.Sprintf("the log reaches from %d to %d", start, end), nil
	}
	return "", nil
}

// moveTo makes the fetch go on at another offset than the tenure began with.
func (w *worker) moveTo(offset int64) {
	w.tenure.SavedFrontier.Store(offset)
	w.mu.Lock()
	w.next, w.epoch, w.proven, w.seeking = offset, -1, false, true
	w.mu.Unlock()
	w.s.askSeek(w)
}

// readAsides, discard and answer run the effects of operators' requests.
func (d *driver) readAsides(work context.Context, e partition.ReadAsides) {
	ctx, cancel := context.WithTimeout(work, d.s.c.cfg.RequestTimeout)
	defer cancel()
	rows, err := d.s.c.deps.Operations.Asides(ctx, d.tenure, e.Key, e.After, e.Limit)
	d.mail.post(partition.AsidesRead{Key: e.Key, Rows: rows, Err: err})
}

func (d *driver) discard(work context.Context, e partition.Discard) {
	ctx, cancel := context.WithTimeout(work, d.s.c.cfg.RequestTimeout)
	defer cancel()
	done, err := d.s.c.deps.Operations.Discard(ctx, d.tenure, e.Key, e.Floor)
	d.mail.post(partition.DiscardDone{Key: e.Key, Discarded: done, Err: err})
}

func (d *driver) answer(work context.Context, a commit.Answer) {
	d.log.InfoContext(work, "an operator's request ends", slog.Int64("request", a.Request), slog.Bool("failed", a.Failed), slog.String("outcome", a.Outcome))
	for attempt := range answerTries {
		ctx, cancel := context.WithTimeout(work, d.s.c.cfg.RequestTimeout)
		err := d.s.c.deps.Operations.Answer(ctx, d.tenure, a)
		cancel()
		if err == nil || commit.ClassOf(err) == commit.Fenced || !sleep(work, d.s.c.backoff(attempt)) {
			return
		}
	}
}
