package partition

// drain stops the intake and every new job; jobs without an answer are given up (A15).
func (m *Machine) drain() {
	if m.draining {
		return
	}
	m.draining = true
	m.deadline = m.now.Add(m.cfg.DrainGrace)
	for _, k := range m.keys {
		for it := k.head; it != nil; it = it.next {
			m.verdict(k, it)
		}
		if k.phase == solving || k.phase == held {
			m.endJob(k.job)
			k.job = nil
			m.timers.remove(k)
			m.enter(k, ready)
		}
	}
}

// goOnDraining ends a drain step by step: running commits, promotions, the last frontier, the report. What takes
// longer than the grace is left to the next owner's recovery.
func (m *Machine) goOnDraining() {
	if !m.draining {
		return
	}
	if m.now.Before(m.deadline) {
		m.persistDue()
		m.prove()
		if m.dirty > 0 {
			return
		}
		if m.jobs > 0 || m.count[finishing] > 0 || m.count[settingAside] > 0 || m.promoting > 0 || m.leavesPrepared() {
			return
		}
		if m.unpromoted > 0 {
			if !m.promoteHeld {
				m.promoteAll()
			}
			return
		}
		// The last write does not wait for one that is out: a lower one that lands later changes nothing.
		if !m.final {
			if !m.saveHeld {
				m.final = true
				m.writeFrontier()
			}
			return
		}
		if m.saving {
			return
		}
	}
	m.ended = true
	m.emit(Drained{Report: m.report()})
}

// leavesPrepared reports whether a foreign prepared commit is still to be finished. It looks at the keys that hold the
// floor alone, when nothing else is under way.
func (m *Machine) leavesPrepared() bool {
	for _, k := range m.holds.members {
		if k.phase == blocked && k.retry == finishAgain {
			return true
		}
	}
	return false
}

func (m *Machine) report() Report {
	r := Report{Frontier: m.frontier(), Prepared: m.unpromoted, Dirty: m.dirty, Unfinished: m.records + m.spilled, Stats: m.stats, Reasons: m.reasons}
	for _, k := range m.keys {
		if k.job != nil && k.job.composed && !k.job.commit.NoRow || k.foreign >= 0 {
			r.Prepared++
		}
	}
	return r
}
