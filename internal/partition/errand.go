package partition

import (
	"fmt"

	"milepost/internal/commit"
	"milepost/internal/stream"
)

// errand is an operator's request that a quarantined key executes: its observations are replayed in order through the same
// path as any other, or given up. Until it ends, what comes for the key waits in its queue.
type errand struct {
	request  int64
	kind     commit.RequestKind
	begun    bool
	rows     []commit.Aside  // read and not yet replayed
	after    stream.Revision // the last one replayed
	released int
	// promoting: the promotion of the last one replayed is awaited.
	promoting bool
}

// asidesPage bounds the quarantined observations of a key that are in memory at once.
const asidesPage = 64

// operate takes an operator's request for a key. One that the key is executing already comes again, for the request waits
// until it is answered; another one waits for its turn there.
func (m *Machine) operate(in Operate) {
	r := in.Request
	switch {
	case m.draining: // the next owner's
		return
	case r.Key == "" || r.Kind != commit.RequestRelease && r.Kind != commit.RequestDiscard:
		m.answer(r.ID, true, "no such request of a key")
		return
	}
	if len(m.rebuild[r.Key]) > 0 { // what is published comes first; the request comes again
		return
	}
	k := m.at(r.Key, 0)
	if k.errand != nil {
		return
	}
	k.errand = &errand{request: r.ID, kind: r.Kind}
	// A key that is ready stands in a queue and begins at its turn; one that waits for an answer, when that has come.
	if k.phase == idle || k.phase == blocked && k.retry == setAsideAgain {
		m.wake(k)
	}
}

// goOnErrand takes a key's errand one step on. It reports false when the key has something else to do first: the
// observation that is being replayed.
func (m *Machine) goOnErrand(k *key) bool {
	e := k.errand
	switch {
	case e == nil || m.draining:
		return false
	case !e.begun && k.loaded && !k.quarantined:
		k.errand = nil
		m.answer(e.request, false, "nothing of the key is in quarantine")
		return false
	case e.begun && k.head != nil && k.head.released:
		return false
	}
	if !e.begun && k.dirty != nil { // what is replayed is planned over the row
		m.settle(k)
		return true
	}
	if !e.begun {
		if k.head != nil && k.head.released { // an earlier release stopped at it; its row stands where it stood
			m.finishHead(k, isDone)
		}
		e.begun, k.loaded = true, false // what is replayed is planned over the row as it stands now
		m.rehold(k)
	}
	if len(e.rows) > 0 {
		return m.replayNext(k)
	}
	m.enter(k, onErrand)
	if e.kind == commit.RequestDiscard {
		m.emit(Discard{Key: k.name, Floor: m.ledgerNext})
	} else {
		m.emit(ReadAsides{Key: k.name, After: e.after, Limit: asidesPage})
	}
	return true
}

// replayNext puts the next quarantined observation before all that wait.
func (m *Machine) replayNext(k *key) bool {
	e := k.errand
	a := e.rows[0]
	e.rows, e.after = e.rows[1:], a.Revision
	it := m.decode(&a.Record)
	it.obs.Identity.Revision = a.Revision // it may be of an earlier topic generation
	if it.poison != nil || it.obs.Key != k.name {
		m.errandFailed(k, fmt.Errorf("observation %s: %w", a.Revision, orOther(it.poison)))
		return false
	}
	it.released, it.counted = true, true
	it.next, k.head = k.head, it
	if k.tail == nil {
		k.tail = it
	}
	k.queued++
	m.records++
	m.bytes += it.size
	k.attempts = 0
	return false
}

// orOther says why a record that was an observation is none now.
func orOther(poison *commit.PoisonError) error {
	if poison != nil {
		return poison
	}
	return &commit.PoisonError{Reason: "other_key", Detail: "the record is another key's now"}
}

// asidesRead goes on with a release.
func (m *Machine) asidesRead(in AsidesRead) {
	k := m.keys[in.Key]
	if k == nil || k.phase != onErrand || m.draining {
		return
	}
	if in.Err != nil {
		m.errandHeld(k, in.Err)
		return
	}
	k.attempts = 0
	if len(in.Rows) == 0 {
		m.letGo(k)
		m.endErrand(k, false, fmt.Sprintf("%d observations released", k.errand.released))
		m.wake(k)
		return
	}
	if !k.quarantined {
		m.markQuarantined(k)
		k.inherits = true
		k.cause = &cause{class: "quarantined", reason: "follows a quarantined observation of its key"}
	}
	k.errand.rows = in.Rows
	m.wake(k)
}

// discarded goes on with the key as if its quarantined observations had never been.
func (m *Machine) discarded(in DiscardDone) {
	k := m.keys[in.Key]
	if k == nil || k.phase != onErrand {
		return
	}
	if in.Err != nil {
		m.errandHeld(k, in.Err)
		return
	}
	k.attempts = 0
	if in.Discarded.Until.Compare(k.discarded) > 0 {
		k.discarded = in.Discarded.Until
	}
	m.stats.Discarded += int64(in.Discarded.Rows)
	m.letGo(k)
	k.loaded = false // a prepared commit of the row may have gone too
	m.rehold(k)
	m.endErrand(k, false, fmt.Sprintf("%d observations discarded", in.Discarded.Rows))
	m.wake(k)
}

// letGo ends a key's quarantine.
func (m *Machine) letGo(k *key) {
	m.touch(k)
	if k.quarantined {
		k.quarantined = false
		m.quarantined--
	}
	k.cause, k.setAside, k.inherits = nil, 0, false
}

// errandHeld tries a step of an errand again later; what no retry can help ends it.
func (m *Machine) errandHeld(k *key, err error) {
	if m.fenced(err) {
		return
	}
	switch commit.ClassOf(err) {
	case commit.Permanent, commit.Poison:
		m.errandFailed(k, err)
		m.wake(k)
	case commit.Transient, commit.Canceled, commit.Conflict, commit.Busy, commit.Fenced:
		if k.attempts == 0 {
			m.warn("operator's request waits", k, err)
		}
		m.backOff(k, errandAgain)
	}
}

// errandFailed ends an errand where it stands: what was released stays released, the rest stays in quarantine.
func (m *Machine) errandFailed(k *key, err error) {
	e := k.errand
	if e == nil || !e.begun {
		return
	}
	m.warn("operator's request failed", k, err)
	outcome := err.Error()
	if e.kind == commit.RequestRelease {
		outcome = fmt.Sprintf("%d observations released, then the key stopped again: %s", e.released, outcome)
	}
	m.endErrand(k, true, outcome)
}

func (m *Machine) endErrand(k *key, failed bool, outcome string) {
	m.touch(k)
	e := k.errand
	k.errand = nil
	for it := k.head; it != nil; it = it.next {
		if k.loaded || k.quarantined {
			m.verdict(k, it)
		}
	}
	m.answer(e.request, failed, outcome)
}

func (m *Machine) answer(request int64, failed bool, outcome string) {
	m.emit(Answer{Answer: commit.Answer{Request: request, Failed: failed, Outcome: outcome}})
}

// isReleased goes on after the publication of a replayed observation: its promotion takes its row out of quarantine, and only
// then the next one is replayed, so that no prepare folds it in (H10).
func (m *Machine) isReleased(k *key) {
	m.stats.Released++
	if k.errand != nil {
		k.errand.released++
		k.errand.promoting = true
	}
	m.finishHead(k, isDone)
	m.enter(k, onErrand)
	m.emitPromotions([]commit.Promotion{k.promote()})
}
