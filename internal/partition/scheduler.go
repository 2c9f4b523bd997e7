package partition

import "time"

// maxFinishing bounds the foreign prepared commits that are being finished at once, however many keys failed.
const maxFinishing = 64

// wake moves a key that nothing waits for any more to where its next step is taken; without observations it rests.
func (m *Machine) wake(k *key) {
	m.timers.remove(k)
	if m.goOnErrand(k) {
		return
	}
	if k.head == nil && (!k.gone || k.loaded) {
		m.enter(k, idle)
		m.wantSpilled(k)
		return
	}
	m.enter(k, ready)
	m.wantSpilled(k)
	if k.needsRow() {
		m.rows.push(k)
	} else {
		m.turn.push(k)
	}
}

// pump does what has become possible: jobs whose credit has come, jobs in the order in which their keys became ready, then reads.
func (m *Machine) pump() {
	if m.draining {
		return
	}
	for m.welcome(); m.jobs < m.cfg.Jobs; m.welcome() {
		if k, ok := m.nextAdmitted(); ok {
			m.begin(k)
			continue
		}
		k, ok := m.turn.pop()
		if !ok {
			break
		}
		m.next(k)
	}
	m.readRows()
	m.persistDue()
	m.prove()
	m.askSpilled()
	m.regulate()
}

// next takes the head of a ready key one step on.
func (m *Machine) next(k *key) {
	m.dropGone(k)
	switch {
	case m.mustSettle(k):
		m.settle(k)
	case k.errand != nil && !k.errand.begun && m.goOnErrand(k):
	case k.head.poison != nil:
		m.deadLetter(k)
	case k.covers(k.head.obs.Identity.Revision):
		// It stood behind a poison record when the row was read.
		m.headCovered(k)
		m.wake(k)
	case m.skip(k):
	case m.rebuilds(k):
		m.open(k)
	case k.quarantined && (!k.head.released || k.errand == nil):
		m.putAside(k)
	default:
		m.open(k)
	}
}

// block lets a key wait for its timer.
func (m *Machine) block(k *key, then retry, due time.Time) {
	m.enter(k, blocked)
	k.retry = then
	m.setTimer(k, due)
	m.stats.Blocked++
}

// backOff blocks a key after a failure: from the first delay, doubling to the largest, then at the blocked retry.
func (m *Machine) backOff(k *key, then retry) {
	m.block(k, then, m.now.Add(m.delay(k.attempts)))
	k.attempts++
}

// delay gives the wait after a number of failures in a row.
func (m *Machine) delay(failures int) time.Duration {
	d := m.cfg.CommitRetryMin
	for range failures {
		if d >= m.cfg.CommitRetryMax {
			return m.cfg.BlockedRetry
		}
		d = min(2*d, m.cfg.CommitRetryMax)
	}
	return d
}

func (m *Machine) setTimer(k *key, due time.Time) {
	k.due = due
	m.timers.fix(k)
}

// expire does what a key's timer was set for.
func (m *Machine) expire(k *key) {
	if k.phase == solving {
		if m.isStale(k) {
			m.openAgain(k)
			return
		}
		m.resend(k)
		return
	}
	if k.phase != blocked {
		return
	}
	if m.draining && (k.retry != commitAgain && k.retry != finishAgain || !m.now.Before(m.deadline)) {
		return
	}
	if k.retry == finishAgain && m.count[finishing] >= maxFinishing {
		m.setTimer(k, m.now.Add(m.cfg.Tick))
		return
	}
	m.stats.Retried++
	switch k.retry {
	case commitAgain:
		m.handIn(k)
	case finishAgain:
		m.finish(k)
	case restoreAgain, setAsideAgain, errandAgain:
		m.wake(k)
	}
}

// startJob takes a place of Config.Jobs for a key's job, endJob gives it back, with the job's credit; both on every path once.
func (m *Machine) startJob(j *job) {
	if !j.counted {
		j.counted = true
		m.jobs++
	}
}

func (m *Machine) endJob(j *job) {
	if j == nil {
		return
	}
	if j.credit != nil {
		m.share.giveBack(j.credit)
		j.credit = nil
	}
	if j.counted {
		j.counted = false
		m.jobs--
	}
}
