package partition

import (
	"cmp"
	"slices"
)

// spilled is a record that was let go of for want of room: its offset is kept, and it is fetched again.
type spilled struct {
	offset int64
	poison bool
}

// asked is one offset of the refetch that is out.
type asked struct {
	offset int64
	key    *key
}

// spill lets go of a record. One that is spilled already stays where it is.
func (m *Machine) spill(k *key, offset int64, poison bool) {
	m.touch(k)
	if m.tracker.look(offset) == isSpilled {
		return
	}
	m.tracker.set(offset, isSpilled)
	if k.listed {
		m.idle.remove(k) // it stays until they are done
	}
	k.spill = append(k.spill, spilled{offset: offset, poison: poison})
	m.spilled++
	m.stats.Spilled++
	m.wantSpilled(k)
}

// unspill forgets that an offset was spilled.
func (m *Machine) unspill(k *key, offset int64) {
	i, ok := slices.BinarySearchFunc(k.spill, offset, func(s spilled, o int64) int { return cmp.Compare(s.offset, o) })
	if !ok {
		return
	}
	m.touch(k)
	if i == 0 {
		k.spill = k.spill[1:]
	} else {
		k.spill = slices.Delete(k.spill, i, i+1)
	}
	if len(k.spill) == 0 {
		k.spill = nil
	}
	m.spilled--
}

// dropCovered completes the spilled offsets that a restored checkpoint covers without fetching them again. A
// poison one is fetched: no checkpoint speaks for it.
func (m *Machine) dropCovered(k *key) {
	kept := k.spill[:0]
	for _, s := range k.spill {
		if s.poison || !k.covers(m.revision(s.offset)) {
			kept = append(kept, s)
			continue
		}
		m.spilled--
		m.complete(s.offset, isDone)
	}
	k.spill = kept
	if len(kept) == 0 {
		k.spill = nil
	}
}

// wantSpilled queues a key for a refetch when half of its queue is free.
func (m *Machine) wantSpilled(k *key) {
	if len(k.spill) == 0 || k.thirsty || k.asked > 0 || k.phase == blocked || k.queued > m.cfg.KeyQueue/2 {
		return
	}
	k.thirsty = true
	m.thirsty.push(k)
}

// askSpilled asks for spilled offsets of keys that have room, one refetch at a time. It has its own reserved room,
// so that a full window, whose oldest offset may itself be spilled, cannot stop it.
func (m *Machine) askSpilled() {
	if m.refetch != nil || m.refetchHeld {
		return
	}
	room := m.cfg.RefetchRecords - m.again
	for room > 0 && m.thirsty.len() > 0 {
		k, _ := m.thirsty.pop()
		k.thirsty = false
		n := min(room, m.cfg.KeyQueue-k.queued, len(k.spill))
		if n <= 0 {
			continue
		}
		for _, s := range k.spill[:n] {
			m.refetch = append(m.refetch, asked{offset: s.offset, key: k})
		}
		k.asked = n
		room -= n
	}
	if m.refetch == nil {
		return
	}
	slices.SortFunc(m.refetch, func(a, b asked) int { return cmp.Compare(a.offset, b.offset) })
	offsets := make([]int64, 0, len(m.refetch))
	for _, a := range m.refetch {
		offsets = append(offsets, a.offset)
	}
	m.emit(Refetch{Offsets: offsets})
}

// refetched takes the answer of a refetch: records, offsets that the log no longer has, or an error. What is
// in none of them stays spilled and is asked for again.
func (m *Machine) refetched(in Arrived) {
	out := m.refetch
	m.refetch = nil
	for _, a := range out {
		a.key.asked = 0
	}
	if m.draining {
		for _, a := range out {
			m.rest(a.key)
		}
		return
	}
	if in.Err != nil {
		if m.fenced(in.Err) {
			return
		}
		m.warn("refetch failed", nil, in.Err)
		m.refetchHeld = true
	}
	if len(in.Records)+len(in.Missing) == 0 {
		m.refetchHeld = true
	}
	for _, offset := range in.Missing {
		i, ok := slices.BinarySearchFunc(out, offset, func(a asked, o int64) int { return cmp.Compare(a.offset, o) })
		if ok && m.tracker.look(offset) == isSpilled {
			m.unspill(out[i].key, offset)
			m.stats.Missing++
			m.endUndecided(offset)
		}
	}
	for i := range in.Records {
		if m.ended {
			return
		}
		m.offer(&in.Records[i], true)
	}
	for _, a := range out {
		m.wantSpilled(a.key)
		m.rest(a.key)
	}
}
