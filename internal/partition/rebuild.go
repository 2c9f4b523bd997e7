package partition

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"milepost/internal/commit"
	"milepost/internal/stream"
)

// partial is the first entry of a key's rebuild, begun: its observations are decided again as they come to hand, in as many jobs as that takes,
// each over the state behind the ones before. Only the whole entry has a place in the row.
type partial struct {
	taken   int               // of its observations, from the first
	state   commit.Checkpoint // behind them
	outputs []commit.Output
	err     error // why it cannot be rebuilt; its other observations are taken without being decided
}

// taken is how many observations of the key's first entry are taken.
func (k *key) taken() int {
	if k.partial == nil {
		return 0
	}
	return k.partial.taken
}

// rebuilds reports whether the key's head is published already and must be decided again to rebuild its state.
func (m *Machine) rebuilds(k *key) bool {
	if len(m.rebuild) == 0 || !k.loaded || k.head == nil || k.head.poison != nil || k.head.released {
		return false
	}
	entries := m.rebuild[k.name]
	return len(entries) > 0 && entries[0].Entry.Offsets[k.taken()] == k.head.record.Offset
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
		case m.isGone(k, e.Offsets[k.taken()]):
			m.took(k, 1, commit.Plan{}, fmt.Errorf("offset %d can no longer be read", e.Offsets[k.taken()]))
		default:
			return
		}
	}
}

// isGone reports whether an offset is lost and the next one of its key: nothing before it is in hand.
func (m *Machine) isGone(k *key, offset int64) bool {
	return m.isUnread(offset) && (k.head == nil || k.head.released || k.head.record.Offset > offset)
}

// isUnread reports whether an offset never comes: the log has lost it, or an operator moved the frontier over it.
func (m *Machine) isUnread(offset int64) bool {
	mk := m.tracker.look(offset)
	return mk == isLost || mk == passed
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
		taken := 0
		if k := m.keys[name]; k != nil {
			taken = k.taken()
		}
		if !m.isUnread(m.rebuild[name][0].Entry.Offsets[taken]) {
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

// rebuilt takes the decision about published observations: the head and those behind it that the plan is of, or why the head has none.
func (m *Machine) rebuilt(k *key, plan commit.Plan, err error) {
	m.timers.remove(k)
	m.endJob(k.job)
	k.job, k.attempts = nil, 0
	n := len(plan.Earlier) + 1
	m.took(k, n, plan, err)
	m.finishHeads(k, n, isPublic)
	m.wake(k)
}

// skip takes the head without a decision: its entry cannot be rebuilt any more.
func (m *Machine) skip(k *key) bool {
	if k.partial == nil || k.partial.err == nil || !m.rebuilds(k) {
		return false
	}
	m.took(k, 1, commit.Plan{}, nil)
	m.finishHead(k, isPublic)
	m.wake(k)
	return true
}

// took notes that the next n observations of the key's first entry are taken, and what came of them; with the last one the entry is at its end.
func (m *Machine) took(k *key, n int, plan commit.Plan, err error) {
	if k.partial == nil {
		m.touch(k)
		if k.listed {
			m.idle.remove(k)
		}
		k.partial = &partial{}
	}
	p, e := k.partial, &m.rebuild[k.name][0].Entry
	for _, offset := range e.Offsets[p.taken : p.taken+n] {
		if m.tracker.look(offset) != isLost { // which holds the frontier until the entry is at its end
			delete(m.owed, offset)
		}
	}
	p.taken += n
	if p.err = cmp.Or(p.err, err); p.err == nil {
		p.state, p.outputs = plan.Next, append(p.outputs, plan.Outputs...)
	}
	if p.taken == len(e.Offsets) {
		m.isRebuilt(k)
	}
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
func (m *Machine) isRebuilt(k *key) {
	r, p := m.popRebuild(k), k.partial
	k.partial = nil
	e, err := &r.Entry, p.err
	last := len(e.Offsets) - 1
	revision := stream.Revision{Generation: e.TopicGeneration, Offset: e.Offsets[last]}
	m.stats.Rebuilt += int64(len(e.Offsets))
	if err == nil && (commit.OutputsDigest(p.outputs) != e.Digest || p.state.Segment != e.Segment) {
		err = fmt.Errorf("revision %s was published with other bytes", revision)
	}
	plan := commit.Plan{Next: p.state, Outputs: p.outputs, Earlier: e.Offsets[:last]}
	if err != nil {
		m.stats.Diverged += int64(len(e.Offsets))
		k.sticky = nil // what a replica keeps is another state
		m.warn("rebuilt state differs from what was published", k, err)
		state := p.state.State
		if state == nil {
			state = k.checkpoint.State
		}
		plan = commit.Plan{Earlier: plan.Earlier, Next: commit.Checkpoint{
			Revision: revision, Segment: max(p.state.Segment, k.checkpoint.Segment, e.Segment), State: m.work.Diverged(state),
		}}
	}
	c := commit.NewCommit(m.tenure, k.name, k.checkpoint.Revision, plan)
	m.makeDirty(k, &c, e.Offsets, r.Position)
	m.endLost(e, isPublic)
}
