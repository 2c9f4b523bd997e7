package partition

// deadHold is the floor that a dead letter holds until the frontier has passed it: nothing but its ledger entry
// and the frontier speak for it.
type deadHold struct {
	floor int64
	at    int
}

// floor gives the ledger floor: no entry below it is needed by a recovery from the frontier of the same write.
//
// An entry is needed while its revision is in a prepared row only, or published and not persisted, or, having no row, while it is not below the
// frontier. Such an entry stands at or above the position that follows the highest own one known when its commit
// was handed in; so that is what each holds, and with nothing outstanding the floor follows the highest own
// position. The ledger's end is never asked: an entry of ours may land there later.
func (m *Machine) floor() int64 { return max(m.bound(), m.written.LedgerFloor) }

func (m *Machine) bound() int64 {
	f := m.ledgerNext
	if k, ok := m.holds.top(); ok {
		f = min(f, k.hold)
	}
	if d, ok := m.deadHolds.top(); ok {
		f = min(f, d.floor)
	}
	if m.doneHighest >= m.tracker.frontier || len(m.rebuild) > 0 {
		f = min(f, m.startFloor)
	}
	return f
}

// rehold sets the floor that a key holds by what is outstanding for it.
func (m *Machine) rehold(k *key) {
	const none = int64(-1)
	hold := none
	lower := func(floor int64) {
		if hold == none || floor < hold {
			hold = floor
		}
	}
	// A dead letter's hold goes over to deadHolds when it is published.
	if k.job != nil && k.job.composed {
		lower(k.job.floor)
	}
	if k.published != nil {
		lower(k.published.floor)
	}
	if k.dirty != nil {
		lower(k.dirty.waiting[0].floor) // of the first one: the later ones stand above (H4)
	}
	if k.foreign >= 0 {
		lower(k.foreign)
	}
	if hold == none {
		m.holds.remove(k)
		return
	}
	k.hold = hold
	m.holds.fix(k)
}

func (m *Machine) holdDead(offset, floor int64) {
	if offset < m.tracker.frontier {
		return
	}
	d := &deadHold{floor: floor, at: -1}
	m.deadLetters[offset] = d
	m.deadHolds.fix(d)
}

// releaseDead is called when the frontier passes a dead letter.
func (m *Machine) releaseDead(offset int64) {
	if d := m.deadLetters[offset]; d != nil {
		m.deadHolds.remove(d)
		delete(m.deadLetters, offset)
	}
}

// landed notes the ledger position of a commit.
func (m *Machine) landed(position int64) {
	if position >= m.ledgerNext {
		m.ledgerNext = position + 1
	}
}
