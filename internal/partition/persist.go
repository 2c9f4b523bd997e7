package partition

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"milepost/internal/commit"
	"milepost/internal/stream"
)

// dirty is what a key has published and not persisted (A13).
type dirty struct {
	base    stream.Revision // that its row has
	waiting []unpersisted   // ascending, not empty
	id      commit.ID       // of the newest commit
	commits int             // since the persist that is out was composed
	urgent  bool            // due now: enough commits, or something waits for it
	out     *commit.Persist // on its way
	// A verdict is being cleared up before the next try: whether the partition is still ours, or what stands prepared in the row.
	proving, finishing bool
	adopt              stream.Revision // the base once the ownership is proven
	tooLarge           stream.Revision // of the checkpoint that no row can hold
}

// unpersisted is one published observation whose checkpoint is not durable yet: it holds the frontier, and its ledger
// entry the floor.
type unpersisted struct {
	offset, floor int64
	at            time.Time // of the publication
}

// persistsBefore is the order of persists: urgent ones first, the oldest of them first.
func persistsBefore(a, b *key) bool {
	if a.dirty.urgent != b.dirty.urgent {
		return a.dirty.urgent
	}
	if c := a.dirty.waiting[0].at.Compare(b.dirty.waiting[0].at); c != 0 {
		return c < 0
	}
	return cmp.Less(a.dirty.waiting[0].offset, b.dirty.waiting[0].offset)
}

// makeDirty makes a published commit the key's checkpoint, to be persisted later. The revision that the row has stays the base of
// the persist.
func (m *Machine) makeDirty(k *key, c *commit.Commit, offsets []int64, floor int64) {
	m.touch(k)
	if k.listed {
		m.idle.remove(k)
	}
	d := k.dirty
	if d == nil {
		d = &dirty{base: k.checkpoint.Revision}
		k.dirty = d
		m.dirty++
	}
	for _, offset := range offsets {
		d.waiting = append(d.waiting, unpersisted{offset: offset, floor: floor, at: m.now})
	}
	k.checkpoint, k.expired, d.id = c.Next, false, c.ID
	d.commits++
	d.urgent = d.urgent || d.commits >= m.cfg.PersistCommits || !m.cfg.Deferred
	m.queuePersist(k)
	m.rehold(k)
}

// queuePersist puts a dirty key where its persist waits for its time.
func (m *Machine) queuePersist(k *key) {
	if d := k.dirty; d.out == nil && !d.proving && !d.finishing {
		m.toPersist.fix(k)
	}
}

// persistDue hands out the persists whose time has come, one a key at a time. A drain persists them all, whatever the bound.
func (m *Machine) persistDue() {
	if m.now.Before(m.persistAt) {
		return
	}
	var batch []commit.Persist
	for m.draining || m.persists < m.cfg.Persists {
		k, ok := m.toPersist.top()
		if !ok || !m.draining && !k.dirty.urgent && m.now.Sub(k.dirty.waiting[0].at) < m.cfg.PersistAfter {
			break
		}
		m.toPersist.remove(k)
		batch = append(batch, m.composePersist(k))
	}
	for len(batch) > 0 {
		n := min(len(batch), m.cfg.RestoreBatch)
		m.emit(Persist{Persists: batch[:n:n]})
		batch = batch[n:]
	}
}

// composePersist takes the newest checkpoint, which completes all commits up to it.
func (m *Machine) composePersist(k *key) commit.Persist {
	d := k.dirty
	p := commit.Persist{Tenure: m.tenure, Key: k.name, Base: d.base, Next: k.checkpoint, ID: d.id}
	if p.Next.Revision == d.tooLarge {
		p.Next.State = m.work.Diverged(nil)
	}
	d.out, d.commits, d.urgent = &p, 0, false
	m.persists++
	return p
}

// persisted takes the fate of persists.
func (m *Machine) persisted(in Persisted) {
	for i := range in.Persists {
		p := &in.Persists[i]
		k := m.keys[p.Key]
		if k == nil || k.dirty == nil || k.dirty.out == nil || k.dirty.out.Next.Revision != p.Next.Revision || k.dirty.out.Base != p.Base {
			continue
		}
		err := in.Err
		if err == nil && i < len(in.Errs) {
			err = in.Errs[i]
		}
		if err != nil && m.fenced(err) {
			return
		}
		k.dirty.out = nil
		m.persists--
		m.touch(k)
		if m.judgePersist(k, p, err); m.ended {
			return
		}
	}
}

