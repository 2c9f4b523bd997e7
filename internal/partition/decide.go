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
		k.sticky = &sticky{replica: in.Replica, revision: in.Revision}
	}
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

// decide plans the head's decision and hands the commit in.
func (m *Machine) decide(k *key) {
	j, obs := k.job, k.head.obs
	m.timers.remove(k)
	plan, err := j.work.Plan(m.state(k), obs, j.decision)
	if err == nil && plan.Next.Revision != obs.Identity.Revision {
		err = fmt.Errorf("planned revision %s is not the observation's", plan.Next.Revision)
	}
	if j.rebuild && err == nil {
		m.rebuilt(k, plan, nil)
		return
	}
	if err != nil {
		m.quarantine(k, fmt.Errorf("plan %s: %w: %w", obs.Identity.Revision, commit.ErrPermanent, err))
		return
	}
	j.commit = commit.NewCommit(m.tenure, k.name, k.checkpoint.Revision, plan)
	// What is released from quarantine is prepared in either mode: its row there leaves when it becomes current (H10).
	j.commit.Deferred = m.cfg.Deferred && !k.head.released
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
