package committest

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"milepost/internal/commit"
	"milepost/internal/stream"
)

// MemoryStore is a commit.Store and commit.Owners in memory; safe for concurrent use.
type MemoryStore struct {
	// Fault, when set, is asked before and after each operation, by its name. An error from the first asking means that
	// nothing was done, from the second that the answer was lost.
	Fault func(op string, done bool) error
	// QuarantineRoom bounds the quarantined observations of a partition; 0: no bound.
	QuarantineRoom int

	mu         sync.Mutex
	owners     map[ownerKey]*owner
	rows       map[rowKey]*row
	quarantine map[rowKey]map[stream.Revision]commit.Quarantined
	tombstones map[rowKey][]tombstone
	requests   []*request
}

type ownerKey struct {
	group     string
	partition stream.Partition
}

type rowKey struct {
	ownerKey
	key stream.Key
}

type owner struct {
	commit.OwnerRow
	nonce    stream.Nonce
	instance string
	lanes    int
	released bool
	formers  []commit.Former
	frontier stream.Frontier
	floor    int64
	anew     commit.Anew
}

// row is a key's. Its age is real, or a bubble's: nothing of the core sees it.
type row struct {
	current   commit.Checkpoint
	currentID commit.ID
	prepared  *commit.Commit
	expired   bool // current.State is a tail
	touched   time.Time
}

// NewMemoryStore makes an empty store.
func NewMemoryStore() *MemoryStore {
	return &MemoryStore{
		owners: map[ownerKey]*owner{}, rows: map[rowKey]*row{},
		quarantine: map[rowKey]map[stream.Revision]commit.Quarantined{}, tombstones: map[rowKey][]tombstone{},
	}
}

var (
	_ commit.Store  = (*MemoryStore)(nil)
	_ commit.Owners = (*MemoryStore)(nil)
)

// do runs one operation under the lock, between the two askings of Fault.
func (m *MemoryStore) do(ctx context.Context, op string, f func()) error {
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}
	if m.Fault != nil {
		if err := m.Fault(op, false); err != nil {
			return err
		}
	}
	m.mu.Lock()
	f()
	m.mu.Unlock()
	if m.Fault != nil {
		return m.Fault(op, true)
	}
	return nil
}

func keyOf(t *commit.Tenure) ownerKey { return ownerKey{t.Group, t.Partition} }

// fence is the check that every write joins.
func (m *MemoryStore) fence(t *commit.Tenure) error {
	o := m.owners[keyOf(t)]
	switch {
	case o == nil:
		return &commit.FencedError{Partition: t.Partition, Held: t.Epoch, Reason: "the partition has no owner row"}
	case o.Epoch != t.Epoch || o.nonce != t.Nonce:
		return &commit.FencedError{Partition: t.Partition, Held: t.Epoch, Owner: o.Epoch}
	}
	return nil
}

// Prepare implements commit.Store.
func (m *MemoryStore) Prepare(ctx context.Context, batch []commit.Commit) ([]commit.PrepareVerdict, error) {
	verdicts := make([]commit.PrepareVerdict, len(batch))
	err := m.do(ctx, "prepare", func() {
		for i := range batch {
			verdicts[i] = m.prepareOne(&batch[i])
		}
	})
	return verdicts, err
}

