package partition

import (
	"errors"
	"fmt"

	"milepost/internal/commit"
	"milepost/internal/stream"
)

// arrived takes records from the fetch, or spilled ones that were asked for again.
func (m *Machine) arrived(in Arrived) {
	if in.Refetched {
		m.refetched(in)
		return
	}
	// From the first moment of a drain nothing is taken in; the next owner reads it.
	for i := range in.Records {
		if m.draining || m.ended {
			return
		}
		m.offer(&in.Records[i], false)
	}
}

// offer gives one delivery its verdict (A3).
func (m *Machine) offer(r *stream.Record, again bool) {
	m.stats.Offered++
	switch m.tracker.look(r.Offset) {
	case passed:
		m.suppress(BelowFrontier)
	case isLost, isPublic, isDone, isDeadLetter:
		m.suppress(Covered)
	case inHand:
		// A second delivery of an offset in hand is dropped where it stands; the first alone completes it.
		m.deferred(Duplicate)
		m.stats.Coalesced++
	case isSpilled:
		m.admit(r, again)
	case unseen:
		if r.Offset < m.tracker.next {
			// What a higher delivery proved to be a gap was none: offsets were skipped before, and the frontier
			// may have passed others of them. Going on would lose them without a word.
			m.stop(fmt.Errorf("partition %s: offset %d came after %d, skipped at first", r.Partition, r.Offset, m.tracker.next-1))
			return
		}
		m.findLost(r)
		m.tracker.deliver(r.Offset, r.LeaderEpoch, m.now)
		if _, ok := m.done[r.Offset]; ok {
			delete(m.done, r.Offset)
			m.suppress(Covered)
			m.endUndecided(r.Offset)
			return
		}
		m.admit(r, again)
	}
}

// admit decodes a record that is not done and queues it, completes it or spills it.
func (m *Machine) admit(r *stream.Record, again bool) {
	it := m.decode(r)
	it.again = again
	name := it.obs.Key
	if it.poison != nil {
		name = stream.Key(r.Key)
	}
	if owner, ok := m.owed[r.Offset]; ok && (it.poison != nil || name != owner) {
		// It is published, so it is neither a dead letter nor another key's: what it made cannot be made again.
		m.suppress(Covered)
		if k := m.keys[owner]; k != nil {
			m.unspill(k, r.Offset)
		}
		m.endUndecided(r.Offset)
		return
	}
	k := m.at(name, r.Offset)
	if it.poison == nil && k.covers(it.obs.Identity.Revision) {
		m.suppress(Covered)
		m.unspill(k, r.Offset)
		m.complete(r.Offset, isDone)
		return
	}
	if !m.hasRoom(k, r.Offset, again) {
		m.deferred(Capacity)
		m.spill(k, r.Offset, it.poison != nil)
		return
	}
	m.unspill(k, r.Offset)
	m.tracker.set(r.Offset, inHand)
	m.queue(k, it)
}

// decode asks the workload; whatever it says, identity and record are the machine's.
func (m *Machine) decode(r *stream.Record) *item {
	it := &item{record: *r, size: r.Size()}
	var obs Observation
	var err error
	if r.Unreadable != "" {
		err = &commit.PoisonError{Reason: unreadable, Detail: r.Unreadable}
	} else if obs, err = m.work.Decode(&it.record); err == nil && obs.Key == "" {
		err = &commit.PoisonError{Reason: missingKey, Detail: "the observation has no key"}
	}
	if err != nil && !errors.As(err, &it.poison) {
		it.poison = &commit.PoisonError{Reason: undecodable, Detail: err.Error()}
	}
	it.obs = obs
	it.obs.Identity = m.identity(r)
	it.obs.Record = &it.record
	return it
}

// hasRoom says whether a record may be queued. While a key has spilled offsets its later ones spill too: order.
func (m *Machine) hasRoom(k *key, offset int64, again bool) bool {
	if len(k.spill) > 0 && k.spill[0].offset != offset {
		return false
	}
	if k.queued >= m.cfg.KeyQueue {
		return false
	}
	return again || (m.records < 2*m.cfg.WindowRecords && m.bytes < 2*m.cfg.WindowBytes)
}

// queue puts a record in hand.
func (m *Machine) queue(k *key, it *item) {
	m.touch(k)
	m.records++
	m.bytes += it.size
	if it.again {
		m.again++
	}
	k.push(it)
	if it.poison != nil {
		m.poisoned(it.poison)
		it.counted = true
	} else if k.loaded {
		m.verdict(k, it)
	}
	if k.phase == idle {
		m.wake(k)
	}
}

// verdict counts what a queued record turned out to be once its key's row is known, so that each delivery moves
// exactly one counter (A17).
func (m *Machine) verdict(k *key, it *item) {
	if it.counted || k.errand != nil && k.errand.begun { // an errand's end says
		return
	}
	it.counted = true
	if k.quarantined {
		m.stats.SetAside++
	} else {
		m.stats.Queued++
	}
}

// finishHeads lets a key's head and those behind it go: they are done together.
func (m *Machine) finishHeads(k *key, n int, as mark) {
	for range n {
		m.finishHead(k, as)
	}
}

// finishHead lets a key's head go: it is done.
func (m *Machine) finishHead(k *key, as mark) {
	it := k.pop()
	m.records--
	m.bytes -= it.size
	if it.again {
		m.again--
	}
	if !it.released {
		m.complete(it.record.Offset, as)
	}
	m.wantSpilled(k)
}

// regulate pauses the fetch when the window is full or the frontier is too far behind, and resumes it at half.
func (m *Machine) regulate() {
	ahead := m.tracker.next - m.tracker.frontier
	if len(m.owing) > 0 {
		ahead = 0 // an entry that holds the frontier may wait for them; a former owner came no further than its own bound
	}
	if !m.paused {
		if m.records >= m.cfg.WindowRecords || m.bytes >= m.cfg.WindowBytes || ahead >= m.cfg.MaxAhead {
			m.paused = true
			m.emit(Pause{})
		}
		return
	}
	if m.records <= m.cfg.WindowRecords/2 && m.bytes <= m.cfg.WindowBytes/2 && ahead <= m.cfg.MaxAhead/2 {
		m.paused = false
		m.emit(Resume{})
	}
}
