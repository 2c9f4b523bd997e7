package consumer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"milepost/internal/commit"
	"milepost/internal/stream"
)

// session is one membership in the group.
type session struct {
	c        *Consumer
	client   *kgo.Client
	admin    *kadm.Client
	inflater *inflater
	abort    context.CancelFunc // ends the client's context: the hard end of a close that hangs

	// acquiring is held over every acquisition and every callback that changes the assignment, so that neither sees the
	// other half done. A channel, not a mutex: it is held over requests, and virtual time passes while one waits for it.
	acquiring chan struct{}

	mu            sync.Mutex // guards all below
	assigned      map[int32]*slot
	stopping      bool               // no acquisition begins any more
	cancelAttempt context.CancelFunc // the keeper's acquisition under way, nil without one
	seeks         map[int32]*worker  // the poller seeks them to their expected offsets
	wakePoll      context.CancelFunc // ends the poll under way, nil between polls
	pollWanted    bool               // a seek came between polls

	built   chan struct{} // closed when client and admin are set: a first callback may be faster than kgo.NewClient returns
	kick    chan struct{} // capacity 1: the keeper looks again
	end     chan error    // capacity 1: why the session must end; the first reason stays
	workers sync.WaitGroup
}

// slot is one partition that the group has assigned to this session.
type slot struct {
	partition stream.Partition
	member    string  // under which the group assigned it, as the last callback saw it
	worker    *worker // nil while it is not acquired
	since     time.Time
	next      time.Time // not tried before
	attempts  int
	fences    int      // quick acquisitions after having been fenced, in a row
	err       error    // why it is not acquired, nil when it was not tried yet
	ends      *logEnds // nil: not read yet
}

func (c *Consumer) newSession(work context.Context) (*session, error) {
	s := &session{
		c: c, assigned: map[int32]*slot{}, seeks: map[int32]*worker{},
		acquiring: make(chan struct{}, 1), built: make(chan struct{}), kick: make(chan struct{}, 1), end: make(chan error, 1),
	}
	ctx, abort := context.WithCancel(work)
	s.abort = abort
	inflater, err := newInflater(c.cfg.InflatedBytes)
	if err != nil {
		abort()
		return nil, err
	}
	s.inflater = inflater
	opts := append([]kgo.Opt{}, c.cfg.Client...)
	opts = append(opts,
		kgo.WithContext(ctx), kgo.WithDecompressor(inflater),
		kgo.ConsumerGroup(c.cfg.Group), kgo.ConsumeTopics(c.cfg.Topic),
		kgo.Balancers(kgo.CooperativeStickyBalancer()),
		kgo.SessionTimeout(c.cfg.SessionTimeout), kgo.HeartbeatInterval(c.cfg.HeartbeatInterval), kgo.RebalanceTimeout(c.cfg.RebalanceTimeout),
		// The group's offset is a hint that follows Postgres; nothing may move it by itself.
		kgo.DisableAutoCommit(),
		// Polls and callbacks exclude each other: what a poll returned is handed on under the assignment that it was fetched
		// under (OnPartitionsLost runs before buffered fetches are invalidated), and a seek cannot meet a revocation. The
		// poller never waits for anything between its poll and AllowRebalance, so no rebalance is held up.
		kgo.BlockRebalanceOnPoll(),
		// Retention or truncation must stop the partition, never move it (P29).
		kgo.ConsumeResetOffset(kgo.NoResetOffset()),
		// Markers show that a gap between two fetches is none (G3). They are dropped before the machine.
		kgo.KeepControlRecords(), kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.FetchMaxBytes(c.cfg.FetchBytes), kgo.FetchMaxPartitionBytes(max(c.cfg.FetchBytes/4, 1)), kgo.FetchMaxWait(c.cfg.FetchMaxWait),
		kgo.MaxConcurrentFetches(2),
		kgo.OnPartitionsAssigned(func(_ context.Context, _ *kgo.Client, m map[string][]int32) { s.onAssigned(work, m[c.cfg.Topic]) }),
		kgo.OnPartitionsRevoked(func(_ context.Context, _ *kgo.Client, m map[string][]int32) { s.onRevoked(work, m[c.cfg.Topic]) }),
		kgo.OnPartitionsLost(func(_ context.Context, _ *kgo.Client, m map[string][]int32) { s.onLost(m[c.cfg.Topic]) }),
		kgo.AdjustFetchOffsetsFn(s.adjustOffsets),
	)
	if c.cfg.Protocol == ConsumerGroup {
		opts = append(opts, kgo.ServerSideBalancer()) // with a sticky balancer it asks for the broker's uniform assignor
	}
	client, err := kgo.NewClient(opts...)
	if err != nil {
		abort()
		return nil, err
	}
	s.client, s.admin = client, kadm.NewClient(client)
	c.deps.Membership.client.Store(client)
	close(s.built)
	return s, nil
}

