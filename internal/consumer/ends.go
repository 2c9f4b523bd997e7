package consumer

import (
	"context"
	"log/slog"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
)

// endsEvery is how often the ends of the assigned partitions' logs are read. A fetch would tell them too, but a paused one tells nothing.
const endsEvery = 2 * time.Second

// logEnds are where a partition's log ends: for everybody, and for readers that wait for open transactions (P33).
type logEnds struct{ end, stable int64 }

// watchEnds keeps the ends current. When the brokers do not answer, the last known ones stay: a lag that stands still, beside a
// frontier that does, is what there is to see.
func (s *session) watchEnds(intake context.Context) {
	every := time.NewTicker(endsEvery)
	defer every.Stop()
	for {
		s.readEnds(intake)
		select {
		case <-intake.Done():
			return
		case <-every.C:
		}
	}
}

func (s *session) readEnds(intake context.Context) {
	if len(s.running()) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(intake, s.c.cfg.RequestTimeout)
	defer cancel()
	ends, err := s.admin.ListEndOffsets(ctx, s.c.cfg.Topic)
	var stable kadm.ListedOffsets
	if err == nil {
		stable, err = s.admin.ListCommittedOffsets(ctx, s.c.cfg.Topic)
	}
	if err != nil {
		s.c.log.DebugContext(ctx, "the log's ends were not read", slog.Any("err", err))
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for n, sl := range s.assigned {
		end, err := offsetOf(ends, s.c.cfg.Topic, n)
		if err != nil {
			continue
		}
		if last, err := offsetOf(stable, s.c.cfg.Topic, n); err == nil {
			sl.ends = &logEnds{end: end.Offset, stable: last.Offset}
		}
	}
}
