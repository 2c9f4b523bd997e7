//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
)

// injected is what became of a planned fault.
type injected struct {
	fault

	Began, Ended time.Duration // after the start
	Note         string        // what is worth knowing of it
	Skipped      string        // why it was not injected
	Error        string
}

// inject makes one fault happen and undoes it. It gives a note.
func (r *run) inject(ctx context.Context, f fault) (note string, err error) {
	w := r.workers[f.Slot]
	switch f.Kind {
	case pauseWorker:
		w.signal(syscall.SIGSTOP)
		err = pause(ctx, f.For)
		w.signal(syscall.SIGCONT)
		return "", err
	case killWorker:
		w.kill()
		return "", errors.Join(pause(ctx, f.For), w.start())
	case rollWorkers:
		return r.roll(ctx, f)
	case killBroker, pauseBroker:
		return "", r.breakBroker(ctx, f)
	case moveLeaders:
		return r.moveLeaders(ctx)
	case killPostgres:
		err = errors.Join(r.stack.killPostgres(), pause(ctx, f.For))
		return "", errors.Join(err, r.stack.restartPostgres(ctx))
	case pausePostgres:
		err = errors.Join(r.stack.postgres.Pause(), pause(ctx, f.For))
		return "", errors.Join(err, r.stack.postgres.Resume())
	case fillDisk:
		return r.fillDisk(ctx, f)
	case slowLink, cutLink, blackHole, loseAnswers:
		return r.spoilLinks(ctx, f)
	case deleteGroup, resetOffsets:
		return r.disturbGroup(ctx, f)
	case deleteRecords:
		return r.deleteRecords(ctx)
	case addPartitions:
		return r.addPartitions(ctx)
	case stepClock:
		r.clocks[f.Slot].set(f.Amount)
		err = pause(ctx, f.For)
		r.clocks[f.Slot].set(0)
		return "", err
	}
	return "", fmt.Errorf("unknown fault %q", f.Kind)
}

// roll ends each worker in order and starts it again, one after the other.
func (r *run) roll(ctx context.Context, f fault) (string, error) {
	var codes []string
	for _, w := range r.workers {
		codes = append(codes, fmt.Sprint(w.terminate(ctx, 30*time.Second)))
		if err := errors.Join(pause(ctx, f.For), w.start()); err != nil {
			return "", err
		}
	}
	return "exit codes " + strings.Join(codes, " "), nil
}

func (r *run) breakBroker(ctx context.Context, f fault) error {
	k := r.stack.kafka
	if f.Kind == pauseBroker {
		return errors.Join(k.Pause(f.Node), pause(ctx, f.For), k.Resume(f.Node))
	}
	if err := errors.Join(k.Kill(f.Node), pause(ctx, f.For)); err != nil {
		return err
	}
	for {
		bounded, cancel := context.WithTimeout(ctx, 45*time.Second)
		err := k.Restart(bounded, f.Node)
		cancel()
		if err == nil || strings.Contains(err.Error(), "still runs") { // it is slow to answer; whoever needs it waits
			return nil
		}
		if ctx.Err() != nil {
			return err
		}
	}
}

// moveLeaders lets the next replica of every partition lead it, of the group's and the transactions' coordinators too.
func (r *run) moveLeaders(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 15*time.Second)
	defer cancel()
	details, err := r.admin.ListTopicsWithInternal(ctx, append(r.topics.all(), "__consumer_offsets", "__transaction_state")...)
	if err != nil {
		return "", err
	}
	var assign kadm.AlterPartitionAssignmentsReq
	moved := 0
	details.EachPartition(func(p kadm.PartitionDetail) {
		if n := len(p.Replicas); n > 1 {
			assign.Assign(p.Topic, p.Partition, append(append([]int32(nil), p.Replicas[1:]...), p.Replicas[0]))
			moved++
		}
	})
	if _, err := r.admin.AlterPartitionAssignments(ctx, assign); err != nil {
		return "", err
	}
	_, err = r.admin.ElectLeaders(ctx, kadm.ElectPreferredReplica, nil)
	return fmt.Sprintf("%d partitions", moved), err
}

