package partition

import (
	"milepost/internal/commit"
)

// committed takes the fate of a commit.
func (m *Machine) committed(in Committed) {
	k := m.find(in.Key, in.Revision.Offset)
	if k == nil || k.phase != committing || k.job.commit.ID != in.ID || k.job.commit.Revision != in.Revision {
		return
	}
	if in.Err == nil {
		m.isPublished(k, in.Position)
		return
	}
	switch commit.ClassOf(in.Err) {
	case commit.Fenced:
		m.fenced(in.Err)
	case commit.Conflict:
		m.readAgain(k, "stored revision is not the base", in.Err)
	case commit.Busy:
		// The row is read again first: what stands there may have been published by us, and to finish that would
		// publish it twice.
		m.readAgain(k, "another prepared commit stands in the key's row", in.Err)
	case commit.Permanent, commit.Poison:
		if !m.narrow(k, in.Err) {
			m.quarantine(k, in.Err)
		}
	case commit.Transient, commit.Canceled:
		if k.attempts == 0 {
			m.warn("commit blocked", k, in.Err)
		}
		m.backOff(k, commitAgain)
	}
}

// isPublished makes a commit the key's checkpoint: only now, with its outputs committed in Kafka (I6).
func (m *Machine) isPublished(k *key, position int64) {
	j := k.job
	m.landed(position)
	m.endJob(j)
	k.job, k.attempts = nil, 0
	if j.commit.NoRow {
		m.holdDead(j.commit.Revision.Offset, j.floor)
		m.rehold(k)
		m.finishHead(k, isDeadLetter)
		m.wake(k)
		return
	}
	m.countCommit(j)
	n := len(j.commit.Earlier) + 1
	m.measure(j, k.head, n)
	if j.commit.Deferred {
		m.makeDirty(k, &j.commit, j.commit.Offsets(), j.floor)
		m.finishHeads(k, n, isPublic)
		m.wake(k)
		return
	}
	k.checkpoint, k.expired = j.commit.Next, false
	if k.published == nil {
		m.unpromoted++
	}
	// The commit's prepare has folded in the one before, so that one needs no promotion and no ledger entry any more.
	k.published = &published{
		promotion: commit.Promotion{Tenure: m.tenure, Key: k.name, Revision: j.commit.Revision, ID: j.commit.ID},
		floor:     j.floor,
	}
	m.rehold(k)
	if k.head.released {
		m.isReleased(k)
		return
	}
	m.promoteLater(k, m.cfg.PromoteAfter)
	m.finishHeads(k, n, isDone)
	m.wake(k)
}

// readAgain reads the row after a refused swap: what is stored covers the head, or the head is judged anew. The first
// time at once; a key that keeps losing its swaps backs off.
func (m *Machine) readAgain(k *key, message string, err error) {
	m.stats.Conflicts++
	m.warn(message, k, err)
	m.rollBack(k)
	if k.attempts > 0 {
		m.backOff(k, restoreAgain)
		return
	}
	k.attempts++
	m.wake(k)
}

// rollBack puts everything back that a failed commit had taken: the key is as if its head had not been tried, but for
// the result, which is kept and judged against the new job.
func (m *Machine) rollBack(k *key) {
	j := k.job
	j.composed = false
	m.endJob(j)
	// What is published and not persisted is newer than the row: it is decided again from memory (A13).
	k.loaded = k.dirty != nil
	m.rehold(k)
}
