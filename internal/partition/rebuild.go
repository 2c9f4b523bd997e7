package partition

import (
	"fmt"
	"maps"
	"slices"

	"milepost/internal/commit"
	"milepost/internal/stream"
)

// rebuilds reports whether the key's head is published already and must be decided again to rebuild its state.
func (m *Machine) rebuilds(k *key) bool {
	if len(m.rebuild) == 0 || !k.loaded || k.head == nil || k.head.poison != nil || k.head.released {
		return false
	}
	entries := m.rebuild[k.name]
	return len(entries) > 0 && entries[0].Entry.Offsets[0] == k.head.record.Offset
}

// owe takes what recovery found published and in no row, and prepared and not published. Each of its offsets holds the frontier until a
// row has it, whether or not the log still has the observation: the next owner finds all of a key's entries or none, and nothing
// unpublished below the frontier (I3).
func (m *Machine) owe(s *Start) {
	m.rebuild, m.owed, m.standing = map[stream.Key][]commit.Rebuild{}, map[int64]stream.Key{}, map[stream.Key]int64{}
	for _, r := range s.Rebuild {
		m.rebuild[r.Entry.Key] = append(m.rebuild[r.Entry.Key], r)
		for _, offset := range r.Entry.Offsets {
			if offset >= s.Frontier.Next.Offset {
				m.owed[offset] = r.Entry.Key
			}
		}
	}
	for offset, name := range s.Standing {
		m.owed[offset], m.standing[name] = name, offset
	}
	m.owing = slices.Sorted(maps.Keys(m.owed))
}

// findLost notes the published offsets that a delivery skips: the log has lost them.
func (m *Machine) findLost(r *stream.Record) {
	for len(m.owing) > 0 && m.owing[0] <= r.Offset {
		offset := m.owing[0]
		m.owing = m.owing[1:]
		if _, ok := m.owed[offset]; ok && offset < r.Offset {
			m.tracker.deliver(offset, r.LeaderEpoch, m.now)
			m.tracker.set(offset, isLost)
		}
	}
}

// endUndecided completes a delivered offset that is not decided here. One that is published and in no row is only lost by that.
func (m *Machine) endUndecided(offset int64) {
	if _, ok := m.owed[offset]; ok {
		m.complete(offset, isLost)
		return
	}
	m.complete(offset, isDone)
}

// dropGone passes entries that the row covers, and those whose observation is lost: nothing can rebuild their state.
func (m *Machine) dropGone(k *key) {
	if len(m.rebuild) == 0 || !k.loaded {
		return
	}
	for entries := m.rebuild[k.name]; len(entries) > 0; entries = m.rebuild[k.name] {
		e := &entries[0].Entry
		switch {
		case k.covers(m.revision(e.Offsets[len(e.Offsets)-1])):
			m.popRebuild(k)
			m.endLost(e, isDone)
		case m.isGone(k, e.Offsets[0]):
			m.isRebuilt(k, commit.Plan{}, fmt.Errorf("offset %d can no longer be read", e.Offsets[0]))
			m.endLost(e, isPublic)
		default:
			return
		}
	}
}

// isGone reports whether an offset is lost and the next one of its key: nothing before it is in hand.
func (m *Machine) isGone(k *key, offset int64) bool {
	return m.tracker.look(offset) == isLost && (k.head == nil || k.head.released || k.head.record.Offset > offset)
}

// endLost says what has become of those of an entry's offsets that are lost; what is in hand says that itself.
func (m *Machine) endLost(e *commit.Entry, as mark) {
	for _, offset := range e.Offsets {
		if m.tracker.look(offset) == isLost {
			m.complete(offset, as)
		}
	}
}

// findGone reads the rows of keys that have nothing in hand and whose published observations are lost: no record will bring the
// key here.
func (m *Machine) findGone() {
	if len(m.rebuild) == 0 || m.draining {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(m.rebuild)) {
		if m.tracker.look(m.rebuild[name][0].Entry.Offsets[0]) != isLost {
			continue
		}
		switch k := m.at(name, 0); {
		case k.loaded:
			m.dropGone(k)
		case k.phase == idle:
			k.gone = true
			m.wake(k)
		}
	}
}

// rebuilt takes the decision about a published observation: the same as the published one, or not.
func (m *Machine) rebuilt(k *key, plan commit.Plan, err error) {
	m.timers.remove(k)
	m.endJob(k.job)
	k.job, k.attempts = nil, 0
	m.isRebuilt(k, plan, err)
	m.finishHead(k, isPublic)
	m.wake(k)
}

func (m *Machine) popRebuild(k *key) commit.Rebuild {
	entries := m.rebuild[k.name]
	if len(entries) == 1 {
		delete(m.rebuild, k.name)
	} else {
		m.rebuild[k.name] = entries[1:]
	}
	for _, offset := range entries[0].Entry.Offsets {
		delete(m.owed, offset)
	}
	return entries[0]
}

// isRebuilt makes what a published entry made the key's checkpoint, without publishing it again. Where it differs from what was published the
// state says so, and the next commit announces a reset; its segment is above any that was published (H6).
func (m *Machine) isRebuilt(k *key, plan commit.Plan, err error) {
	r := m.popRebuild(k)
	e := &r.Entry
	last := stream.Revision{Generation: e.TopicGeneration, Offset: e.Offsets[len(e.Offsets)-1]}
	m.stats.Rebuilt++
	if err == nil && (commit.OutputsDigest(plan.Outputs) != e.Digest || plan.Next.Segment != e.Segment) {
		err = fmt.Errorf("revision %s was published with other bytes", last)
	}
	if err != nil {
		m.stats.Diverged++
		k.sticky = nil // what a replica keeps is another state
		m.warn("rebuilt state differs from what was published", k, err)
		state := plan.Next.State
		if state == nil {
			state = k.checkpoint.State
		}
		plan = commit.Plan{Next: commit.Checkpoint{
			Revision: last, Segment: max(plan.Next.Segment, k.checkpoint.Segment, e.Segment), State: m.work.Diverged(state),
		}}
	}
	c := commit.NewCommit(m.tenure, k.name, k.checkpoint.Revision, plan)
	m.makeDirty(k, &c, e.Offsets, r.Position)
}
