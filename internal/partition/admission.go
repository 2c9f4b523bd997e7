package partition

import (
	"cmp"
	"slices"
	"time"
)

// takeCredit asks for a job's credit; without one the key waits for its turn, and keeps its place and its request meanwhile.
func (m *Machine) takeCredit(k *key, region string) bool {
	if m.share == nil || region == "" {
		return true
	}
	cr, ok := m.share.ask(region, int64(len(k.job.request)), k)
	k.job.credit = cr
	if ok {
		return true
	}
	m.stats.Held++
	m.enter(k, held)
	return false
}

// welcome queues the keys whose credit has come, in the order in which they came.
func (m *Machine) welcome() {
	if m.share == nil {
		return
	}
	for _, cr := range m.share.take() {
		m.admitted.push(cr)
	}
}

// nextAdmitted gives the next key whose credit has come.
func (m *Machine) nextAdmitted() (*key, bool) {
	for {
		cr, ok := m.admitted.pop()
		if !ok {
			return nil, false
		}
		if k := cr.key; k.phase == held && k.job.credit == cr {
			return k, true
		}
	}
}

// begin sends a job that was admitted.
func (m *Machine) begin(k *key) {
	m.startJob(k.job)
	m.stats.Dispatched++
	m.send(k)
}

// replaced puts another workload into force. Jobs that are out go on under the one that opened them; keys that wait for
// credit are opened anew, in the order in which they came.
func (m *Machine) replaced(in Replaced) {
	m.work = in.Workload
	m.works++
	if m.count[held] == 0 {
		return
	}
	var waiting []*key
	for _, k := range m.keys {
		if k.phase == held {
			waiting = append(waiting, k)
		}
	}
	slices.SortFunc(waiting, func(a, b *key) int { return cmp.Compare(a.job.credit.number, b.job.credit.number) })
	for _, k := range waiting {
		m.openAgain(k)
	}
}

// openAgain gives a key's job up, unanswered; its head is opened anew.
func (m *Machine) openAgain(k *key) {
	m.endJob(k.job)
	k.job = nil
	m.wake(k)
}

// isStale reports whether a key's job was opened by a workload that is no longer in force.
func (m *Machine) isStale(k *key) bool { return k.job.works != m.works }

// measure tells of those of n observations that were committed past their region's budget. Nothing is ever decided by it (A16, I14).
func (m *Machine) measure(j *job, it *item, n int) {
	for ; n > 0; it, n = it.next, n-1 {
		if j.budget <= 0 || it.released || it.record.Timestamp.IsZero() {
			continue
		}
		if late := m.now.Sub(it.record.Timestamp.Add(j.budget)); late > 0 {
			m.stats.Late++
			m.emit(Late{Region: j.region, By: late})
		}
	}
}

// Late tells of an observation that was committed later than its region's budget allows.
type Late struct {
	Region string
	By     time.Duration
}

func (Late) effect() {}

// Admitted says that credit has come for keys that wait; see Credits.Join.
type Admitted struct{}

// Replaced puts another workload into force: that of another catalog.
type Replaced struct{ Workload Workload }

func (Admitted) input() {}
func (Replaced) input() {}
