package partition

import (
	"fmt"
	"math"
)

// replays counts the released observations in a key's queue: its head or none.
func (k *key) replays() int {
	if k.head != nil && k.head.released {
		return 1
	}
	return 0
}

// touch notes a key that this step changes, for checkStep.
func (m *Machine) touch(k *key) {
	if checked {
		m.touched = append(m.touched, k)
	}
}

// checkStep panics when a step broke an invariant. It looks at the partition and at the keys that the step touched.
func (m *Machine) checkStep() {
	for _, k := range m.touched {
		if m.find(k.name, int64(k.place)) == k {
			m.checkKey(k, stepLook)
		}
	}
	m.touched = m.touched[:0]
	m.checkPartition()
}

// broken panics with the values of a broken invariant; nothing in the core recovers it.
func (m *Machine) broken(invariant string, k *key, format string, args ...any) {
	where := fmt.Sprintf("partition %s, epoch %d, frontier %s", m.tenure.Partition, m.tenure.Epoch, m.frontier())
	if k != nil {
		where += fmt.Sprintf(", key %q in phase %d", k.name, k.phase)
	}
	panic(fmt.Sprintf("invariant %s is broken: %s: %s", invariant, where, fmt.Sprintf(format, args...)))
}

func (m *Machine) checkPartition() {
	if m.tracker.frontier < m.saved.Frontier.Next.Offset || m.tracker.frontier < m.written.Frontier.Next.Offset {
		m.broken("I4", nil, "it was saved at %s", m.written.Frontier)
	}
	if m.tracker.entries.len() > 0 {
		if e := m.tracker.entries.at(0); e.mark >= isDone || e.offset != m.tracker.frontier {
			m.broken("I3", nil, "lowest tracked offset is %d, mark %d", e.offset, e.mark)
		}
	} else if m.tracker.frontier != m.tracker.next {
		m.broken("I3", nil, "nothing is tracked below %d", m.tracker.next)
	}
	if len(m.owing) > 0 && m.owing[0] < m.tracker.next {
		m.broken("I3", nil, "published offset %d is neither in hand nor lost, delivered is up to %d", m.owing[0], m.tracker.next)
	}
	if m.bound() < m.written.LedgerFloor {
		m.broken("P6", nil, "ledger floor %d was written, %d is needed", m.written.LedgerFloor, m.bound())
	}
	if n := m.count[solving] + m.count[committing]; m.jobs < n {
		m.broken("P4", nil, "%d jobs are counted, %d are out", m.jobs, n)
	}
	if m.records < 0 || m.bytes < 0 || m.again < 0 || m.spilled < 0 || m.unpromoted < 0 || m.quarantined < 0 || m.promoting < 0 || m.restores < 0 {
		m.broken("P5", nil, "a count is negative: %+v", m.View())
	}
}

// stepLook is how many of a touched key's records are looked at after a step: a check must not cost more than the step.
const stepLook = 4

// checkKey checks one key, of its queued and of its spilled records as many as said.
func (m *Machine) checkKey(k *key, look int) {
	m.checkPhase(k)
	n, last := 0, int64(-1)
	for it := k.head; it != nil && n < look; it = it.next {
		if it.released {
			if it != k.head {
				m.broken("P2", k, "released offset %d is queued behind another", it.record.Offset)
			}
			n++
			continue
		}
		if it.record.Offset <= last {
			m.broken("P2", k, "offset %d is queued behind %d", it.record.Offset, last)
		}
		if mk := m.tracker.look(it.record.Offset); mk != inHand {
			m.broken("I3", k, "offset %d is queued and marked %d", it.record.Offset, mk)
		}
		n, last = n+1, it.record.Offset
	}
	if n != min(k.queued, look) || n > m.cfg.KeyQueue+k.replays() {
		m.broken("P5", k, "%d are queued, %d counted, bound %d", n, k.queued, m.cfg.KeyQueue)
	}
	for _, s := range k.spill[:min(len(k.spill), look)] {
		if s.offset <= last {
			m.broken("P2", k, "offset %d is spilled behind %d", s.offset, last)
		}
		if mk := m.tracker.look(s.offset); mk != isSpilled {
			m.broken("I3", k, "offset %d is spilled and marked %d", s.offset, mk)
		}
		last = s.offset
	}
	m.checkHold(k)
	m.checkDirty(k)
}