func (m *MemoryStore) prepareOne(c *commit.Commit) commit.PrepareVerdict {
	if err := m.fence(c.Tenure); err != nil {
		return commit.PrepareVerdict{Err: err}
	}
	at := rowKey{keyOf(c.Tenure), c.Key}
	r := m.rows[at]
	if r == nil {
		if !c.Base.IsZero() {
			return commit.PrepareVerdict{Err: &commit.ConflictError{Key: c.Key, Want: c.Base}}
		}
		r = &row{}
		m.rows[at] = r
	}
	switch p := r.prepared; {
	case p != nil && p.ID == c.ID:
		return commit.PrepareVerdict{}
	case p != nil && p.Revision != c.Base:
		return commit.PrepareVerdict{Err: &commit.BusyError{Key: c.Key, Prepared: p.Revision}}
	case p != nil:
		r.current, r.currentID, r.expired = p.Next, p.ID, false // folded: the machine knows that it was published
	case r.current.Revision == c.Revision && r.currentID == c.ID:
		return commit.PrepareVerdict{Current: true}
	case r.current.Revision != c.Base:
		return commit.PrepareVerdict{Err: &commit.ConflictError{Key: c.Key, Want: c.Base, Actual: r.current.Revision}}
	}
	stored := *c
	r.prepared, r.touched = &stored, time.Now() //nolint:forbidigo // as a database's own clock
	return commit.PrepareVerdict{}
}

// Persist implements commit.Store.
func (m *MemoryStore) Persist(ctx context.Context, batch []commit.Persist) ([]error, error) {
	errs := make([]error, len(batch))
	err := m.do(ctx, "persist", func() {
		for i := range batch {
			errs[i] = m.persistOne(&batch[i])
		}
	})
	return errs, err
}

func (m *MemoryStore) persistOne(p *commit.Persist) error {
	if err := m.fence(p.Tenure); err != nil {
		return err
	}
	at := rowKey{keyOf(p.Tenure), p.Key}
	r := m.rows[at]
	if r == nil {
		r = &row{}
	}
	switch {
	case r.prepared != nil:
		return &commit.BusyError{Key: p.Key, Prepared: r.prepared.Revision}
	case r.current.Revision == p.Next.Revision && r.currentID == p.ID:
		return nil
	case r.current.Revision != p.Base:
		return &commit.ConflictError{Key: p.Key, Want: p.Base, Actual: r.current.Revision}
	}
	r.current, r.currentID, r.expired, r.touched = p.Next, p.ID, false, time.Now() //nolint:forbidigo // as above
	m.rows[at] = r
	return nil
}

// Promote implements commit.Store.
func (m *MemoryStore) Promote(ctx context.Context, batch []commit.Promotion) ([]error, error) {
	errs := make([]error, len(batch))
	err := m.do(ctx, "promote", func() {
		for i, p := range batch {
			if errs[i] = m.fence(p.Tenure); errs[i] != nil {
				continue
			}
			r := m.rows[rowKey{keyOf(p.Tenure), p.Key}]
			switch {
			case r == nil:
				errs[i] = &commit.ConflictError{Key: p.Key, Want: p.Revision}
			case r.prepared != nil && r.prepared.ID == p.ID:
				r.current, r.currentID, r.prepared, r.expired = r.prepared.Next, r.prepared.ID, nil, false
				delete(m.quarantine[rowKey{keyOf(p.Tenure), p.Key}], p.Revision) // released (H10)
			case !r.current.Revision.Covers(p.Revision):
				errs[i] = &commit.ConflictError{Key: p.Key, Want: p.Revision, Actual: r.current.Revision}
			}
		}
	})
	return errs, err
}

// Restore implements commit.Store.
func (m *MemoryStore) Restore(ctx context.Context, t *commit.Tenure, keys []stream.Key) ([]commit.Restored, error) {
	rows := make([]commit.Restored, len(keys))
	err := m.do(ctx, "restore", func() {
		for i, key := range keys {
			at := rowKey{keyOf(t), key}
			rows[i] = commit.Restored{Key: key, Quarantined: len(m.quarantine[at]) > 0, Discarded: m.discarded(at)}
			if r := m.rows[at]; r != nil {
				rows[i].Checkpoint, rows[i].Expired = r.current, r.expired
				rows[i].Prepared = copied(r.prepared, t)
			}
		}
	})
	return rows, err
}

func copied(c *commit.Commit, t *commit.Tenure) *commit.Commit {
	if c == nil {
		return nil
	}
	d := *c
	d.Tenure = t
	return &d
}