func (r *run) fillDisk(ctx context.Context, f fault) (string, error) {
	d := r.stack.disk
	err := errors.Join(d.fill(), pause(ctx, f.For), d.free())
	died, up := r.awaitPostgres(ctx)
	note := ""
	if died {
		note = "the server ended and was started again"
	}
	return note, errors.Join(err, up)
}

// awaitPostgres waits until the server answers, and starts it if it has ended.
func (r *run) awaitPostgres(ctx context.Context) (died bool, err error) {
	for {
		err := r.observer.once(ctx, func(ctx context.Context, conn *pgx.Conn) error { return conn.Ping(ctx) })
		if err == nil {
			return died, nil
		}
		bounded, cancel := context.WithTimeout(ctx, 20*time.Second)
		if r.stack.postgres.Restart(bounded) == nil {
			died = true
		}
		cancel()
		if waited := pause(ctx, 300*time.Millisecond); waited != nil {
			return died, err
		}
	}
}

// spoilLinks makes the links of a worker bad for a while.
func (r *run) spoilLinks(ctx context.Context, f fault) (note string, err error) {
	var bad links
	if f.Link != linkPostgres {
		bad = append(bad, r.stack.toKafka[f.Slot]...)
	}
	if f.Link != linkKafka {
		bad = append(bad, r.stack.toPostgres[f.Slot])
	}
	lost := bad.swallowed()
	switch f.Kind {
	case slowLink:
		bad.set(weather{delay: time.Duration(f.Amount) * time.Millisecond})
	case cutLink:
		bad.set(weather{down: true})
		bad.cut()
	case blackHole:
		bad.set(weather{hole: true})
	case loseAnswers:
		bad.set(weather{swallow: true})
	}
	err = pause(ctx, f.For)
	if f.Kind == loseAnswers {
		// Nothing may pass after what was lost.
		bad.set(weather{down: true})
		bad.cut()
		note = fmt.Sprintf("%d bytes of answers lost", bad.swallowed()-lost)
	}
	bad.set(weather{})
	return note, err
}

// disturbGroup empties the group and deletes it, or sets its offsets. One worker may stand still meanwhile and wake up after it: it believes
// in a generation that is gone, or comes again.
func (r *run) disturbGroup(ctx context.Context, f fault) (note string, err error) {
	zombie := f.Amount&1 != 0
	for i, w := range r.workers {
		switch {
		case i == f.Slot && zombie:
			w.signal(syscall.SIGSTOP)
		case f.Amount&2 != 0:
			w.terminate(ctx, 20*time.Second)
		default:
			w.kill()
		}
	}
	defer func() {
		for i, w := range r.workers {
			if i == f.Slot && zombie {
				err = errors.Join(err, pause(ctx, f.For/2))
				w.signal(syscall.SIGCONT)
			}
			err = errors.Join(err, w.start())
		}
	}()
	bounded, cancel := context.WithTimeout(ctx, 25*time.Second)
	defer cancel()
	for tries := 1; ; tries++ {
		if f.Kind == deleteGroup {
			_, err = r.admin.DeleteGroup(bounded, r.group)
		} else {
			err = r.setOffsets(bounded, f.Amount&2 != 0)
		}
		if err == nil || errors.Is(err, kerr.GroupIDNotFound) {
			return fmt.Sprintf("zombie %t, done at try %d", zombie, tries), pause(ctx, f.For/2)
		}
		if waited := pause(bounded, 300*time.Millisecond); waited != nil {
			return "the group did not become empty", err
		}
	}
}

// setOffsets sets the group's offsets to the ends of the log, or to its starts. Brokers take that of an empty group only.
func (r *run) setOffsets(ctx context.Context, ends bool) error {
	list := r.admin.ListStartOffsets
	if ends {
		list = r.admin.ListEndOffsets
	}
	listed, err := list(ctx, r.topics.raw)
	if err = errors.Join(err, listed.Error()); err != nil {
		return err
	}
	return r.admin.CommitAllOffsets(ctx, r.group, listed.Offsets())
}

