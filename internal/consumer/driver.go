package consumer

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"milepost/internal/commit"
	"milepost/internal/partition"
	"milepost/internal/stream"
)

// submitRetry is how soon jobs that a full solver pool refused are offered again when no answer comes first.
const submitRetry = 5 * time.Millisecond

// restoreEffects is how many Restore effects share a query; each holds at most the machine's own batch.
const restoreEffects = 100

// driver feeds one machine and runs its effects. Only its worker's goroutine touches it, but for mail.
type driver struct {
	*worker
	machine   *partition.Machine
	restores  *batcher[partition.Restore]
	async     sync.WaitGroup
	refetcher *refetcher

	refused []partition.Dispatch // jobs that the solver had no room for, oldest first
	inLine  map[partition.JobID]bool
	desk    Desk         // of a remote solver; nil without one
	replies atomic.Int64 // delivered and not yet taken

	turns int  // for the sampling of Observer.Turned
	over  bool // the machine has given its last effect
}

func newDriver(w *worker, m *partition.Machine) *driver {
	return &driver{worker: w, machine: m, refetcher: newRefetcher(w), inLine: map[partition.JobID]bool{}}
}

// run is the worker's loop: one input at a time, its effects in order. It returns when the machine has given its last
// effect, and after everything that it started has ended.
func (d *driver) run(work context.Context) {
	ctx, cancel := context.WithCancel(work)
	// Two queries at once: one is answered while the next gathers.
	d.restores = newBatcher(2, restoreEffects, func(b []partition.Restore) { d.restore(ctx, b) })
	defer func() {
		cancel()
		d.restores.wait()
		d.async.Wait()
		d.refetcher.close()
	}()
	if remote := d.s.c.deps.Remote; remote != nil {
		d.desk = remote.Attach(d.tenure.Partition, d.deliver)
		defer d.desk.Close()
	}
	tick := time.NewTicker(d.s.c.cfg.Partition.Tick)
	defer tick.Stop()
	retry := time.NewTimer(time.Hour)
	defer retry.Stop()
	lost, drain := d.tenure.Lost(), (<-chan struct{})(d.drain)
	for !d.over {
		d.turn.Add(1)
		select {
		case <-d.mail.ready:
			d.takeMail(ctx)
		case <-tick.C:
			d.step(ctx, partition.Tick{})
			d.snapshot()
		case <-retry.C:
		case <-drain:
			drain = nil
			d.state.Store(int32(StateDraining))
			d.step(ctx, partition.Drain{})
		case <-lost:
			lost = nil
			d.lose(ctx)
		case err := <-d.stops:
			d.end(err)
		case <-d.check:
			d.async.Go(func() { d.look(ctx) })
		case <-work.Done():
			d.end(context.Cause(work))
		}
		if d.offerRefused(); len(d.refused) > 0 {
			retry.Reset(submitRetry)
		}
	}
	d.snapshot()
	if !d.drained { // a drain's report is the machine's own
		v := d.view.Load()
		d.report = partition.Report{Frontier: v.Frontier, Prepared: v.Unpromoted, Unfinished: v.Queued + v.Spilled, Stats: v.Stats, Reasons: v.Reasons}
	}
}

// takeMail steps through everything that has come.
func (d *driver) takeMail(ctx context.Context) {
	for _, in := range d.mail.take() {
		switch in := in.(type) {
		case partition.Arrived:
			if !in.Refetched {
				d.took(len(in.Records))
			}
		case partition.Result:
			if d.desk != nil {
				d.replies.Add(-1)
			}
			d.progress.Add(1)
		case partition.FrontierSaved:
			// The heartbeat comes whether work goes on or not: it is no sign of progress (P18).
		default:
			d.progress.Add(1)
		}
		if d.over {
			return
		}
		d.step(ctx, in)
	}
}

func (d *driver) step(ctx context.Context, in partition.Input) {
	if d.over {
		return
	}
	began := time.Now()
	for _, e := range d.machine.Step(began, in) {
		d.run1(ctx, e)
	}
	d.timed(in, began)
}

// lose tells the machine that the tenure has ended; it drops everything where it stands.
func (d *driver) lose(ctx context.Context) {
	d.step(ctx, partition.Lost{Cause: d.tenure.Err()})
	d.end(d.lostCause())
}

// end ends the loop with a cause; the first stays.
func (d *driver) end(cause error) {
	if d.over {
		return
	}
	d.over, d.cause = true, cause
}

// look stops the worker when its position is not inside the log any more. A broker that does not answer proves nothing: the
// fetch will report again.
func (d *driver) look(ctx context.Context) {
	at, _ := d.position()
	err := d.insideLog(ctx, at)
	if stoppedForGood(err) {
		d.stop(err)
	}
}

func (d *driver) snapshot() {
	v := d.machine.View()
	d.view.Store(&v)
}