func (m *Machine) checkPhase(k *key) {
	j := k.job
	timed := k.phase == solving || k.phase == blocked
	if timed != (k.timerAt >= 0) && (!m.draining || k.phase != blocked) {
		m.broken("P3", k, "has a timer: %t", k.timerAt >= 0)
	}
	if (k.phase == idle) != (k.head == nil && !k.gone) && k.phase != blocked && k.phase != finishing && k.phase != onErrand && k.phase != settling {
		m.broken("P3", k, "%d are queued", k.queued)
	}
	running := k.phase == solving || k.phase == committing || k.phase == blocked && k.retry == commitAgain
	if running != (j != nil && j.counted) {
		m.broken("I1", k, "its job is counted: %t", !running)
	}
	if (k.phase == committing || k.phase == blocked && k.retry == commitAgain) != (j != nil && j.composed) {
		m.broken("P3", k, "a commit is composed: %t", j != nil && j.composed)
	}
	if j != nil && j.composed {
		m.checkRun(k)
		if !j.commit.NoRow && (!k.loaded || j.commit.Base != k.checkpoint.Revision || j.commit.Base.Compare(j.commit.Revision) >= 0) {
			m.broken("I5", k, "commit of %s is over %s, checkpoint is %s, loaded %t", j.commit.Revision, j.commit.Base, k.checkpoint.Revision, k.loaded)
		}
	}
	if k.head != nil && k.head.released && !k.quarantined {
		m.broken("P8", k, "an observation is replayed of a key that is not quarantined")
	}
	if k.phase == held && (j == nil || j.credit == nil || j.counted) || !running && k.phase != held && j != nil && j.credit != nil {
		m.broken("I15", k, "job and credit do not agree: %+v", j)
	}
	if k.phase == solving && len(j.request) == 0 {
		m.broken("I7", k, "no request is retained")
	}
	if len(k.parked) > m.cfg.ParkedResults {
		m.broken("P10", k, "%d results are parked, bound %d", len(k.parked), m.cfg.ParkedResults)
	}
	if k.phase == solving && j.cached && !m.isSticky(k) {
		m.broken("P10", k, "a request without the trip is out over %s, sticky is %+v", k.checkpoint.Revision, k.sticky)
	}
	if k.listed != (k.phase == idle && len(k.spill) == 0 && k.asked == 0 && k.published == nil && k.dirty == nil && k.partial == nil && k.foreign < 0) {
		m.broken("P7", k, "listed for eviction: %t", k.listed)
	}
}

// checkRun holds a commit's observations against the head and those behind it.
func (m *Machine) checkRun(k *key) {
	it := k.head
	for i, offset := range k.job.commit.Earlier {
		if it == nil || it.record.Offset != offset || it.poison != nil || it.released {
			m.broken("I1", k, "commit of %v is not of what is queued: number %d is %+v", k.job.commit.Offsets(), i, it)
		}
		it = it.next
	}
	if it == nil {
		m.broken("I1", k, "commit is of %v, %d are queued", k.job.commit.Offsets(), k.queued)
	}
	if want := m.revisionOf(it); k.job.commit.Revision != want {
		m.broken("I1", k, "commit is of %s, queued is %s", k.job.commit.Revision, want)
	}
	if n := len(k.job.commit.Earlier) + 1; n > k.job.run && !k.job.commit.NoRow {
		m.broken("I1", k, "commit is of %d observations, its job of %d", n, k.job.run)
	}
}

func (m *Machine) checkDirty(k *key) {
	d := k.dirty
	if waits := d != nil && d.out == nil && !d.proving && !d.finishing; waits != (k.persistAt >= 0) {
		m.broken("P9", k, "waits for a persist: %t", k.persistAt >= 0)
	}
	if k.phase == settling && d == nil {
		m.broken("P3", k, "there is nothing to persist")
	}
	if d == nil {
		return
	}
	if !k.loaded || len(d.waiting) == 0 || d.base.Compare(k.checkpoint.Revision) >= 0 {
		m.broken("P9", k, "checkpoint is %s, loaded %t, %d observations wait over %s", k.checkpoint.Revision, k.loaded, len(d.waiting), d.base)
	}
	last := int64(-1)
	for _, u := range d.waiting[:min(len(d.waiting), stepLook)] {
		if mk := m.tracker.look(u.offset); u.offset <= last || mk == inHand || mk == isSpilled || mk == isLost {
			m.broken("P9", k, "offset %d is not persisted, marked %d, behind %d", u.offset, mk, last)
		}
		last = u.offset
	}
}

