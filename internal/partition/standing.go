package partition

import (
	"maps"
	"slices"

	"milepost/internal/commit"
	"milepost/internal/stream"
)

// stoodUp lets go of a prepared commit of an earlier owner once its row is read and has it no more: it was published and promoted, put
// aside or given up.
func (m *Machine) stoodUp(k *key, row *commit.Restored) {
	offset, ok := m.standing[k.name]
	if !ok || row.Prepared != nil && row.Prepared.Revision == m.revision(offset) {
		return
	}
	if m.tracker.look(offset) == isLost {
		m.complete(offset, isDone)
	}
	m.standsNoMore(offset)
}

// standsNoMore forgets an offset's prepared commit: it is done, or an observation like any other.
func (m *Machine) standsNoMore(offset int64) {
	if name, ok := m.owed[offset]; ok && len(m.standing) > 0 {
		if at, ok := m.standing[name]; ok && at == offset {
			delete(m.standing, name)
			delete(m.owed, offset)
		}
	}
}

// findStanding brings keys here whose prepared commit's observation is lost: their row says what became of it. One that nobody can
// publish is put aside without the record, so that it is never listed again.
func (m *Machine) findStanding() {
	if len(m.standing) == 0 || m.draining {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(m.standing)) {
		offset := m.standing[name]
		if m.tracker.look(offset) != isLost {
			continue
		}
		switch k := m.at(name, 0); {
		case k.phase != idle || len(k.spill) > 0:
		case !k.loaded:
			k.gone = true
			m.wake(k)
		case k.quarantined:
			it := &item{record: stream.Record{Partition: m.tenure.Partition, Offset: offset, Timestamp: m.now}}
			it.obs = Observation{Key: name, Identity: m.identity(&it.record), Record: &it.record}
			it.counted = true
			m.tracker.set(offset, inHand)
			m.queue(k, it)
		}
	}
}
