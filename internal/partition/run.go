package partition

import (
	"milepost/internal/commit"
	"milepost/internal/stream"
)

// run gives the observations that one job may decide: the head's, and of those queued behind it what follows at once, within Config.Run and
// Config.RunBytes (F21). It ends before whatever is decided or committed in another way: a poison record, what was published by an earlier
// owner, a replayed observation. What is done already is never behind a head that is not.
func (m *Machine) run(k *key) []Observation {
	most := m.runOf(k)
	run, size := make([]Observation, 0, min(most, k.queued)), int64(0)
	for it := k.head; it != nil && len(run) < most; it = it.next {
		size += it.size
		if n := len(run); n > 0 && (size > m.cfg.RunBytes || !m.follows(k, it, run[n-1].Identity.Revision, n)) {
			break
		}
		run = append(run, it.obs)
	}
	return run
}

// runOf gives how many observations the next job of a key may have.
func (m *Machine) runOf(k *key) int {
	most := m.cfg.Run
	switch {
	case k.head.released:
		return 1
	case k.job != nil && k.job.decided:
		return k.job.run // the same job, so that its result still decides
	case k.narrow > 0 && k.head.record.Offset <= k.narrowTo:
		most = min(most, k.narrow)
	default:
		k.narrow = 0
	}
	if m.rebuilds(k) { // one entry's observations at a time
		most = min(most, len(m.rebuild[k.name][0].Entry.Offsets)-k.taken())
	}
	return most
}

// follows reports whether an observation may be decided in one job with the n before it, of which the last has the revision before.
func (m *Machine) follows(k *key, it *item, before stream.Revision, n int) bool {
	if it.poison != nil || it.released || before.Compare(m.anew.Before) < 0 {
		return false
	}
	if m.rebuilds(k) {
		return m.rebuild[k.name][0].Entry.Offsets[k.taken()+n] == it.record.Offset
	}
	_, owed := m.owed[it.record.Offset]
	return !owed
}

// nth gives the item n places behind the head.
func (k *key) nth(n int) *item {
	it := k.head
	for range n {
		it = it.next
	}
	return it
}

// decides is how many of the job's observations, from the first, its decision is about.
func (j *job) decides() int {
	switch {
	case j.local:
		return j.run
	case j.decision.Kind == Solved:
		return min(j.run, 1+len(j.decision.More))
	}
	return 1
}

// about gives the decision about one of them.
func (j *job) about(i int) Decision {
	d := Decision{Kind: j.decision.Kind, Reason: j.decision.Reason, Answer: j.decision.Answer}
	if i > 0 && !j.local {
		d.Answer = j.decision.More[i-1]
	}
	return d
}

// plan turns the job's decision into one commit's plan, as if each observation were planned and committed by itself: each over the state that the
// one before made. One that cannot be planned ends it before, so that it fails as the head of a job of its own.
func (m *Machine) plan(k *key) (commit.Plan, error) {
	j, it := k.job, k.head
	all, err := j.planOne(m.state(k), it.obs, j.about(0))
	if err != nil {
		return commit.Plan{}, err
	}
	j.planned = append(j.planned[:0], planned{all.Terminal, all.Reset})
	size := sizeOf(all.Outputs)
	for i := 1; i < j.decides(); i++ {
		it = it.next
		p, err := j.planOne(m.stateOver(all.Next), it.obs, j.about(i))
		if size += sizeOf(p.Outputs); err != nil || size > m.cfg.RunBytes {
			break
		}
		all.Earlier = append(all.Earlier, all.Next.Revision.Offset)
		all.Next, all.Outputs = p.Next, append(all.Outputs, p.Outputs...)
		j.planned = append(j.planned, planned{p.Terminal, p.Reset})
	}
	return all, nil //nolint:nilerr // an error after the first is met again by the job that it heads
}

func sizeOf(outputs []commit.Output) (n int64) {
	for i := range outputs {
		n += outputs[i].Size()
	}
	return n
}

// narrow lets a job of several observations that failed for good be tried again in jobs of half as many, and so on: only the one that cannot be
// decided or committed shall stop the key. It reports false for a job of one.
func (m *Machine) narrow(k *key, err error) bool {
	j := k.job
	if j == nil {
		return false
	}
	tried := j.run
	if j.composed {
		tried = len(j.commit.Earlier) + 1
	}
	if tried < 2 {
		return false
	}
	if k.narrow == 0 {
		m.warn("job of several observations failed, they are tried in smaller ones", k, err)
	}
	k.narrow, k.narrowTo = tried/2, k.nth(tried-1).record.Offset
	m.stats.Narrowed++
	m.timers.remove(k)
	if j.composed {
		// It may stand prepared in the row, which is read again first: what stands there may also be what we published before it.
		k.loaded = k.dirty != nil
	}
	m.endJob(j)
	k.job, k.attempts = nil, 0
	m.rehold(k)
	m.wake(k)
	return true
}