func (m *Machine) judgePersist(k *key, p *commit.Persist, err error) {
	if err == nil {
		m.isPersisted(k, p.Next.Revision)
		return
	}
	switch commit.ClassOf(err) {
	case commit.Conflict:
		m.persistConflict(k, p, err)
	case commit.Busy:
		// What stands prepared is finished first; the row then says what is stored.
		m.warn("a prepared commit stands in the row of a dirty key", k, err)
		k.dirty.finishing = true
		m.emit(Finish{Key: k.name})
	case commit.Permanent, commit.Poison:
		// It is published, so its key cannot stop here: a state that no row can hold is lost, and the row says so.
		m.warn("checkpoint cannot be persisted", k, err)
		if k.dirty.tooLarge == p.Next.Revision {
			m.persistFailed(k, err)
			return
		}
		k.dirty.tooLarge, k.dirty.urgent = p.Next.Revision, true
		m.queuePersist(k)
	case commit.Transient, commit.Canceled, commit.Fenced:
		m.persistFailed(k, err)
	}
}

// persistFailed tries again after a while, the oldest first.
func (m *Machine) persistFailed(k *key, err error) {
	if m.persistFailures == 0 || !m.now.Before(m.persistAt) {
		m.warn("persist failed", k, err)
		m.persistAt = m.now.Add(m.delay(m.persistFailures))
		m.persistFailures++
	}
	k.dirty.urgent = true
	m.queuePersist(k)
}

// persistConflict judges what is stored instead of the base. Our own revision is success. One not above ours, nothing included, is
// adopted as the base once a heartbeat has proven that the partition is still ours. One above ours is another owner's.
func (m *Machine) persistConflict(k *key, p *commit.Persist, err error) {
	m.stats.Conflicts++
	var conflict *commit.ConflictError
	errors.As(err, &conflict) // which is what the class means
	stored := conflict.Actual
	k.dirty.adopt = stored
	switch {
	case stored == p.Next.Revision:
		m.isPersisted(k, stored)
	case stored.Compare(k.checkpoint.Revision) > 0:
		k.dirty.proving = true
		m.fenced(&commit.FencedError{
			Partition: m.tenure.Partition, Held: m.tenure.Epoch,
			Reason: fmt.Sprintf("revision %s of key %q is stored above ours, %s", stored, k.name, k.checkpoint.Revision),
		})
	default:
		m.warn("stored revision is not the last persisted one", k, err)
		k.dirty.proving = true
		m.proofs = append(m.proofs, k)
	}
}

// prove writes the frontier as the heartbeat that keys in conflict wait for. One that is out began before.
func (m *Machine) prove() {
	if len(m.proofs) == 0 || m.saving || m.saveHeld {
		return
	}
	m.proving, m.proofs = m.proofs, nil
	m.writeFrontier()
}

// proved goes on with the keys whose heartbeat has been answered: the stored revision is adopted and the persist tried at once.
func (m *Machine) proved(err error) {
	if m.saving || len(m.proving) == 0 {
		return
	}
	keys := m.proving
	m.proving = nil
	if err != nil {
		m.proofs = append(keys, m.proofs...)
		return
	}
	for _, k := range keys {
		m.touch(k)
		k.dirty.base, k.dirty.proving, k.dirty.urgent = k.dirty.adopt, false, true
		m.queuePersist(k)
	}
}

// persistFinished goes on after another prepared commit of the row was finished.
func (m *Machine) persistFinished(k *key, err error) {
	if err != nil && m.fenced(err) {
		return
	}
	m.touch(k)
	k.dirty.finishing = false
	if err != nil {
		m.persistFailed(k, err)
		return
	}
	k.dirty.urgent = true
	m.queuePersist(k)
}

// isPersisted completes every commit up to the stored revision. Those that came meanwhile start the next persist at once if
// they are enough.
func (m *Machine) isPersisted(k *key, rev stream.Revision) {
	d := k.dirty
	m.persistFailures, m.persistAt = 0, time.Time{}
	n := 0
	for n < len(d.waiting) && d.waiting[n].offset <= rev.Offset {
		m.complete(d.waiting[n].offset, isDone)
		m.stats.Persisted++
		n++
	}
	d.base, d.waiting = rev, d.waiting[n:]
	if len(d.waiting) > 0 {
		d.urgent = d.commits >= m.cfg.PersistCommits || !m.cfg.Deferred || k.phase == settling
		m.queuePersist(k)
		m.rehold(k)
		return
	}
	k.dirty = nil
	m.dirty--
	m.rehold(k)
	if k.phase == settling {
		m.wake(k)
		return
	}
	m.rest(k)
}

// mustSettle reports whether a dirty key's next step waits until its row has its checkpoint: the quarantine, and in the other
// mode whatever is prepared over it.
func (m *Machine) mustSettle(k *key) bool {
	if k.dirty == nil || m.rebuilds(k) {
		return false
	}
	return k.head.poison == nil && (k.quarantined || !m.cfg.Deferred)
}

func (m *Machine) settle(k *key) {
	m.enter(k, settling)
	k.dirty.urgent = true
	m.queuePersist(k)
}
