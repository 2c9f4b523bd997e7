package partition

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"milepost/internal/commit"
	"milepost/internal/stream"
)

// errNothingOpened is met when a workload opens neither a local decision nor a request.
var errNothingOpened = errors.New("the workload opened nothing")

// open starts the job of a key's head and of what follows it at once: the workload decides by itself, or a solver is asked.
func (m *Machine) open(k *key) {
	run := m.run(k)
	o := m.work.Open(m.state(k), run[0], run[1:]...)
	if k.job == nil {
		k.job = &job{}
	}
	j := k.job
	j.run, j.local = min(max(o.Count, 1), len(run)), o.Local != nil
	j.work, j.works, j.region, j.budget = m.work, m.works, o.Region, o.Budget
	j.rebuild = m.rebuilds(k)
	if o.Local != nil {
		// It takes no credit, however exhausted admission is (A6, A7).
		m.startJob(j)
		j.id, j.request, j.decision, j.decided = JobID{}, nil, *o.Local, true
		m.decide(k)
		return
	}
	if len(o.Request) == 0 {
		m.quarantine(k, fmt.Errorf("open %s: %w: %w", k.head.obs.Identity.Revision, commit.ErrPermanent, errNothingOpened))
		return
	}
	id := jobID(k.name, k.head.obs.Identity.Revision, k.base().Revision, o.Request)
	if j.decided && j.id == id {
		// The result whose commit failed is that of this very job: no second solve (A12).
		m.startJob(j)
		m.decide(k)
		return
	}
	if j.decided {
		m.reject(Superseded)
	}
	j.id, j.request, j.decision, j.decided = id, o.Request, Decision{}, false
	j.short, j.timeouts, j.differs = nil, 0, false
	if m.isSticky(k) {
		j.short = o.Short
	}
	if m.takeCredit(k, o.Region) {
		m.begin(k)
	}
}

// send hands out the request as it is retained, or once without the trip; then it judges what came before its job.
func (m *Machine) send(k *key) {
	m.enter(k, solving)
	j := k.job
	e := Dispatch{Job: j.id, Key: k.name, Revision: k.head.obs.Identity.Revision, Request: j.request, Region: j.region, Attempt: j.timeouts}
	wait := m.cfg.RequestRetry
	j.cached = len(j.short) > 0
	if j.cached {
		e.Request, e.Replica, wait = j.short, k.sticky.replica, min(m.cfg.RequestRetry, m.cfg.StickyRetry*time.Duration(j.run))
		j.short = nil
		m.stats.Cached++
	}
	m.setTimer(k, m.now.Add(wait))
	m.emit(e)
	m.judgeParked(k)
}

// resend asks again after a time-out, with the same bytes and somebody else (A9).
func (m *Machine) resend(k *key) {
	m.stats.Resent++
	k.sticky = nil
	k.job.timeouts++
	m.send(k)
}

// tripMiss sends the full request to a replica that is there and does not hold the trip (A9).
func (m *Machine) tripMiss(k *key) {
	m.stats.TripMisses++
	k.sticky = nil
	m.send(k)
}

// sticky is the replica that answered last, and for which revision.
type sticky struct {
	replica  string
	revision stream.Revision
}

// isSticky reports whether somebody may hold the trip of exactly the key's checkpoint.
func (m *Machine) isSticky(k *key) bool {
	return k.sticky != nil && k.loaded && k.sticky.revision == k.base().Revision
}

// base is the checkpoint over which the key's head is decided.
func (k *key) base() commit.Checkpoint {
	if k.partial != nil && !k.partial.state.Revision.IsZero() {
		return k.partial.state
	}
	return k.checkpoint
}

func (m *Machine) state(k *key) KeyState {
	base := k.base()
	s := m.stateOver(base)
	s.Expired, s.Sticky = k.expired && base.Revision == k.checkpoint.Revision, m.isSticky(k)
	return s
}

// stateOver is the state of a key that has just come to a checkpoint.
func (m *Machine) stateOver(c commit.Checkpoint) KeyState {
	s := KeyState{Checkpoint: c, Epoch: m.tenure.Epoch}
	if at := c.Revision; !at.IsZero() && at.Compare(m.anew.Before) < 0 {
		s.Anew = m.anew.Reason
	}
	return s
}

// jobID digests everything that makes a job what it is: another base or another request is another job.
func jobID(name stream.Key, rev, base stream.Revision, request []byte) JobID {
	var n [8]byte
	b := make([]byte, 0, 8*6+len(name)+len(request))
	for _, v := range []int64{int64(rev.Generation), rev.Offset, int64(base.Generation), base.Offset, int64(len(name))} {
		binary.BigEndian.PutUint64(n[:], uint64(v))
		b = append(b, n[:]...)
	}
	b = append(append(b, name...), request...)
	sum := sha256.Sum256(b)
	return JobID(sum[:16])
}
