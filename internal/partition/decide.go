package partition

import (
	"fmt"
	"time"

	"milepost/internal/commit"
)

// result judges an answer. It decides only if it is the active job's and nothing began to commit (I8); all
// others are counted and dropped, whoever sent them (A10).
func (m *Machine) result(in Result) {
	if m.draining {
		return
	}
	k := m.keys[in.Key]
	if k == nil || k.phase != solving || k.job.id != in.Job || k.head.obs.Identity.Revision != in.Revision {
		m.reject(Obsolete)
		return
	}
	if in.Err != nil {
		m.solverFailed(k, in.Err)
		return
	}
	if in.Decision.Kind < Solved || in.Decision.Kind > Reset {
		m.reject(Malformed)
		return
	}
	m.stats.Accepted++
	k.attempts = 0
	k.job.decision, k.job.decided = in.Decision, true
	m.decide(k)
}

// solverFailed takes a job's error: one that no retry can help stops the key, any other is asked again.
func (m *Machine) solverFailed(k *key, err error) {
	switch commit.ClassOf(err) {
	case commit.Permanent, commit.Poison:
		m.quarantine(k, err)
	case commit.Fenced:
		m.fenced(err)
	case commit.Transient, commit.Canceled, commit.Conflict, commit.Busy:
		if k.attempts == 0 {
			m.warn("solver failed", k, err)
		}
		m.setTimer(k, m.now.Add(m.delay(k.attempts)))
		k.attempts++
	}
}

// decide plans the head's decision and hands the commit in.
func (m *Machine) decide(k *key) {
	j, obs := k.job, k.head.obs
	m.timers.remove(k)
	plan, err := m.work.Plan(m.state(k), obs, j.decision)
	if err == nil && plan.Next.Revision != obs.Identity.Revision {
		err = fmt.Errorf("planned revision %s is not the observation's", plan.Next.Revision)
	}
	if err != nil {
		m.quarantine(k, fmt.Errorf("plan %s: %w: %w", obs.Identity.Revision, commit.ErrPermanent, err))
		return
	}
	j.commit = commit.NewCommit(m.tenure, k.name, k.checkpoint.Revision, plan)
	j.terminal, j.reset = plan.Terminal, plan.Reset
	m.compose(k)
}

// deadLetter commits the head, a poison record, as its dead letter.
func (m *Machine) deadLetter(k *key) {
	it := k.head
	j := &job{}
	k.job = j
	m.startJob(j)
	out := m.work.DeadLetter(m.identity(&it.record), m.tenure.Epoch, &it.record, it.poison)
	j.commit = commit.NewDeadLetter(m.tenure, k.name, m.revision(it.record.Offset), out)
	m.compose(k)
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
	recorded := k.head.record.Timestamp
	if k.head.released {
		recorded = time.Time{} // it has waited for a person
	}
	m.emit(Commit{Commit: k.job.commit, Recorded: recorded})
}
