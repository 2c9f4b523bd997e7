package consumer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
)

// idleness finds a group in which nobody has a partition (P18): this member has had none for long, and by the coordinator's word nobody
// else has one. A member that waits for others to give up theirs, or has nothing to do, is no such case. Joining anew makes the coordinator
// assign anew.
type idleness struct{ since time.Time }

// look leaves the group when it is idle. A coordinator that does not answer is an outage, which the members wait out.
func (d *idleness) look(ctx context.Context, s *session, now time.Time) {
	if s.holds() > 0 {
		d.since = time.Time{}
		return
	}
	if d.since.IsZero() {
		d.since = now
		return
	}
	if now.Sub(d.since) < s.c.cfg.StuckAfter {
		return
	}
	d.since = now // once each such time
	ctx, cancel := context.WithTimeout(ctx, s.c.cfg.RequestTimeout)
	defer cancel()
	others, err := s.heldByOthers(ctx)
	if err != nil {
		s.c.log.WarnContext(ctx, "the group's assignment could not be read", slog.Any("err", err))
		return
	}
	if others == 0 {
		s.fail(fmt.Errorf("%w: nobody in the group has had one for %s", errLeave, s.c.cfg.StuckAfter))
	}
}

// holds counts the partitions that the group has given to this session.
func (s *session) holds() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.assigned)
}

// heldByOthers counts what the coordinator has assigned to other members, or is about to; 0: nothing.
func (s *session) heldByOthers(ctx context.Context) (int, error) {
	me, _ := s.client.GroupMetadata()
	if s.c.cfg.Protocol == ConsumerGroup {
		return s.heldInConsumerGroup(ctx, me)
	}
	groups, err := s.admin.DescribeGroups(ctx, s.c.cfg.Group)
	if err != nil {
		return 0, err
	}
	n := 0
	for _, g := range groups {
		if err := butMissing(g.Err); err != nil {
			return 0, err
		}
		for i := range g.Members {
			m := &g.Members[i]
			if assigned, ok := m.Assigned.AsConsumer(); ok && m.MemberID != me {
				n += len(assigned.Topics)
			}
		}
	}
	return n, nil
}

func (s *session) heldInConsumerGroup(ctx context.Context, me string) (int, error) {
	groups, err := s.admin.DescribeConsumerGroups(ctx, s.c.cfg.Group)
	if err != nil {
		return 0, err
	}
	n := 0
	for _, g := range groups {
		if err := butMissing(g.Err); err != nil {
			return 0, err
		}
		for i := range g.Members {
			if m := &g.Members[i]; m.MemberID != me {
				n += len(m.Assignment) + len(m.TargetAssignment)
			}
		}
	}
	return n, nil
}

// butMissing is a group's error, but none for a group that does not exist: nobody has anything in it.
func butMissing(err error) error {
	if errors.Is(err, kerr.GroupIDNotFound) {
		return nil
	}
	return err
}
