package partition

import (
	"errors"

	"milepost/internal/commit"
	"milepost/internal/stream"
)

// readRows reads the rows of keys that wait for theirs, many a query; while the bound of queries is out, others gather.
func (m *Machine) readRows() {
	for m.restores < m.cfg.Restores && m.rows.len() > 0 {
		var names []stream.Key
		for m.rows.len() > 0 && len(names) < m.cfg.RestoreBatch {
			alone := (*m.rows.at(0)).alone
			if alone && len(names) > 0 {
				break
			}
			k, _ := m.rows.pop()
			m.enter(k, restoring)
			names = append(names, k.name)
			if alone {
				break
			}
		}
		m.restores++
		m.emit(Restore{Keys: names})
	}
}

// errNoRow is what a key meets whose row a restore did not answer for.
var errNoRow = errors.New("the restore did not answer for the key")

// restored takes the rows of a restore, or the error that all of its keys met.
func (m *Machine) restored(in Restored) {
	m.restores--
	if m.draining {
		return
	}
	if in.Err != nil {
		m.restoreFailed(in)
		return
	}
	rows := make(map[stream.Key]*commit.Restored, len(in.Rows))
	for i := range in.Rows {
		rows[in.Rows[i].Key] = &in.Rows[i]
	}
	for _, name := range in.Keys {
		k := m.keys[name]
		if k == nil || k.phase != restoring {
			continue
		}
		if row := rows[name]; row != nil {
			m.load(k, row)
			continue
		}
		m.warn("restore failed", k, errNoRow)
		m.backOff(k, restoreAgain)
	}
}

// restoreFailed blocks the keys of a failed read. An error that no retry can help is one key's: each is read by
// itself to find out whose.
func (m *Machine) restoreFailed(in Restored) {
	if m.fenced(in.Err) {
		return
	}
	permanent := commit.ClassOf(in.Err) == commit.Permanent
	warned := false
	for _, name := range in.Keys {
		k := m.keys[name]
		switch {
		case k == nil || k.phase != restoring:
		case permanent && len(in.Keys) == 1:
			// Nothing can be known of the row: nothing is covered, and a quarantined key commits nothing over it.
			k.checkpoint, k.loaded, k.inherits = commit.Checkpoint{}, true, true
			m.quarantine(k, in.Err)
		case permanent:
			k.alone = true
			m.wake(k)
		default:
			if !warned && k.attempts == 0 {
				m.warn("restore failed", nil, in.Err)
				warned = true
			}
			m.backOff(k, restoreAgain)
		}
	}
}

// load makes a row the key's checkpoint and lets its observations go on in order.
func (m *Machine) load(k *key, row *commit.Restored) {
	k.alone = false
	k.inherits = k.inherits || row.Quarantined && k.setAside == 0
	m.stoodUp(k, row)
	own := row.Prepared != nil && k.published != nil && row.Prepared.ID == k.published.promotion.ID
	if row.Quarantined && !k.quarantined {
		m.markQuarantined(k)
		k.cause = &cause{class: "quarantined", reason: "follows a quarantined observation of its key"}
	}
	switch {
	case own:
		// Published by us, not promoted yet: it is the base of what comes next.
		k.checkpoint, k.expired = row.Prepared.Next, false
	case row.Prepared != nil && (!k.quarantined || k.head != nil && k.head.released):
		m.standsThere(k)
		return
	default:
		// The prepared commit of a quarantined key stays as it is: evidence.
		k.checkpoint, k.expired = row.Checkpoint, row.Expired
		k.foreign = -1
	}
	k.discarded = row.Discarded
	k.loaded, k.gone = true, false
	m.dropGone(k)
	m.rehold(k)
	m.dropCovered(k)
	for k.head != nil && k.head.poison == nil && k.covers(k.head.obs.Identity.Revision) {
		m.headCovered(k)
	}
	for it := k.head; it != nil; it = it.next {
		// What is covered and stands behind a poison record has its verdict when its turn comes.
		if !k.covers(it.obs.Identity.Revision) {
			m.verdict(k, it)
		}
	}
	m.wake(k)
}

// headCovered completes a head that the restored checkpoint covers. It was our own commit if that is the revision it
// made: finished by a retry or a recovery it counts as committed (A12).
func (m *Machine) headCovered(k *key) {
	it := k.head
	if j := k.job; j != nil {
		if j.attempt && j.commit.Revision == k.checkpoint.Revision && j.isOf(it) {
			m.countCommit(j)
		}
		m.endJob(j)
		k.job = nil
		m.rehold(k)
	}
	k.attempts = 0
	if !it.counted {
		it.counted = true
		m.suppress(Covered)
	}
	m.finishHead(k, isDone)
}

// isOf reports whether the job's commit begins with an observation.
func (j *job) isOf(it *item) bool {
	if len(j.commit.Earlier) > 0 {
		return j.commit.Earlier[0] == it.record.Offset
	}
	return j.commit.Revision == it.obs.Identity.Revision
}

// standsThere is met when another prepared commit stands in the key's row: it is never overwritten, it is finished first.
func (m *Machine) standsThere(k *key) {
	if k.foreign < 0 {
		k.foreign = m.written.LedgerFloor
	}
	m.rehold(k)
	m.finish(k)
}

func (m *Machine) finish(k *key) {
	m.enter(k, finishing)
	m.emit(Finish{Key: k.name})
}

// finished goes on with the key's own row: whether its head is done, the row says and not the finishing (I11).
func (m *Machine) finished(in Finished) {
	k := m.keys[in.Key]
	if k != nil && k.dirty != nil && k.dirty.finishing {
		m.persistFinished(k, in.Err)
		return
	}
	if k == nil || k.phase != finishing {
		return
	}
	if in.Err == nil {
		k.foreign, k.loaded = -1, false
		m.rehold(k)
		m.wake(k)
		return
	}
	if m.fenced(in.Err) {
		return
	}
	switch commit.ClassOf(in.Err) {
	case commit.Permanent, commit.Poison:
		// A prepared commit that nobody can publish stays as evidence; its key stops instead of spinning.
		m.quarantine(k, in.Err)
	case commit.Conflict, commit.Busy, commit.Transient, commit.Canceled, commit.Fenced:
		if k.attempts == 0 {
			m.warn("prepared commit could not be finished", k, in.Err)
		}
		m.backOff(k, finishAgain)
	}
}
