package consumer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"milepost/internal/commit"
)

const (
	// quickFences is how often in a row a fenced partition is acquired again without waiting (P8).
	quickFences = 3
	// healthyAfter is how long a tenure must have lasted for the count to begin anew.
	healthyAfter = time.Minute
	// stoppedRetry is how long a partition rests that a person must repair: long enough to be calm, short enough that the
	// repair is taken up without a restart.
	stoppedRetry = 30 * time.Second
)

// keep acquires, with backoff, what is assigned and has no tenure: after a failed acquisition, a fence or a stop. Past a bound it
// makes the session leave the group, so that another process can try.
func (s *session) keep(intake, work context.Context) {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		if wait, ok := s.nextTry(time.Now()); ok {
			timer.Reset(wait)
		}
		select {
		case <-intake.Done():
			return
		case <-s.kick:
		case <-timer.C:
		}
		s.tryDue(intake, work)
	}
}

// nextTry says how long until the first slot is due.
func (s *session) nextTry(now time.Time) (time.Duration, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var first time.Time
	for _, sl := range s.assigned {
		if sl.worker == nil && (first.IsZero() || sl.next.Before(first)) {
			first = sl.next
		}
	}
	// A slot that another member id was assigned stays due until the callback comes; do not spin on it.
	return max(first.Sub(now), 10*time.Millisecond), !first.IsZero()
}

// tryDue acquires all slots that are due, together.
func (s *session) tryDue(intake, work context.Context) {
	s.acquiring <- struct{}{}
	defer func() { <-s.acquiring }()
	if intake.Err() != nil {
		return
	}
	member, generation := s.client.GroupMetadata()
	now := time.Now()
	s.mu.Lock()
	var due []*slot
	for _, sl := range s.assigned {
		if sl.worker != nil || sl.next.After(now) {
			continue
		}
		if now.Sub(sl.since) > s.c.cfg.AcquireGiveUp && !stoppedForGood(sl.err) {
			s.fail(fmt.Errorf("%w: partition %d for %s: %w", errLeave, sl.partition.Number, now.Sub(sl.since).Round(time.Second), sl.err))
			s.mu.Unlock()
			return
		}
		// A silent rejoin gives this process a new member id before any callback says which partitions it still has (H1).
		if sl.member == member {
			due = append(due, sl)
		}
	}
	stopping := s.stopping
	s.mu.Unlock()
	if len(due) == 0 || stopping {
		return
	}
	before := due[0].err
	if err := s.tryAcquire(work, due, member, generation, nil); err != nil && (before == nil || before.Error() != err.Error()) {
		s.c.log.WarnContext(intake, "acquisition failed; it is tried again while the partitions stay assigned",
			slog.Int("partitions", len(due)), slog.Any("err", err))
	}
}

// startWorker begins the tenure's work. The caller holds s.acquiring.
func (s *session) startWorker(work context.Context, t *commit.Tenure, start commit.Start, seek bool) {
	w := newWorker(s, t, start)
	w.seeking = seek
	s.mu.Lock()
	sl := s.assigned[t.Partition.Number]
	sl.worker, sl.err, sl.attempts, sl.since = w, nil, 0, time.Now()
	s.client.ResumeFetchPartitions(map[string][]int32{s.c.cfg.Topic: {t.Partition.Number}})
	s.mu.Unlock()
	s.workers.Go(func() {
		w.run(work)
		s.workerEnded(w)
		close(w.done)
	})
	if seek {
		s.askSeek(w)
	}
}

// workerEnded judges why a worker ended and says when its partition is tried again. Without an entry of its own in the assignment
// it was revoked or lost, and that is the callback's business.
func (s *session) workerEnded(w *worker) {
	w.tenure.Lose(w.cause) // whatever ended the worker ends the tenure
	if !errors.Is(w.cause, errReleased) {
		s.c.noteUnsettled(w.tenure)
	}
	if !w.retireOne.Load() {
		s.tellEnd(w, false) // else whoever retires it knows whether it is released
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	sl := s.assigned[w.tenure.Partition.Number]
	if sl == nil || sl.worker != w {
		return
	}
	if s.stopping {
		return // the session's drain looks at the workers themselves
	}
	now := time.Now()
	s.client.PauseFetchPartitions(map[string][]int32{s.c.cfg.Topic: {sl.partition.Number}})
	healthy := now.Sub(sl.since) > healthyAfter
	sl.worker, sl.since, sl.err = nil, now, w.cause
	attrs := []any{slog.Int("partition", int(sl.partition.Number)), slog.Int64("epoch", int64(w.tenure.Epoch)), slog.Any("err", w.cause)}
	switch {
	case errors.Is(w.cause, errSought):
		sl.next, sl.err = now, nil
		s.c.log.Info("drained for a seek; acquiring again", attrs[:len(attrs)-1]...)
	case commit.ClassOf(w.cause) != commit.Fenced:
		sl.next = now.Add(stoppedRetry)
		s.c.log.Error("the partition has stopped; the others go on", attrs...)
	case !healthy && sl.fences >= quickFences:
		sl.next = now.Add(stoppedRetry)
		s.c.log.Error("the partition was fenced again and again although it is assigned to this process; it stops", attrs...)
	default:
		if healthy {
			sl.fences = 0
		}
		sl.fences++
		sl.next = now.Add(s.c.jitter(s.c.cfg.AcquireRetryMin))
		s.c.log.Warn("fenced while assigned; acquiring again", attrs...)
	}
	s.poke()
}

// stoppedForGood says that another process could not do better: leaving the group would only move the trouble.
func stoppedForGood(err error) bool {
	var (
		outside  *RangeError
		too      *UnreadableError
		diverged *commit.DivergedError
	)
	return errors.As(err, &outside) || errors.As(err, &too) || errors.As(err, &diverged)
}

// askSeek makes the poller seek the worker's partition to its expected offset.
func (s *session) askSeek(w *worker) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if sl := s.assigned[w.tenure.Partition.Number]; sl == nil || sl.worker != w {
		return
	}
	s.seeks[w.tenure.Partition.Number] = w
	if s.wakePoll != nil {
		s.wakePoll()
	} else {
		s.pollWanted = true
	}
}

// running gives the workers in partition order.
func (s *session) running() []*worker {
	s.mu.Lock()
	defer s.mu.Unlock()
	var ws []*worker
	for _, sl := range s.assigned {
		if sl.worker != nil {
			ws = append(ws, sl.worker)
		}
	}
	slices.SortFunc(ws, func(a, b *worker) int { return int(a.tenure.Partition.Number) - int(b.tenure.Partition.Number) })
	return ws
}