// run works until ctx ends or the session must end, then takes it down in order: intake, drain, group.
func (s *session) run(ctx, work context.Context) error {
	intake, stopIntake := context.WithCancel(ctx)
	defer stopIntake()
	var wg sync.WaitGroup
	wg.Go(func() { s.poll(intake) })
	wg.Go(func() { s.keep(intake, work) })
	wg.Go(func() { s.housekeep(intake) })
	wg.Go(func() { s.operate(intake) })
	wg.Go(func() { s.watchEnds(intake) })

	var cause error
	select {
	case <-ctx.Done():
	case cause = <-s.end:
	}
	s.mu.Lock()
	s.stopping = true
	if s.cancelAttempt != nil {
		s.cancelAttempt()
	}
	s.mu.Unlock()
	stopIntake()
	wg.Wait()
	lost := s.drainAll(work, cause)
	s.leave(work)
	s.workers.Wait()
	return errors.Join(cause, lost)
}

// fail ends the session for the first reason that is given.
func (s *session) fail(err error) {
	select {
	case s.end <- err:
	default: // it is ending already
	}
}

// drainAll retires every worker while the client still heartbeats: a member that is leaving no longer does, and would be thrown
// out before a slow drain is over.
func (s *session) drainAll(work context.Context, cause error) error {
	s.mu.Lock()
	workers := make([]*worker, 0, len(s.assigned))
	for _, sl := range s.assigned {
		if sl.worker != nil {
			workers = append(workers, sl.worker)
		}
	}
	s.mu.Unlock()
	grace := s.c.cfg.DrainGrace
	if errors.Is(cause, ErrStuck) {
		grace = s.c.cfg.ReleaseTimeout // what is stuck will not drain
	}
	return s.retire(work, workers, grace)
}

// leave leaves the group and closes the client, at the latest after the close time-out.
func (s *session) leave(work context.Context) {
	hard := time.AfterFunc(s.c.cfg.CloseTimeout, func() {
		s.c.log.WarnContext(work, "the group could not be left in time; its session time-out will tell it")
		s.abort()
	})
	defer hard.Stop()
	defer s.abort()
	s.client.AllowRebalance()
	ctx, cancel := context.WithTimeout(work, s.c.cfg.CloseTimeout)
	defer cancel()
	if err := s.client.LeaveGroupContext(ctx); err != nil {
		s.c.log.WarnContext(ctx, "leave the group", slog.Any("err", err))
	}
	s.client.CloseAllowingRebalance()
}

// name gives the stream partition of a number.
func (s *session) name(n int32) stream.Partition {
	return stream.Partition{Topic: s.c.cfg.Topic, Number: n}
}

// stillMember reports an error when an acquisition that began under that member must not go on.
func (s *session) stillMember(ctx context.Context, member string) error {
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}
	if now, generation := s.client.GroupMetadata(); now != member {
		return &MemberError{MemberID: member, Generation: generation, Err: fmt.Errorf("the member id is now %q", now)}
	}
	return nil
}

// loseOthers ends every tenure that began under another member id (G2) and notes what it found in the slots. It returns the
// workers that it ended.
func (s *session) loseOthers(member string) []*worker {
	s.mu.Lock()
	defer s.mu.Unlock()
	var ended []*worker
	for _, sl := range s.assigned {
		if w := sl.worker; w != nil && w.tenure.MemberID != member {
			w.tenure.Lose(&commit.FencedError{
				Partition: sl.partition, Held: w.tenure.Epoch, Reason: "the group knows this process under another member id now",
			})
			sl.worker, sl.since, sl.next = nil, time.Now(), time.Time{}
			ended = append(ended, w)
		}
	}
	return ended
}

// poke makes the keeper look again.
func (s *session) poke() {
	select {
	case s.kick <- struct{}{}:
	default: // it will
	}
}
