package committest

import (
	"context"
	"slices"

	"milepost/internal/commit"
	"milepost/internal/stream"
)

var _ commit.Operations = (*MemoryStore)(nil)

// request is an operator's request as it stands; answer is nil while it waits.
type request struct {
	commit.Request
	group  string
	answer *commit.Answer
}

// tombstone is what a discard leaves of an observation.
type tombstone struct {
	revision stream.Revision
	floor    int64
}

// Ask writes a request as the operator's command does, and gives its number.
func (m *MemoryStore) Ask(group string, r commit.Request) int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	r.ID = int64(len(m.requests) + 1)
	m.requests = append(m.requests, &request{Request: r, group: group})
	return r.ID
}

// Answered gives a request's answer, nil while it waits.
func (m *MemoryStore) Answered(id int64) *commit.Answer {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.requests[id-1].answer
}

// Requests implements commit.Operations.
func (m *MemoryStore) Requests(ctx context.Context, group string, partitions []stream.Partition, limit int) ([]commit.Request, error) {
	var all []commit.Request
	err := m.do(ctx, "requests", func() {
		for _, r := range m.requests {
			if r.group == group && r.answer == nil && len(all) < limit && slices.Contains(partitions, r.Partition) {
				all = append(all, r.Request)
			}
		}
	})
	return all, err
}

// Answer implements commit.Operations.
func (m *MemoryStore) Answer(ctx context.Context, t *commit.Tenure, a commit.Answer) error {
	return m.fenced(ctx, "answer", t, func(*owner) {
		if r := m.requests[a.Request-1]; r.answer == nil {
			r.answer = &a
		}
	})
}

// Asides implements commit.Operations.
func (m *MemoryStore) Asides(ctx context.Context, t *commit.Tenure, key stream.Key, after stream.Revision, limit int) ([]commit.Aside, error) {
	var all []commit.Aside
	err := m.do(ctx, "asides", func() {
		at := rowKey{keyOf(t), key}
		var current stream.Revision
		if r := m.rows[at]; r != nil {
			current = r.current.Revision
		}
		for rev, q := range m.quarantine[at] {
			if rev.Compare(after) > 0 && rev.Compare(current) > 0 {
				all = append(all, commit.Aside{Revision: rev, Record: q.Record})
			}
		}
		slices.SortFunc(all, func(a, b commit.Aside) int { return a.Revision.Compare(b.Revision) })
		all = all[:min(len(all), limit)]
	})
	return all, err
}

// Discard implements commit.Operations.
func (m *MemoryStore) Discard(ctx context.Context, t *commit.Tenure, key stream.Key, floor int64) (commit.Discarded, error) {
	var d commit.Discarded
	err := m.fenced(ctx, "discard", t, func(*owner) {
		at := rowKey{keyOf(t), key}
		d.Rows = len(m.quarantine[at])
		for rev := range m.quarantine[at] {
			m.tombstones[at] = append(m.tombstones[at], tombstone{rev, floor})
			if r := m.rows[at]; r != nil && r.prepared != nil && r.prepared.Revision == rev {
				r.prepared = nil
			}
		}
		delete(m.quarantine, at)
		d.Until = m.discarded(at)
	})
	return d, err
}

// discarded is the highest revision that a tombstone of the key remembers.
func (m *MemoryStore) discarded(at rowKey) stream.Revision {
	var until stream.Revision
	for _, x := range m.tombstones[at] {
		if x.revision.Compare(until) > 0 {
			until = x.revision
		}
	}
	return until
}

// Seek implements commit.Operations.
func (m *MemoryStore) Seek(ctx context.Context, t *commit.Tenure, id int64, to stream.Revision, outcome string) (bool, error) {
	moved := false
	err := m.fenced(ctx, "seek", t, func(o *owner) {
		r := m.requests[id-1]
		if r.answer != nil || o.frontier.Next.Generation != to.Generation || o.frontier.Next.Offset >= to.Offset {
			return
		}
		o.frontier = stream.Frontier{Next: to, LeaderEpoch: -1}
		r.answer = &commit.Answer{Request: id, Outcome: outcome}
		moved = true
	})
	return moved, err
}

// Lose implements commit.Operations.
func (m *MemoryStore) Lose(ctx context.Context, t *commit.Tenure, to stream.Revision, reason string) (bool, error) {
	moved := false
	err := m.fenced(ctx, "lose", t, func(o *owner) {
		if o.frontier.Next.Generation == to.Generation && o.frontier.Next.Offset < to.Offset {
			o.frontier, o.anew, moved = stream.Frontier{Next: to, LeaderEpoch: -1}, commit.Anew{Before: to, Reason: reason}, true
		}
	})
	return moved, err
}

// Sweep implements commit.Operations.
func (m *MemoryStore) Sweep(ctx context.Context, t *commit.Tenure) error {
	return m.fenced(ctx, "sweep", t, func(o *owner) {
		for at, stones := range m.tombstones {
			if at.ownerKey == keyOf(t) {
				m.tombstones[at] = slices.DeleteFunc(stones, func(x tombstone) bool {
					return x.revision.Compare(o.frontier.Next) < 0 && x.floor <= o.floor
				})
			}
		}
		for at, rows := range m.quarantine {
			if r := m.rows[at]; at.ownerKey == keyOf(t) && r != nil {
				for rev := range rows {
					if r.current.Revision.Covers(rev) {
						delete(rows, rev)
					}
				}
			}
		}
	})
}

// Tombstones counts the partition's tombstones, for assertions.
func (m *MemoryStore) Tombstones(t *commit.Tenure) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := 0
	for at, stones := range m.tombstones {
		if at.ownerKey == keyOf(t) {
			n += len(stones)
		}
	}
	return n
}
