package partition

import (
	"errors"

	"milepost/internal/commit"
)

// quarantine stops one key for good: its failed observation and all that follow are written to the quarantine table
// and then count as done, so that the frontier may pass them.
func (m *Machine) quarantine(k *key, err error) {
	if k.job != nil && k.job.rebuild {
		m.rebuilt(k, commit.Plan{}, err) // it is published; what cannot be rebuilt is a reset to come
		return
	}
	if !k.quarantined {
		m.markQuarantined(k)
		m.stats.QuarantinedKeys++
	}
	k.cause = &cause{class: commit.ClassOf(err).String(), reason: err.Error()}
	m.errandFailed(k, err)
	m.warn("key quarantined", k, err)
	m.endJob(k.job)
	k.job = nil
	// A foreign prepared commit stays in the row as evidence; recovery knows it by the quarantine.
	k.foreign = -1
	m.rehold(k)
	for it := k.head; it != nil && k.loaded; it = it.next {
		m.verdict(k, it)
	}
	if it := k.head; it != nil && it.poison != nil {
		// Its dead letter cannot be published: the quarantine table takes it, and what neither takes waits for a person.
		it.poison = nil
		if it.refused {
			m.backOff(k, setAsideAgain)
			return
		}
	}
	k.attempts = 0
	m.wake(k)
}

func (m *Machine) markQuarantined(k *key) {
	k.quarantined = true
	m.quarantined++
}

// putAside writes the observation at the head of a quarantined key. One at a time: what stands in quarantine must have no
// hole, for a discard ends at the last of it and counts everything of the key before that as discarded.
func (m *Machine) putAside(k *key) {
	it := k.head
	// A released one has its row; this moves what was prepared for it there. So may have any of a key that was found in quarantine: there
	// the store alone knows whether it needs room, and a dead letter of what is released later would be a second effect.
	if !it.released && !k.inherits && k.setAside >= m.cfg.QuarantineBound {
		m.refuseAside(k)
		m.deadLetter(k)
		return
	}
	m.enter(k, settingAside)
	m.emit(Quarantine{Rows: []commit.Quarantined{{
		Tenure: m.tenure, Key: k.name, Revision: it.obs.Identity.Revision,
		Class: k.cause.class, Reason: k.cause.reason, Record: it.record, At: m.now,
	}}})
}

// refuseAside makes a head that the quarantine has no room for a dead letter.
func (m *Machine) refuseAside(k *key) {
	k.head.refused = true
	k.head.poison = &commit.PoisonError{Reason: "quarantine_full", Detail: "the quarantine has no room for the observation"}
}

// quarantineSaved counts the written observations done, in order up to the first that was not written.
func (m *Machine) quarantineSaved(in QuarantineSaved) {
	if len(in.Rows) == 0 {
		return
	}
	for _, err := range in.Errs {
		if err != nil && m.fenced(err) {
			return // whatever the others say (I13)
		}
	}
	k := m.find(in.Rows[0].Key, in.Rows[0].Revision.Offset)
	if k == nil || k.phase != settingAside {
		return
	}
	err := in.Err
	for i := range in.Rows {
		if err == nil && i < len(in.Errs) {
			err = in.Errs[i]
		}
		if err != nil || k.head == nil || k.head.obs.Identity.Revision != in.Rows[i].Revision {
			break
		}
		k.attempts = 0
		if !k.head.released {
			k.setAside++
			m.stats.QuarantinedRecords++
		}
		m.finishHead(k, isDone)
	}
	if err == nil {
		m.wake(k)
		return
	}
	if m.fenced(err) {
		return
	}
	if errors.Is(err, commit.ErrQuarantineFull) && k.head != nil {
		m.refuseAside(k)
		m.wake(k)
		return
	}
	if k.attempts == 0 {
		m.warn("quarantine write failed", k, err)
	}
	m.backOff(k, setAsideAgain)
}
