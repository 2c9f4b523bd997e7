package committest

import (
	"cmp"
	"context"
	"slices"
	"time"

	"milepost/internal/commit"
	"milepost/internal/stream"
)

var _ commit.Retention = (*MemoryStore)(nil)

// mayExpire says whether retention may let go of a row's state, whatever its age.
func (m *MemoryStore) mayExpire(at rowKey, r *row) bool {
	o := m.owners[at.ownerKey]
	return o != nil && r.prepared == nil && !r.expired && !r.current.Revision.IsZero() &&
		r.current.Revision.Compare(o.frontier.Next) < 0 && len(m.quarantine[at]) == 0
}

// Quiet implements commit.Retention.
func (m *MemoryStore) Quiet(ctx context.Context, t *commit.Tenure, after stream.Key, age time.Duration, limit int) ([]commit.Quiet, stream.Key, error) {
	var quiet []commit.Quiet
	var next stream.Key
	err := m.do(ctx, "quiet", func() {
		var keys []rowKey
		for at := range m.rows {
			if at.ownerKey == keyOf(t) && at.key > after {
				keys = append(keys, at)
			}
		}
		slices.SortFunc(keys, func(a, b rowKey) int { return cmp.Compare(a.key, b.key) })
		if len(keys) >= limit {
			keys = keys[:limit]
			next = keys[limit-1].key
		}
		for _, at := range keys {
			if r := m.rows[at]; m.mayExpire(at, r) && time.Since(r.touched) >= age { //nolint:forbidigo // as a database's own clock
				quiet = append(quiet, commit.Quiet{Key: at.key, Revision: r.current.Revision, State: r.current.State})
			}
		}
	})
	return quiet, next, err
}

// Expire implements commit.Retention.
func (m *MemoryStore) Expire(ctx context.Context, t *commit.Tenure, tails []commit.Tail) (int, error) {
	expired := 0
	var fenced error
	err := m.do(ctx, "expire", func() {
		if fenced = m.fence(t); fenced != nil {
			return
		}
		for _, x := range tails {
			at := rowKey{keyOf(t), x.Key}
			if r := m.rows[at]; r != nil && r.current.Revision == x.Revision && m.mayExpire(at, r) {
				r.current.State, r.expired = x.State, true
				expired++
			}
		}
	})
	return expired, cmp.Or(err, fenced)
}