// SaveFrontier implements commit.Store.
func (m *MemoryStore) SaveFrontier(ctx context.Context, batch []commit.FrontierWrite) ([]error, error) {
	errs := make([]error, len(batch))
	err := m.do(ctx, "save frontier", func() {
		for i, w := range batch {
			if errs[i] = m.fence(w.Tenure); errs[i] != nil {
				continue
			}
			o := m.owners[keyOf(w.Tenure)]
			if w.Frontier.Next.Compare(o.frontier.Next) > 0 {
				o.frontier = w.Frontier
			}
			o.floor = max(o.floor, w.LedgerFloor)
		}
	})
	return errs, err
}

// Quarantine implements commit.Store.
func (m *MemoryStore) Quarantine(ctx context.Context, batch []commit.Quarantined) ([]error, error) {
	errs := make([]error, len(batch))
	err := m.do(ctx, "quarantine", func() {
		for i, q := range batch {
			if errs[i] = m.fence(q.Tenure); errs[i] != nil {
				continue
			}
			at := rowKey{keyOf(q.Tenure), q.Key}
			if _, there := m.quarantine[at][q.Revision]; !there {
				if m.QuarantineRoom > 0 && m.aside(at.ownerKey) >= m.QuarantineRoom {
					errs[i] = commit.ErrQuarantineFull
				} else {
					if m.quarantine[at] == nil {
						m.quarantine[at] = map[stream.Revision]commit.Quarantined{}
					}
					m.quarantine[at][q.Revision] = q
				}
			}
			// The poison prepared commit moves into the quarantine row, as evidence (H10); without room it goes all the same.
			if r := m.rows[at]; r != nil && !q.Published && r.prepared != nil && r.prepared.Revision == q.Revision {
				r.prepared = nil
			}
		}
	})
	return errs, err
}

// aside counts a partition's quarantined observations.
func (m *MemoryStore) aside(of ownerKey) int {
	n := 0
	for at, rows := range m.quarantine {
		if at.ownerKey == of {
			n += len(rows)
		}
	}
	return n
}

// Prepared implements commit.Store.
func (m *MemoryStore) Prepared(ctx context.Context, t *commit.Tenure, after stream.Key, limit int) ([]commit.Commit, error) {
	var page []commit.Commit
	err := m.do(ctx, "prepared", func() {
		for at, r := range m.rows {
			if at.ownerKey != keyOf(t) || at.key <= after || r.prepared == nil {
				continue
			}
			c := copied(r.prepared, t)
			_, c.Released = m.quarantine[at][c.Revision]
			page = append(page, *c)
		}
		slices.SortFunc(page, func(a, b commit.Commit) int { return cmp.Compare(a.Key, b.Key) })
		page = page[:min(len(page), limit)]
	})
	return page, err
}

// Quarantined lists a partition's quarantined observations by key and revision, for assertions.
func (m *MemoryStore) Quarantined(t *commit.Tenure) []commit.Quarantined {
	m.mu.Lock()
	defer m.mu.Unlock()
	var all []commit.Quarantined
	for at, rows := range m.quarantine {
		if at.ownerKey == keyOf(t) {
			for _, q := range rows {
				all = append(all, q)
			}
		}
	}
	slices.SortFunc(all, func(a, b commit.Quarantined) int {
		return cmp.Or(cmp.Compare(a.Key, b.Key), a.Revision.Compare(b.Revision))
	})
	return all
}

// Checkpoints gives every row of a group's partition as it stands, for assertions.
func (m *MemoryStore) Checkpoints(group string, p stream.Partition) map[stream.Key]commit.Restored {
	m.mu.Lock()
	defer m.mu.Unlock()
	rows := map[stream.Key]commit.Restored{}
	for at, r := range m.rows {
		if at.ownerKey == (ownerKey{group, p}) {
			rows[at.key] = commit.Restored{Key: at.key, Checkpoint: r.current, Expired: r.expired, Prepared: r.prepared}
		}
	}
	return rows
}
