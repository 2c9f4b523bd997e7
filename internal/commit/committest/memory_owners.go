package committest

import (
	"cmp"
	"context"
	"slices"

	"milepost/internal/commit"
	"milepost/internal/stream"
)

// Epochs implements commit.Owners.
func (m *MemoryStore) Epochs(ctx context.Context, group string, partitions []stream.Partition) ([]commit.OwnerRow, error) {
	rows := make([]commit.OwnerRow, len(partitions))
	err := m.do(ctx, "epochs", func() {
		for i, p := range partitions {
			at := ownerKey{group, p}
			if m.owners[at] == nil {
				m.owners[at] = &owner{OwnerRow: commit.OwnerRow{Partition: p, TopicGeneration: 1}, released: true}
			}
			rows[i] = m.owners[at].OwnerRow
		}
	})
	return rows, err
}

// Acquire implements commit.Owners.
func (m *MemoryStore) Acquire(ctx context.Context, claims []commit.Claim) ([]bool, error) {
	won := make([]bool, len(claims))
	err := m.do(ctx, "acquire", func() {
		for i, c := range claims {
			o := m.owners[ownerKey{c.Group, c.Partition}]
			mode := cmp.Or(c.PublishMode, commit.Transactional)
			if o == nil || o.Epoch != c.Expected || (o.Epoch > 0 && o.PublishMode != mode) {
				continue
			}
			won[i] = true
			if !o.released {
				o.formers = append(o.formers, commit.Former{Instance: o.instance, Lanes: o.lanes, Epoch: o.Epoch})
			}
			if !o.HasFrontier {
				o.HasFrontier, o.frontier, o.floor = true, c.First, c.FirstFloor
			}
			o.Epoch, o.nonce, o.instance, o.lanes, o.released = c.Expected+1, c.Nonce, c.Instance, c.Lanes, false
			o.Generation, o.TopicID, o.TopicGeneration = c.Generation, c.TopicID, c.TopicGeneration
			o.LedgerTopicID, o.Partitions, o.PublishMode = c.LedgerTopicID, c.Partitions, mode
		}
	})
	return won, err
}

// Start implements commit.Owners.
func (m *MemoryStore) Start(ctx context.Context, tenures []*commit.Tenure) ([]commit.Start, error) {
	starts := make([]commit.Start, len(tenures))
	err := m.do(ctx, "start", func() {
		for i, t := range tenures {
			o := m.owners[keyOf(t)]
			if o == nil {
				continue
			}
			starts[i] = commit.Start{Frontier: o.frontier, LedgerFloor: o.floor, Formers: slices.Clone(o.formers), Anew: o.anew}
			for at, r := range m.rows {
				if at.ownerKey == keyOf(t) && r.prepared != nil {
					starts[i].Prepared++
				}
			}
		}
	})
	return starts, err
}

// Holds implements commit.Owners.
func (m *MemoryStore) Holds(ctx context.Context, tenures []*commit.Tenure) ([]bool, error) {
	holds := make([]bool, len(tenures))
	err := m.do(ctx, "holds", func() {
		for i, t := range tenures {
			holds[i] = m.fence(t) == nil
		}
	})
	return holds, err
}

// Recovered implements commit.Owners.
func (m *MemoryStore) Recovered(ctx context.Context, t *commit.Tenure, formers []commit.Former) error {
	return m.fenced(ctx, "recovered", t, func(o *owner) {
		o.formers = slices.DeleteFunc(o.formers, func(f commit.Former) bool { return slices.Contains(formers, f) })
	})
}

// Release implements commit.Owners.
func (m *MemoryStore) Release(ctx context.Context, t *commit.Tenure) error {
	return m.fenced(ctx, "release", t, func(o *owner) { o.released = true })
}

func (m *MemoryStore) fenced(ctx context.Context, op string, t *commit.Tenure, f func(*owner)) error {
	var fence error
	err := m.do(ctx, op, func() {
		if fence = m.fence(t); fence == nil {
			f(m.owners[keyOf(t)])
		}
	})
	if err != nil {
		return err
	}
	return fence
}

// Owner gives a partition's row and frontier as they stand, for assertions.
func (m *MemoryStore) Owner(group string, p stream.Partition) (commit.OwnerRow, commit.Start, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	o := m.owners[ownerKey{group, p}]
	if o == nil {
		return commit.OwnerRow{}, commit.Start{}, false
	}
	return o.OwnerRow, commit.Start{Frontier: o.frontier, LedgerFloor: o.floor, Formers: slices.Clone(o.formers)}, o.released
}
