package consumer

import (
	"context"
	"log/slog"
	"time"

	"milepost/internal/commit"
	"milepost/internal/stream"
)

const (
	// retentionPage is how many keys are looked at at once, retentionPace the time between two looks: a sweep is no burst.
	retentionPage = 5000
	retentionPace = 5 * time.Second
	// A sweep begins a tenth of the retention after the one before, within these bounds.
	soonestSweep = time.Minute
	latestSweep  = time.Hour
)

// sweep is a partition's sweep over its keys' states. It is the housekeeper's.
type sweep struct {
	after stream.Key // goes on after that key; empty: it has not begun
	due   time.Time  // not before
}

// letGo looks at the next keys of each partition and puts a tail in place of the states that nobody has touched for the
// retention: such a key has expired, it is not lost (A5). A state that the workload cannot read stays: that one is lost.
func (s *session) letGo(intake context.Context, now time.Time) {
	for _, w := range s.running() {
		if now.Before(w.retention.due) || w.state.Load() != int32(StateRunning) || w.tenure.Err() != nil {
			continue
		}
		ctx, cancel := context.WithTimeout(intake, s.c.cfg.RequestTimeout)
		expired, next, err := s.letGoPage(ctx, w.tenure, w.retention.after)
		cancel()
		if expired > 0 {
			s.c.deps.Observer.expired(expired)
		}
		if err != nil {
			if commit.ClassOf(err) != commit.Fenced && intake.Err() == nil { // a fence is the worker's own to find and to tell
				w.log.WarnContext(intake, "states past their retention stay for now", slog.Any("err", err))
			}
			continue
		}
		if w.retention.after = next; next == "" {
			w.retention.due = now.Add(min(max(s.c.cfg.StateRetention/10, soonestSweep), latestSweep))
		}
	}
}

func (s *session) letGoPage(ctx context.Context, t *commit.Tenure, after stream.Key) (expired int, next stream.Key, err error) {
	quiet, next, err := s.c.deps.Retention.Quiet(ctx, t, after, s.c.cfg.StateRetention, retentionPage)
	if err != nil {
		return 0, "", err
	}
	var tails []commit.Tail
	for _, q := range quiet {
		if tail := s.c.deps.Tail(q.State); tail != nil {
			tails = append(tails, commit.Tail{Key: q.Key, Revision: q.Revision, State: tail})
		}
	}
	if len(tails) == 0 {
		return 0, next, nil
	}
	expired, err = s.c.deps.Retention.Expire(ctx, t, tails)
	return expired, next, err
}
