package consumer

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"milepost/internal/commit"
)

// housekeep does what can wait: the group's offsets of quiet partitions, ledger records below the floor, states past their retention, and
// the watchdog.
func (s *session) housekeep(intake context.Context) {
	hints := time.NewTicker(s.c.cfg.HintInterval)
	defer hints.Stop()
	floors := time.NewTicker(s.c.cfg.FloorInterval)
	defer floors.Stop()
	watch := time.NewTicker(max(s.c.cfg.StuckAfter/4, time.Second))
	defer watch.Stop()
	retention := make(<-chan time.Time) // nobody sends: states stay for ever
	if s.c.cfg.StateRetention > 0 {
		pace := time.NewTicker(retentionPace)
		defer pace.Stop()
		retention = pace.C
	}
	var idle idleness
	dog := watchdog{remote: s.c.deps.Remote != nil, last: map[*worker]sighting{}}
	for {
		select {
		case <-intake.Done():
			return
		case <-hints.C:
			s.hint(intake)
		case <-floors.C:
			s.cutLedgers(intake)
		case now := <-retention:
			s.letGo(intake, now)
		case now := <-watch.C:
			idle.look(intake, s, now)
			if err := dog.look(s.running(), now, s.c.cfg.StuckAfter); err != nil {
				s.c.log.ErrorContext(intake, "leaving the group", slog.Any("err", err))
				s.fail(err)
			}
		}
	}
}

// hint commits the group's offset of partitions whose frontier has not moved since the last look: the others' offsets ride in
// their transactions. Where there are none, every offset that moved is committed here.
func (s *session) hint(intake context.Context) {
	var quiet []*worker
	for _, w := range s.running() {
		saved := w.tenure.SavedFrontier.Load()
		if (saved == w.seen || s.c.cfg.PublishMode == commit.Idempotent) && saved != w.hinted {
			quiet = append(quiet, w)
		}
		w.seen = saved
	}
	if len(quiet) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(intake, s.c.cfg.HintInterval)
	defer cancel()
	if err := s.commitHints(ctx, quiet); err != nil {
		// P7: a stale generation here means only that a rebalance is under way.
		s.c.log.DebugContext(ctx, "the group's offsets were not committed", slog.Any("err", err))
		return
	}
	for _, w := range quiet {
		w.hinted = w.seen
	}
}

// cutLedgers deletes ledger records below each floor, one interval after the floor was saved: whoever began to read from the
// older floor has finished by then.
func (s *session) cutLedgers(intake context.Context) {
	for _, w := range s.running() {
		floor := w.lastFloor
		w.lastFloor = w.floor.Load()
		if floor <= w.cutBelow || w.state.Load() != int32(StateRunning) || w.tenure.Err() != nil {
			continue
		}
		ctx, cancel := context.WithTimeout(intake, s.c.cfg.RequestTimeout)
		err := s.c.deps.Ledger.DeleteBelow(ctx, w.tenure.Partition, floor)
		cancel()
		if err != nil {
			s.c.log.WarnContext(intake, "ledger records below the floor were not deleted", slog.Int("partition", int(w.tenure.Partition.Number)), slog.Any("err", err))
			continue
		}
		w.cutBelow = floor
	}
}

// watchdog finds workers that have work and get no answer of any kind (P18): franz-go heartbeats in the background and has no
// max.poll.interval of its own. An outage is no such case: its errors are answers.
type watchdog struct {
	remote bool // jobs are solved elsewhere
	last   map[*worker]sighting
}

type sighting struct {
	progress, turn int64
	since          time.Time
}

func (d *watchdog) look(workers []*worker, now time.Time, after time.Duration) error {
	next := map[*worker]sighting{}
	for _, w := range workers {
		view := w.view.Load()
		if w.state.Load() != int32(StateRunning) || view == nil {
			continue
		}
		s := sighting{progress: w.progress.Load(), turn: w.turn.Load(), since: now}
		before, known := d.last[w]
		moved := !known || s.progress != before.progress
		if view.OldestPending.IsZero() {
			moved = true
		}
		if d.remote && view.Active > 0 && view.Committing == 0 {
			moved = true // it waits for matchers, and asks them again: no other process could do more
		}
		if s.turn == before.turn && known {
			moved = false // the loop itself stands still: ticks would have turned it
		}
		if !moved {
			s.since = before.since
		}
		next[w] = s
		if stood := now.Sub(s.since); stood >= after {
			return fmt.Errorf("%w: partition %d for %s", ErrStuck, w.tenure.Partition.Number, stood.Round(time.Second))
		}
	}
	d.last = next
	return nil
}
