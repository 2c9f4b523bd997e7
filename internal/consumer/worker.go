package consumer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"milepost/internal/commit"
	"milepost/internal/partition"
	"milepost/internal/stream"
)

// worker is one tenure's work: recovery, then the machine's loop. run is its goroutine; offer, position and sought are the
// poller's; the rest may be called by anyone.
type worker struct {
	s      *session
	tenure *commit.Tenure
	start  commit.Start
	log    *slog.Logger

	mail  *mailbox
	drain chan struct{} // closed: drain
	check chan struct{} // capacity 1: look whether the position is still inside the log
	done  chan struct{} // closed: run has returned and the session knows
	stops chan error    // capacity 1: stop with this cause

	drainOnce sync.Once
	retired   chan struct{} // closed: whoever retires it has finished
	retireOne atomic.Bool
	told      atomic.Bool // its end has been reported
	forSeek   atomic.Bool // it drains so that the next tenure can begin elsewhere

	mu       sync.Mutex // guards the position and the pauses
	next     int64      // the offset that the next record must have
	epoch    int32      // leader epoch of the record below it, -1 unknown
	proven   bool       // the fetch was sought to next: what comes first is the next record
	seeking  bool       // a seek is on its way: what comes now is of the old position
	refused  bool       // nothing is taken any more
	inbox    int        // records handed over and not yet taken
	pauseFor pauseReason
	paused   bool

	cause   error // why it ended; valid after done
	drained bool  // it ended by a complete drain
	report  partition.Report

	// For status and the watchdog.
	view      atomic.Pointer[partition.View]
	state     atomic.Int32
	progress  atomic.Int64 // completions of any kind
	turn      atomic.Int64 // of the loop
	floor     atomic.Int64 // ledger floor that Postgres has
	hinted    int64        // housekeeper's: the last committed group offset
	seen      int64        // housekeeper's: SavedFrontier at its last look
	lastFloor int64        // housekeeper's: the floor at its last look
	cutBelow  int64        // housekeeper's: deleted below
	retention sweep        // housekeeper's
}

// pauseReason says why a fetch is paused; it goes on when none is left.
type pauseReason uint8

const (
	pauseMachine pauseReason = 1 << iota
	pauseInbox
)

func newWorker(s *session, t *commit.Tenure, start commit.Start) *worker {
	w := &worker{
		s: s, tenure: t, start: start, mail: newMailbox(), drain: make(chan struct{}), check: make(chan struct{}, 1),
		done: make(chan struct{}), stops: make(chan error, 1), retired: make(chan struct{}),
		next: start.Frontier.Next.Offset, epoch: start.Frontier.LeaderEpoch,
		log: s.c.log.With(slog.Int("partition", int(t.Partition.Number)), slog.Int64("epoch", int64(t.Epoch))),
	}
	t.SavedFrontier.Store(w.next)
	w.floor.Store(start.LedgerFloor)
	w.hinted, w.seen, w.lastFloor, w.cutBelow = -1, w.next, start.LedgerFloor, 0
	return w
}

// requestDrain begins the drain; recovery is broken off instead.
func (w *worker) requestDrain() { w.drainOnce.Do(func() { close(w.drain) }) }

// stop ends the worker with a cause of its own.
func (w *worker) stop(cause error) {
	select {
	case w.stops <- cause:
	default: // it is stopping already
	}
}

// checkBounds makes the worker look whether its position is inside the log.
func (w *worker) checkBounds() {
	select {
	case w.check <- struct{}{}:
	default:
	}
}

// run works until the tenure ends, the partition is drained, or it must stop. It fills in cause, drained and report.
func (w *worker) run(work context.Context) {
	ctx, cancel := context.WithCancel(work)
	defer cancel()
	began := time.Now()
	w.state.Store(int32(StateRecovering))
	recovered, err := w.recover(ctx)
	if err != nil {
		w.cause = err
		return
	}
	if f := w.s.c.deps.Observer.Recovered; f != nil {
		f(recovered, time.Since(began))
	}
	w.log.InfoContext(ctx, "recovered", slog.String("frontier", recovered.Frontier.String()), slog.Int("prepared", recovered.Prepared),
		slog.Int("promoted", recovered.Promoted), slog.Int("published", recovered.Published), slog.Int("failed", len(recovered.Failed)),
		slog.Int("rebuild", len(recovered.Rebuild)),
		slog.Duration("took", time.Since(began)))
	anew, err := w.overtaken(ctx, &recovered)
	if err != nil {
		w.cause = err
		return
	}
	if err := w.seekAsked(ctx, &recovered); err != nil {
		w.log.WarnContext(ctx, "operators' requests to seek wait", slog.Any("err", err))
		if commit.ClassOf(err) == commit.Fenced {
			w.cause = err
			return
		}
	}
	w.state.Store(int32(StateRunning))
	share := w.share()
	defer share.Leave() // also where the machine was dropped
	d := newDriver(w, partition.New(w.s.c.cfg.Partition, *w.s.c.workload.Load(), partition.Start{
		Tenure: w.tenure, Frontier: recovered.Frontier, LedgerFloor: recovered.LedgerFloor, LedgerHighest: recovered.LedgerHighest,
		Done: recovered.Done, Failed: recovered.Failed, Standing: recovered.Standing, Rebuild: recovered.Rebuild, Anew: anew, Share: share,
	}, time.Now()))
	d.run(ctx)
	if w.forSeek.Load() && errors.Is(w.cause, errReleased) && !w.retireOne.Load() {
		w.cause = errSought
	}
}

