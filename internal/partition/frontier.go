package partition

import (
	"sort"
	"time"

	"milepost/internal/commit"
	"milepost/internal/stream"
)

// mark is what has become of an offset at or above the frontier.
type mark uint8

const (
	unseen mark = iota // never delivered: a gap, if a higher one was
	passed             // below the frontier
	inHand
	isSpilled // only the offset is kept
	isLost    // published by an earlier owner, and the log has lost it: what it made is to be declared void first
	isPublic  // published, its checkpoint is not persisted yet
	isDone
	isDeadLetter // done by its entry in the ledger alone: holds the floor until the frontier passes
)

// tracked is one offset that was delivered and that the frontier has not passed.
type tracked struct {
	offset int64
	seen   int64 // nanoseconds of the first delivery
	epoch  int32 // leader epoch
	mark   mark
}

// tracker turns completions in any order into a contiguous frontier. It keeps delivered offsets alone: an offset
// that the log does not have is no hole, and the next one delivered proves it (A14).
type tracker struct {
	entries  fifo[tracked] // ascending by offset
	frontier int64
	next     int64 // one above the highest delivered
	epoch    int32 // leader epoch of the last record that the frontier passed
	passed   func(offset int64)
}

func newTracker(f stream.Frontier, passed func(offset int64)) tracker {
	return tracker{frontier: f.Next.Offset, next: f.Next.Offset, epoch: f.LeaderEpoch, passed: passed}
}

// find gives the entry of an offset, nil without one.
func (t *tracker) find(offset int64) *tracked {
	n := t.entries.len()
	i := sort.Search(n, func(i int) bool { return t.entries.at(i).offset >= offset })
	if i == n || t.entries.at(i).offset != offset {
		return nil
	}
	return t.entries.at(i)
}

// look says what has become of an offset.
func (t *tracker) look(offset int64) mark {
	if offset < t.frontier {
		return passed
	}
	if e := t.find(offset); e != nil {
		return e.mark
	}
	return unseen
}

// deliver notes an offset above all that were delivered.
func (t *tracker) deliver(offset int64, epoch int32, now time.Time) {
	t.entries.push(tracked{offset: offset, seen: now.UnixNano(), epoch: epoch, mark: inHand})
	t.next = offset + 1
	t.advance()
}

// set changes what has become of a delivered offset.
func (t *tracker) set(offset int64, to mark) {
	e := t.find(offset)
	if e == nil {
		return
	}
	e.mark = to
	if to >= isDone {
		t.advance()
	}
}

// advance moves the frontier over everything that is done and over the gaps that are proven.
func (t *tracker) advance() {
	for t.entries.len() > 0 {
		e := *t.entries.at(0)
		if e.mark < isDone {
			t.frontier = e.offset
			return
		}
		t.entries.pop()
		t.epoch = e.epoch
		t.frontier = e.offset + 1
		if e.mark == isDeadLetter {
			t.passed(e.offset)
		}
	}
	t.frontier = t.next
}

// oldest is when the lowest offset that is not done was first delivered; zero without one.
func (t *tracker) oldest() time.Time {
	if t.entries.len() == 0 {
		return time.Time{}
	}
	return time.Unix(0, t.entries.at(0).seen).UTC()
}

// frontier gives the partition's frontier as it stands in memory.
func (m *Machine) frontier() stream.Frontier {
	return stream.Frontier{Next: m.revision(m.tracker.frontier), LeaderEpoch: m.tracker.epoch}
}

// complete counts an offset done: its effect is durable, or there is none to make (I2).
func (m *Machine) complete(offset int64, as mark) {
	m.tracker.set(offset, as)
	if as >= isDone {
		m.standsNoMore(offset)
		m.completions++
	}
}

// saveFrontier writes frontier and floor when they are due: by count, by time, or as the heartbeat by which a
// superseded owner finds out. One write at a time.
func (m *Machine) saveFrontier() {
	if m.saving || m.saveHeld || m.draining {
		return
	}
	since := m.now.Sub(m.saveAt)
	moved := m.frontier().Next != m.saved.Frontier.Next || m.floor() != m.saved.LedgerFloor
	switch {
	case m.saveFailed:
	case moved && m.completions >= m.cfg.FrontierEvery:
	case moved && since >= m.cfg.FrontierInterval:
	case since >= m.cfg.HeartbeatInterval:
	default:
		return
	}
	m.writeFrontier()
}

func (m *Machine) writeFrontier() {
	w := commit.FrontierWrite{Tenure: m.tenure, Frontier: m.frontier(), LedgerFloor: m.floor(), Live: m.live()}
	m.written, m.saving, m.saveFailed, m.saveAt, m.completions = w, true, false, m.now, 0
	m.emit(SaveFrontier{Write: w})
}

// live is what only a live owner knows of its partition.
func (m *Machine) live() commit.Live {
	l := commit.Live{
		Waiting: m.count[ready] + m.count[restoring] + m.count[onErrand], Blocked: m.count[blocked] + m.count[finishing],
	}
	if since := m.tracker.oldest(); !since.IsZero() && m.now.After(since) {
		l.OldestPending = m.now.Sub(since)
	}
	return l
}

func (m *Machine) frontierSaved(in FrontierSaved) {
	if in.Write.Frontier == m.written.Frontier && in.Write.LedgerFloor == m.written.LedgerFloor {
		m.saving = false
	}
	m.proved(in.Err)
	if in.Err == nil {
		if in.Write.Frontier.Next.Compare(m.saved.Frontier.Next) >= 0 && in.Write.LedgerFloor >= m.saved.LedgerFloor {
			m.saved = in.Write
		}
		return
	}
	if m.fenced(in.Err) {
		return
	}
	// A warning, and once more at the next tick; nothing else waits for it (A14).
	m.warn("frontier write failed", nil, in.Err)
	m.saveHeld, m.saveFailed, m.final = true, true, false
}
