package pgstore

import (
	"context"
	"fmt"
	"slices"

	"milepost/internal/commit"
)

// persistSQL makes the items the current checkpoint of rows that have their base and nothing prepared; an item without a
// base inserts its row. The answer is that of prepareSQL.
const persistSQL = fenceCTE + `, item AS (
    SELECT i.n, f.group_id, f.topic, f.partition, i.key, i.base_generation, i.base_offset, i.generation, i.at_offset, i.segment, i.id, i.state
    FROM unnest($6::int[], $7::bytea[], $8::int[], $9::bigint[], $10::int[], $11::bigint[], $12::bigint[], $13::uuid[], $14::bytea[])
             WITH ORDINALITY AS i(fence, key, base_generation, base_offset, generation, at_offset, segment, id, state, n)
    JOIN fence f ON f.n = i.fence
), updated AS (
    UPDATE checkpoint c SET
        revision_generation = i.generation,
        revision_offset     = i.at_offset,
        segment             = i.segment,
        commit_id           = i.id,
        state               = i.state,
        expired             = false,
        touched_at          = now()
    FROM item i
    WHERE c.group_id = i.group_id AND c.topic = i.topic AND c.partition = i.partition AND c.key = i.key
      AND NOT c.has_prepared AND c.revision_generation = i.base_generation AND c.revision_offset = i.base_offset
    RETURNING i.n
), inserted AS (
    INSERT INTO checkpoint (group_id, topic, partition, key, revision_generation, revision_offset, segment, commit_id, state, has_prepared)
    SELECT group_id, topic, partition, key, generation, at_offset, segment, id, state, false
    FROM item
    WHERE base_generation = 0
    ON CONFLICT (group_id, topic, partition, key) DO NOTHING
    RETURNING group_id, topic, partition, key
)
SELECT 0, n, NULL::text, NULL::text, NULL::int, NULL::bytea FROM fence
UNION ALL SELECT 1, n, NULL, NULL, NULL, NULL FROM updated
UNION ALL SELECT 2, 0, group_id, topic, partition, key FROM inserted`

// persisting is one checkpoint of a persist.
type persisting struct {
	*commit.Persist
	index int // in the caller's batch
	place place
}

// Persist implements commit.Store.
func (s *Store) Persist(ctx context.Context, batch []commit.Persist) ([]error, error) {
	errs := make([]error, len(batch))
	items := make([]persisting, 0, len(batch))
	for i := range batch {
		p := &batch[i]
		if n := len(p.Next.State); n > s.cfg.MaxRowBytes {
			errs[i] = fmt.Errorf("persist: the state has %d bytes, the limit is %d: %w", n, s.cfg.MaxRowBytes, commit.ErrPermanent)
			continue
		}
		items = append(items, persisting{p, i, placeOf(p.Tenure, p.Key)})
	}
	slices.SortFunc(items, func(a, b persisting) int { return a.place.compare(b.place) })
	judged, err := isolate(items, func(items []persisting) ([]error, error) { return s.persist(ctx, items) }, itself)
	if err != nil {
		return nil, err
	}
	for i, err := range judged {
		errs[items[i].index] = err
	}
	return errs, nil
}

// persist sends the items in one statement and judges those that it did not write by what stands there afterwards.
func (s *Store) persist(ctx context.Context, items []persisting) ([]error, error) {
	f, args := persistArgs(items)
	places, inserts := make([]place, len(items)), map[place]int{}
	for i := range items {
		if places[i] = items[i].place; items[i].Base.IsZero() {
			inserts[places[i]] = i
		}
	}
	held, written, err := s.swap(ctx, "persist", persistSQL, args, len(items), inserts)
	if err != nil {
		return nil, err
	}
	refused, err := s.refusals(ctx, f, held)
	if err != nil {
		return nil, err
	}
	errs := make([]error, len(items))
	if !slices.Contains(written, false) {
		return errs, nil
	}
	found, err := s.standings(ctx, places)
	if err != nil {
		return nil, err
	}
	for i, p := range items {
		if written[i] {
			continue
		}
		if errs[i] = refused[f.number[p.Tenure]]; errs[i] == nil {
			errs[i] = stored(p.Persist, found[i])
		}
	}
	return errs, nil
}

func persistArgs(items []persisting) (*fence, []any) {
	var c columns
	for _, x := range items {
		c.add(x.Tenure, x.Key, x.Base, x.Next, x.ID)
	}
	return &c.fence, c.args()
}

// stored judges a checkpoint that a statement did not write by its row as it stands; nil: it is what is current.
func stored(p *commit.Persist, now standing) error {
	switch {
	case !now.prepared.IsZero():
		return &commit.BusyError{Key: p.Key, Prepared: now.prepared}
	case now.revision == p.Next.Revision && now.id == p.ID:
		return nil
	case now.revision == p.Base:
		return fmt.Errorf("persist of key %q: its row changed while it was judged", p.Key)
	}
	return &commit.ConflictError{Key: p.Key, Want: p.Base, Actual: now.revision}
}