// run1 runs one effect.
func (d *driver) run1(ctx context.Context, e partition.Effect) {
	switch e := e.(type) {
	case partition.Restore:
		d.restores.add(e)
	case partition.Dispatch:
		d.dispatch(e)
	case partition.Commit:
		d.submit(e)
	case partition.Promote:
		d.s.c.promotions.add(promotion{mail: d.mail, items: e.Promotions})
	case partition.Persist:
		d.s.c.persists.add(persisting{mail: d.mail, items: e.Persists})
	case partition.SaveFrontier:
		d.s.c.frontiers.add(frontierSave{w: d.worker, write: e.Write, began: time.Now()})
	case partition.Quarantine:
		d.s.c.quarantines.add(quarantining{mail: d.mail, rows: e.Rows})
	case partition.Finish:
		d.async.Go(func() {
			d.mail.post(partition.Finished{Key: e.Key, Err: d.s.c.deps.Recovery.FinishKey(ctx, d.tenure, e.Key)})
		})
	case partition.Refetch:
		d.async.Go(func() { d.mail.post(d.refetcher.fetch(ctx, e.Offsets)) })
	case partition.ReadAsides:
		d.async.Go(func() { d.readAsides(ctx, e) })
	case partition.Discard:
		d.async.Go(func() { d.discard(ctx, e) })
	case partition.Answer:
		d.async.Go(func() { d.answer(ctx, e.Answer) })
	case partition.Pause:
		d.setPause(pauseMachine, true)
	case partition.Resume:
		d.setPause(pauseMachine, false)
	case partition.Warn:
		d.warn(e)
	case partition.Late:
		if tell := d.s.c.deps.Observer.Late; tell != nil {
			tell(e.Region, e.By)
		}
	case partition.Drained:
		d.report, d.drained = e.Report, true
		d.end(errReleased)
	case partition.Stop:
		d.end(e.Cause)
	default:
		panic(fmt.Sprintf("consumer: unknown effect %T", e))
	}
}

// dispatch offers a job to the solver; without room it waits in line. A job that is sent again while it still waits takes no second place.
func (d *driver) dispatch(job partition.Dispatch) {
	if d.inLine[job.Job] {
		for i := range d.refused {
			if d.refused[i].Job == job.Job {
				d.refused[i] = job // the later send goes elsewhere, and may have the trip that the earlier was without
			}
		}
		return
	}
	if len(d.refused) > 0 || !d.offerJob(job) {
		d.refused = append(d.refused, job)
		d.inLine[job.Job] = true
	}
}

func (d *driver) offerRefused() {
	n := 0
	for n < len(d.refused) && !d.over && d.offerJob(d.refused[n]) {
		delete(d.inLine, d.refused[n].Job)
		n++
	}
	rest := copy(d.refused, d.refused[n:])
	clear(d.refused[rest:])
	d.refused = d.refused[:rest]
}

func (d *driver) offerJob(job partition.Dispatch) bool {
	if d.desk != nil {
		return d.desk.Submit(job)
	}
	mail, observer, began := d.mail, &d.s.c.deps.Observer, time.Now()
	return d.s.c.deps.Solver.Submit(job, func(decision partition.Decision, err error) {
		observer.solved(began, err)
		mail.post(partition.Result{Job: job.Job, Key: job.Key, Revision: job.Revision, Decision: decision, Err: err})
	})
}

// unreadReplies bounds the replies that wait for a worker: whoever floods the topic of replies fills no memory. What is dropped
// comes again with its job.
const unreadReplies = 8192

// deliver brings a reply, whoever sent it, to the machine.
func (d *driver) deliver(r partition.Result) {
	if d.replies.Add(1) > unreadReplies {
		d.replies.Add(-1)
		return
	}
	d.mail.post(r)
}

// submit hands a commit to the stages. The answer goes to the mailbox, also when this worker is gone.
func (d *driver) submit(e partition.Commit) {
	mail, c, observer := d.mail, e.Commit, &d.s.c.deps.Observer
	d.s.c.deps.Pipeline.Submit(c, func(o commit.Outcome) {
		if o.Err == nil {
			for _, recorded := range e.Recorded {
				observer.committed(recorded)
			}
		}
		mail.post(partition.Committed{Key: c.Key, Revision: c.Revision, ID: c.ID, Position: o.Position, Err: o.Err})
	})
}

// restore reads the keys of several effects in one query and answers each effect.
func (d *driver) restore(ctx context.Context, batch []partition.Restore) {
	ctx, cancel := context.WithTimeout(ctx, d.s.c.cfg.RequestTimeout)
	defer cancel()
	var keys []stream.Key
	for _, e := range batch {
		keys = append(keys, e.Keys...)
	}
	rows, err := d.s.c.deps.Store.Restore(ctx, d.tenure, keys)
	for _, e := range batch {
		in := partition.Restored{Keys: e.Keys, Err: err}
		if err == nil {
			in.Rows, rows = rows[:len(e.Keys):len(e.Keys)], rows[len(e.Keys):]
		}
		d.mail.post(in)
	}
}

func (d *driver) warn(e partition.Warn) {
	attrs := []slog.Attr{slog.String("class", e.Class.String()), slog.Any("err", e.Err)}
	if e.Key != "" {
		attrs = append(attrs, slog.String("key", string(e.Key)), slog.String("revision", e.Revision.String()))
	}
	level := slog.LevelWarn
	switch e.Class {
	case commit.Permanent, commit.Poison, commit.Fenced: // a key is quarantined, or a partition lost
		level = slog.LevelError
	case commit.Conflict, commit.Busy, commit.Transient, commit.Canceled:
	}
	//nolint:sloglint // the machine's messages are a closed list of literals; they only pass through here
	d.log.LogAttrs(context.Background(), level, e.Message, attrs...)
}
