package partition

import (
	"fmt"
	"time"

	"milepost/internal/commit"
)

// answered takes the answer of a key's active job.
func (m *Machine) answered(k *key, in *Result) {
	if in.Err != nil {
		m.solverFailed(k, in.Err)
		return
	}
	m.stats.Accepted++
	k.attempts = 0
	k.sticky = nil
	if in.Replica != "" && in.Decision.Kind == Solved {
		last := k.nth(min(k.job.run, 1+len(in.Decision.More)) - 1)
		k.sticky = &sticky{replica: in.Replica, revision: last.obs.Identity.Revision}
	}
	k.job.decision, k.job.decided = in.Decision, true
	m.decide(k)
}

// solverFailed takes a job's error: one that no retry can help stops the key, any other is asked again.
func (m *Machine) solverFailed(k *key, err error) {
	switch commit.ClassOf(err) {
	case commit.Permanent, commit.Poison:
		if !m.narrow(k, err) {
			m.quarantine(k, err)
		}
	case commit.Fenced:
		m.fenced(err)
	case commit.Transient, commit.Canceled, commit.Conflict, commit.Busy:
		if m.isStale(k) {
			m.openAgain(k) // what it was opened for may be gone
			return
		}
		if k.attempts == 0 {
			m.warn("solver failed", k, err)
		}
		m.setTimer(k, m.now.Add(m.delay(k.attempts)))
		k.attempts++
	}
}

// decide plans the job's decision and hands the commit in.
func (m *Machine) decide(k *key) {
	j := k.job
	m.timers.remove(k)
	plan, err := m.plan(k)
	if j.rebuild && err == nil {
		m.rebuilt(k, plan, nil)
		return
	}
	if err != nil {
		m.quarantine(k, fmt.Errorf("plan %s: %w: %w", k.head.obs.Identity.Revision, commit.ErrPermanent, err))
		return
	}
	j.commit = commit.NewCommit(m.tenure, k.name, k.checkpoint.Revision, plan)
	// What is released from quarantine is prepared in either mode: its row there leaves when it becomes current (H10).
	j.commit.Deferred = m.cfg.Deferred && !k.head.released
	m.compose(k)
}

// planOne is the workload's plan of one observation.
func (j *job) planOne(k KeyState, o Observation, d Decision) (commit.Plan, error) {
	p, err := j.work.Plan(k, o, d)
	if err == nil && p.Next.Revision != o.Identity.Revision {
		return p, fmt.Errorf("planned revision %s is not the observation's", p.Next.Revision)
	}
	return p, err
}

// deadLetter commits the head, a poison record, as its dead letter.
func (m *Machine) deadLetter(k *key) {
	it := k.head
	j := &job{}
	k.job = j
	m.startJob(j)
	j.commit = commit.NewDeadLetter(m.tenure, k.name, m.revision(it.record.Offset), m.letter(it))
	m.compose(k)
}

// letter is a poison record's dead letter. One that is too large to be published would put its key into quarantine, which need not be the
// key of whoever wrote it: so it goes without its record's value, then without its headers, at last without its key.
func (m *Machine) letter(it *item) commit.Output {
	r, p, leftOut := it.record, *it.poison, ""
	for _, leave := range []func() string{
		nil,
		func() string { n := len(r.Value); r.Value = nil; return fmt.Sprintf("a value of %d bytes", n) },
		func() string { n := len(r.Headers); r.Headers = nil; return fmt.Sprintf(", %d headers", n) },
		func() string { n := len(r.Key); r.Key = nil; return fmt.Sprintf(", a key of %d bytes", n) },
	} {
		if leave != nil {
			leftOut += leave()
			p.Detail = it.poison.Detail + "; left out: " + leftOut
		}
		out := m.work.DeadLetter(m.identity(&r), m.tenure.Epoch, &r, &p)
		if out.Size() <= m.cfg.DeadLetterBytes {
			return out
		}
	}
	return m.work.DeadLetter(m.identity(&r), m.tenure.Epoch, &r, &p)
}

// compose makes a commit the one that is handed in, now and at each retry: the same bytes (I7).
func (m *Machine) compose(k *key) {
	j := k.job
	j.request = nil
	j.composed, j.attempt, j.floor = true, true, m.ledgerNext
	m.rehold(k)
	m.handIn(k)
}

func (m *Machine) handIn(k *key) {
	m.enter(k, committing)
	var recorded []time.Time
	it := k.head
	for range len(k.job.commit.Earlier) + 1 {
		if !it.released { // which has waited for a person
			recorded = append(recorded, it.record.Timestamp)
		}
		it = it.next
	}
	m.emit(Commit{Commit: k.job.commit, Recorded: recorded})
}
