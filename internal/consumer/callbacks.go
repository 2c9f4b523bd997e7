package consumer

import (
	"context"
	"log/slog"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// enter begins a callback: it breaks off the keeper's acquisition, takes its place, and ends tenures of another member id.
func (s *session) enter() (member string, generation int32, leave func()) {
	<-s.built
	s.mu.Lock()
	if s.cancelAttempt != nil {
		s.cancelAttempt()
	}
	s.mu.Unlock()
	s.acquiring <- struct{}{}
	member, generation = s.client.GroupMetadata()
	for _, w := range s.loseOthers(member) {
		<-w.done // it drops everything where it stands
	}
	return member, generation, func() {
		<-s.acquiring
		if f := s.c.deps.Observer.GroupChanged; f != nil {
			f()
		}
		s.poke()
	}
}

// onAssigned acquires what the group has given, all of it together. It also comes with nothing, when a rebalance
// left this member's partitions alone; then it shows whether the member id still is the tenures'.
func (s *session) onAssigned(work context.Context, added []int32) {
	member, generation, leave := s.enter()
	defer leave()

	now := time.Now()
	s.mu.Lock()
	fresh := map[int32]bool{}
	for _, n := range added {
		s.assigned[n] = &slot{partition: s.name(n), since: now}
		fresh[n] = true
	}
	var want []*slot
	for _, sl := range s.assigned {
		sl.member = member
		if sl.worker == nil && !sl.next.After(now) {
			want = append(want, sl)
		}
	}
	stopping := s.stopping
	s.mu.Unlock()
	if len(want) == 0 || stopping {
		return
	}
	if err := s.tryAcquire(work, want, member, generation, fresh); err != nil {
		s.c.log.WarnContext(work, "acquisition failed; it is tried again while the partitions stay assigned",
			slog.Int("partitions", len(want)), slog.Any("err", err))
	}
}

// onRevoked drains what the group takes away.
func (s *session) onRevoked(work context.Context, gone []int32) {
	_, _, leave := s.enter()
	defer leave()
	if err := s.retire(work, s.forget(gone), s.c.cfg.DrainGrace); err != nil {
		s.c.log.WarnContext(work, "the drain was not complete; the next owner recovers", slog.Any("err", err))
	}
}

// onLost drops at once what the group has already given to others. The partitions stay unreleased.
func (s *session) onLost(gone []int32) {
	_, _, leave := s.enter()
	defer leave()
	for _, w := range s.forget(gone) {
		w.tenure.Lose(errLost)
		<-w.done
	}
}

// forget removes partitions from the assignment and returns their workers.
func (s *session) forget(gone []int32) []*worker {
	s.mu.Lock()
	defer s.mu.Unlock()
	var workers []*worker
	for _, n := range gone {
		sl := s.assigned[n]
		if sl == nil {
			continue
		}
		delete(s.assigned, n)
		delete(s.seeks, n)
		if sl.worker != nil {
			workers = append(workers, sl.worker)
		}
	}
	return workers
}

// adjustOffsets replaces the group's committed offsets by the frontiers. A partition that is not acquired stays paused
// at 0, which is never above a frontier: should its worker's seek come to nothing, what comes is too old, never a gap.
func (s *session) adjustOffsets(_ context.Context, offsets map[string]map[int32]kgo.Offset) (map[string]map[int32]kgo.Offset, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for n, committed := range offsets[s.c.cfg.Topic] {
		sl := s.assigned[n]
		if sl == nil || sl.worker == nil {
			offsets[s.c.cfg.Topic][n] = kgo.NewOffset().At(0)
			s.client.PauseFetchPartitions(map[string][]int32{s.c.cfg.Topic: {n}})
			continue
		}
		next, epoch := sl.worker.position()
		if at := committed.EpochOffset().Offset; at >= 0 && at != next {
			s.differs(sl.worker, next, at)
		}
		offsets[s.c.cfg.Topic][n] = kgo.NewOffset().At(next).WithEpoch(epoch)
	}
	return offsets, nil
}

// differs tells that the group's committed offset is not the frontier: Postgres wins. Behind is what every crash leaves
// (the offset is a hint that follows); ahead, somebody has moved it by hand.
func (s *session) differs(w *worker, frontier, committed int64) {
	level := slog.LevelDebug
	if committed > frontier {
		level = slog.LevelWarn
	}
	s.c.log.Log(context.Background(), level, "the group's committed offset is not the frontier; the frontier wins",
		slog.Int("partition", int(w.tenure.Partition.Number)), slog.Int64("frontier", frontier), slog.Int64("offset", committed))
	if f := s.c.deps.Observer.Difference; f != nil {
		f(w.tenure.Partition, frontier, committed)
	}
}