// deleteRecords deletes what is below the frontiers, as retention does, as far as the tape has read it.
func (r *run) deleteRecords(ctx context.Context) (string, error) {
	bounded, cancel := context.WithTimeout(ctx, 15*time.Second)
	defer cancel()
	var below map[int32]int64
	err := r.observer.query(bounded, func(ctx context.Context, conn *pgx.Conn) (err error) {
		below, err = r.observer.frontiers(ctx, conn)
		return err
	})
	if err != nil {
		return "", err
	}
	var at kadm.Offsets
	n := int64(0)
	for p, next := range below {
		if next > 0 && r.tape.position(r.topics.raw, p) >= next {
			at.AddOffset(r.topics.raw, p, next, -1)
			n += next
		}
	}
	if len(at) == 0 {
		return "nothing is below a frontier", nil
	}
	deleted, err := r.admin.DeleteRecords(bounded, at)
	return fmt.Sprintf("below %d in all", n), errors.Join(err, deleted.Error())
}

// atEnds waits until the frontiers are at the ends of the log and nothing stands prepared: workers refuse a topic that has grown, so what is
// not done by then never would be.
func (r *run) atEnds(ctx context.Context) error {
	for {
		done := false
		ends, err := r.admin.ListEndOffsets(ctx, r.topics.raw)
		if err = errors.Join(err, ends.Error()); err == nil {
			err = r.observer.once(ctx, func(ctx context.Context, conn *pgx.Conn) error {
				at, err := r.observer.frontiers(ctx, conn)
				prepared := 0
				err = errors.Join(err, conn.QueryRow(ctx, "SELECT count(*) FROM checkpoint WHERE has_prepared").Scan(&prepared))
				done = err == nil && prepared == 0
				ends.Each(func(o kadm.ListedOffset) { done = done && at[o.Partition] == o.Offset })
				return err
			})
		}
		if done {
			return nil
		}
		if waited := pause(ctx, 300*time.Millisecond); waited != nil {
			return errors.Join(waited, err)
		}
	}
}

// owned waits until every old partition has an owner again (the new one gets its first when the clients look at the topic again): a worker that drains before it has noticed its fence ends with an error.
func (r *run) owned(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, finishBound)
	defer cancel()
	for {
		left := -1
		err := r.observer.once(ctx, func(ctx context.Context, conn *pgx.Conn) error {
			return conn.QueryRow(ctx, "SELECT count(*) FROM partition_owner WHERE instance = 'operator' AND epoch > 1").Scan(&left)
		})
		if left == 0 {
			return nil
		}
		if waited := pause(ctx, 200*time.Millisecond); waited != nil {
			return errors.Join(fmt.Errorf("%d partitions have no owner after the command", left), err)
		}
	}
}

// addPartitions adds one to the raw topic, as the runbook says: the producers stopped, every partition at its end, then the command, which is
// tried until it is not refused.
func (r *run) addPartitions(ctx context.Context) (string, error) {
	release, err := r.load.hold(ctx)
	if err != nil {
		return "", err
	}
	goOn := sync.OnceFunc(release)
	defer goOn()
	if err := r.atEnds(ctx); err != nil {
		return "", err
	}
	for {
		grown, err := r.admin.CreatePartitions(ctx, 1, r.topics.raw)
		if errors.Join(err, grown.Error()) == nil {
			break
		}
		if waited := pause(ctx, 500*time.Millisecond); waited != nil {
			return "", err
		}
	}
	for tries := 1; ; tries++ {
		cmd := exec.CommandContext(ctx, r.program, "partition", "reset", "--yes", "--brokers", strings.Join(r.stack.kafka.Addrs(), ","),
			"--dsn", r.observer.dsn, "--group", r.group, "--raw", r.topics.raw, "--prefix", r.prefix)
		out, err := cmd.CombinedOutput()
		if err == nil {
			goOn() // at once: nothing of the generation before can be published any more
			return fmt.Sprintf("taken at try %d", tries), r.owned(ctx)
		}
		if waited := pause(ctx, time.Second); waited != nil || tries > 100 {
			return "", fmt.Errorf("partition reset: %w: %s", err, out)
		}
	}
}
