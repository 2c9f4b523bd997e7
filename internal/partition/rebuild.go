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

// dropGone passes entries that the row covers, and those whose observation the log has lost, which a later one or the frontier
// shows: nothing can rebuild their state.
func (m *Machine) dropGone(k *key) {
	if len(m.rebuild) == 0 || !k.loaded {
		return
	}
	next := m.tracker.frontier
	if k.head != nil && !k.head.released && k.head.poison == nil {
		next = max(next, k.head.record.Offset)
	}
	for entries := m.rebuild[k.name]; len(entries) > 0; entries = m.rebuild[k.name] {
		e := &entries[0].Entry
		switch {
		case k.covers(m.revision(e.Offsets[len(e.Offsets)-1])):
			m.popRebuild(k)
			continue
		case e.Offsets[0] >= next:
			return
		}
		m.isRebuilt(k, commit.Plan{}, fmt.Errorf("offset %d is no longer in the log", e.Offsets[0]))
	}
}

// findGone reads the rows of keys that have nothing in hand and whose published observations the frontier has passed: the log has
// lost them, so no record will bring the key here.
func (m *Machine) findGone() {
	if len(m.rebuild) == 0 || m.draining {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(m.rebuild)) {
		if m.rebuild[name][0].Entry.Offsets[0] >= m.tracker.frontier {
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