// recover finishes what earlier owners left, again with backoff while the world is away. A drain, a stop or the tenure's end breaks it off.
func (w *worker) recover(work context.Context) (commit.RecoveryReport, error) {
	ctx, cancel := context.WithCancelCause(work)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel(nil)
	wg.Go(func() {
		select {
		case <-ctx.Done():
		case <-w.tenure.Lost():
			cancel(w.lostCause())
		case <-w.drain:
			cancel(errRevoked)
		case err := <-w.stops:
			cancel(err)
		}
	})
	told := ""
	for attempt := 0; ; attempt++ {
		report, err := w.s.c.deps.Recovery.Run(ctx, w.tenure, w.start)
		if err == nil {
			return report, nil
		}
		if ctx.Err() != nil {
			return report, context.Cause(ctx)
		}
		if commit.ClassOf(err) != commit.Transient || stoppedForGood(err) {
			return report, err
		}
		if err.Error() != told {
			told = err.Error()
			w.log.WarnContext(ctx, "recovery failed; it is tried again", slog.Any("err", err))
		}
		if !sleep(ctx, w.s.c.backoff(attempt)) {
			return report, context.Cause(ctx)
		}
	}
}

// insideLog is an error when the log no longer has the offset or ends below it.
func (w *worker) insideLog(ctx context.Context, offset int64) error {
	ctx, cancel := context.WithTimeout(ctx, w.s.c.cfg.RequestTimeout)
	defer cancel()
	start, end, err := w.s.bounds(ctx, w.tenure.Partition)
	if err != nil {
		return err
	}
	if offset < start || offset > end {
		return &RangeError{Partition: w.tenure.Partition, Frontier: offset, LogStart: start, LogEnd: end}
	}
	return nil
}

// position is where the fetch must be.
func (w *worker) position() (offset int64, leaderEpoch int32) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.next, w.epoch
}

// sought says that the fetch has been moved to the position: nothing of an older one comes any more.
func (w *worker) sought() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.proven, w.seeking = true, false
}

// offer hands over records of one fetch, in offset order. It reports true when the fetch must be sought to the
// position first (G3): where two fetches meet, a gap is believed only after a seek has shown it again.
func (w *worker) offer(records []*kgo.Record) (seek bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.seeking || w.refused {
		return false
	}
	for len(records) > 0 && records[0].Offset < w.next {
		records = records[1:] // an older position's
	}
	if len(records) == 0 {
		return false
	}
	if got := records[0].Offset; got > w.next && !w.proven {
		w.seeking = true
		if f := w.s.c.deps.Observer.Gap; f != nil {
			f(w.tenure.Partition, w.next, got)
		}
		return true
	}
	w.proven = false
	last := records[len(records)-1]
	w.next, w.epoch = last.Offset+1, last.LeaderEpoch
	batch := make([]stream.Record, 0, len(records))
	for _, r := range records {
		if !r.Attrs.IsControl() {
			batch = append(batch, record(w.tenure.Partition, r))
		}
	}
	w.accept(batch)
	return false
}

// accept puts records into the mailbox. The caller holds w.mu.
func (w *worker) accept(records []stream.Record) {
	if len(records) == 0 {
		return
	}
	w.inbox += len(records)
	if w.inbox >= w.s.c.cfg.InboxRecords {
		w.pause(pauseInbox)
	}
	w.mail.post(partition.Arrived{Records: records})
}

// took says that the loop has taken records out of the mailbox.
func (w *worker) took(n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.inbox -= n
	if w.inbox <= w.s.c.cfg.InboxRecords/2 {
		w.resume(pauseInbox)
	}
}

func (w *worker) setPause(reason pauseReason, on bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if on {
		w.pause(reason)
	} else {
		w.resume(reason)
	}
}

// pause and resume: the caller holds w.mu. A tenure that is over pauses and resumes nothing: the partition may be another's.
func (w *worker) pause(reason pauseReason) {
	w.pauseFor |= reason
	if !w.paused && w.tenure.Err() == nil {
		w.paused = true
		w.s.client.PauseFetchPartitions(w.topicPartition())
	}
}

func (w *worker) resume(reason pauseReason) {
	w.pauseFor &^= reason
	if w.paused && w.pauseFor == 0 && w.tenure.Err() == nil {
		w.paused = false
		w.s.client.ResumeFetchPartitions(w.topicPartition())
	}
}

func (w *worker) topicPartition() map[string][]int32 {
	return map[string][]int32{w.tenure.Partition.Topic: {w.tenure.Partition.Number}}
}

// refuse makes offer take nothing any more.
func (w *worker) refuse() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.refused = true
}

// lostCause gives the end of a tenure as the session judges it: ended by the session itself, or fenced.
func (w *worker) lostCause() error {
	err := w.tenure.Err()
	for _, own := range []error{errRevoked, errLost, errBound} {
		if errors.Is(err, own) {
			return fmt.Errorf("partition %s: %w", w.tenure.Partition, err)
		}
	}
	return fencedBy(w.tenure, err)
}