func (m *Machine) checkHold(k *key) {
	held := k.job != nil && k.job.composed || k.published != nil || k.dirty != nil || k.foreign >= 0
	if held != (k.holdAt >= 0) {
		m.broken("P6", k, "holds a floor: %t", k.holdAt >= 0)
	}
	if held && k.hold < m.written.LedgerFloor {
		m.broken("P6", k, "needs floor %d, %d was written", k.hold, m.written.LedgerFloor)
	}
}

// checkAll checks every key and every sum: for tests.
func (m *Machine) checkAll() {
	var count [phases]int
	records, again, spills, unpromoted, jobs, quarantined, replays := 0, 0, 0, 0, 0, 0, 0
	dirty, persists, public := 0, 0, 0
	var bytes int64
	each := func(k *key) {
		m.checkKey(k, math.MaxInt)
		count[k.phase]++
		spills += len(k.spill)
		replays += k.replays()
		if d := k.dirty; d != nil {
			dirty++
			if d.out != nil {
				persists++
			}
			for _, u := range d.waiting {
				if m.tracker.look(u.offset) == isPublic {
					public++
				}
			}
		}
		if p := k.partial; p != nil {
			for _, offset := range m.rebuild[k.name][0].Entry.Offsets[:p.taken] {
				if m.tracker.look(offset) == isPublic {
					public++
				}
			}
		}
		for it := k.head; it != nil; it = it.next {
			records++
			bytes += it.size
			if it.again {
				again++
			}
		}
		if k.published != nil {
			unpromoted++
		}
		if k.job != nil && k.job.counted {
			jobs++
		}
		if k.quarantined {
			quarantined++
		}
	}
	for _, k := range m.keys {
		each(k)
	}
	for _, k := range m.keyless {
		if k != nil {
			each(k)
		}
	}
	m.checkPartition()
	m.checkShare()
	if count != m.count || records != m.records || again != m.again || bytes != m.bytes || spills != m.spilled ||
		unpromoted != m.unpromoted || dirty != m.dirty || persists != m.persists || jobs != m.jobs || quarantined != m.quarantined {
		m.broken("P5", nil, "sums: phases %v %v, records %d %d, refetched %d %d, bytes %d %d, spilled %d %d, unpromoted %d %d, dirty %d %d, persists %d %d, jobs %d %d, quarantined %d %d",
			count, m.count, records, m.records, again, m.again, bytes, m.bytes, spills, m.spilled, unpromoted, m.unpromoted, dirty, m.dirty, persists, m.persists, jobs, m.jobs, quarantined, m.quarantined)
	}
	undone := 0
	for i := range m.tracker.entries.len() {
		switch e := m.tracker.entries.at(i); {
		case e.mark == isLost:
			if _, ok := m.owed[e.offset]; !ok {
				m.broken("I3", nil, "offset %d is lost and nothing waits for that", e.offset)
			}
		case e.mark < isDone:
			undone++
		}
	}
	for offset, name := range m.owed {
		if mk := m.tracker.look(offset); mk >= isPublic || mk == passed {
			m.broken("I3", m.keys[name], "published offset %d is to be rebuilt and marked %d", offset, mk)
		}
	}
	if undone != records+spills-replays+public {
		m.broken("I2", nil, "%d offsets are not done, %d are in hand and %d spilled", undone, records, spills)
	}
}

// checkShare holds what the keys have of admission against what the share says.
func (m *Machine) checkShare() {
	if m.share == nil {
		return
	}
	m.share.c.mu.Lock()
	defer m.share.c.mu.Unlock()
	if m.share.left {
		return // it has given everything back
	}
	var sum, got scope
	waiting := 0
	for _, k := range m.keys {
		switch {
		case k.job == nil || k.job.credit == nil:
		case k.job.credit.waits:
			waiting++
		default:
			sum.add(1, k.job.credit.bytes)
		}
	}
	for _, h := range m.share.held {
		got.add(h.jobs, h.bytes)
	}
	for _, r := range m.share.c.regions {
		for w := r.queue.first; w != nil; w = w.next {
			if w.share == m.share {
				waiting--
			}
		}
	}
	if sum != got || waiting != 0 {
		m.broken("I15", nil, "keys have %+v, the share holds %+v, %d more wait than are in line", sum, got, waiting)
	}
}
