package pgstore

import (
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"milepost/internal/commit"
)

// promoteSQL makes the prepared columns the current ones where exactly the named commit stands prepared: a prepare that
// folded it meanwhile has done so already. What was released from quarantine leaves it here, when it becomes current (H10):
// a key that is being released prepares nothing further before its promotion is known, so no prepare folds such a commit.
const promoteSQL = fenceCTE + `, updated AS (
    UPDATE checkpoint c SET
        revision_generation = c.prepared_generation,
        revision_offset     = c.prepared_offset,
        segment             = c.prepared_segment,
        commit_id           = c.prepared_id,
        state               = c.prepared_state,
        expired             = false,
        has_prepared        = false,
        prepared_generation = NULL,
        prepared_offset     = NULL,
        prepared_segment    = NULL,
        prepared_epoch      = NULL,
        prepared_id         = NULL,
        prepared_state      = NULL,
        prepared_outputs    = NULL
    FROM unnest($6::int[], $7::bytea[], $8::int[], $9::bigint[], $10::uuid[])
             WITH ORDINALITY AS i(fence, key, generation, at_offset, id, n)
    JOIN fence f ON f.n = i.fence
    WHERE c.group_id = f.group_id AND c.topic = f.topic AND c.partition = f.partition AND c.key = i.key
      AND c.has_prepared AND c.prepared_generation = i.generation AND c.prepared_offset = i.at_offset AND c.prepared_id = i.id
    RETURNING i.n, c.group_id, c.topic, c.partition, c.key, i.generation, i.at_offset
), released AS (
    DELETE FROM quarantine q USING updated u
    WHERE q.group_id = u.group_id AND q.topic = u.topic AND q.partition = u.partition AND q.key = u.key
      AND q.revision_generation = u.generation AND q.revision_offset = u.at_offset
)
SELECT true, n FROM fence UNION ALL SELECT false, n FROM updated`

type promoting struct {
	commit.Promotion
	index int
	place place
}

// Promote implements commit.Store.
func (s *Store) Promote(ctx context.Context, batch []commit.Promotion) ([]error, error) {
	items := make([]promoting, len(batch))
	for i, p := range batch {
		items[i] = promoting{p, i, placeOf(p.Tenure, p.Key)}
	}
	slices.SortFunc(items, func(a, b promoting) int { return a.place.compare(b.place) })
	judged, err := isolate(items, func(items []promoting) ([]error, error) { return s.promote(ctx, items) }, itself)
	if err != nil {
		return nil, err
	}
	errs := make([]error, len(batch))
	for i, err := range judged {
		errs[items[i].index] = err
	}
	return errs, nil
}

// itself is the verdict of an item that is its error.
func itself(err error) error { return err }

func (s *Store) promote(ctx context.Context, items []promoting) ([]error, error) {
	n := len(items)
	f := &fence{}
	fences, keys, ids := make([]int32, n), make([][]byte, n), make(uuids, n)
	generations, offsets, places := make([]int32, n), make([]int64, n), make([]place, n)
	for i, p := range items {
		fences[i], keys[i], ids[i] = f.add(p.Tenure), []byte(p.Key), uuid(p.ID)
		generations[i], offsets[i], places[i] = p.Revision.Generation, p.Revision.Offset, p.place
	}
	held, done, err := s.fencedWrite(ctx, "promote", promoteSQL, f.args(fences, keys, generations, offsets, ids))
	if err != nil {
		return nil, err
	}
	refused, err := s.refusals(ctx, f, held)
	if err != nil {
		return nil, err
	}
	errs := make([]error, n)
	if len(done) == n {
		return errs, nil
	}
	found, err := s.standings(ctx, places)
	if err != nil {
		return nil, err
	}
	for i, p := range items {
		switch now := found[i]; {
		case done[int64(i+1)]:
		case refused[fences[i]] != nil:
			errs[i] = refused[fences[i]]
		case now.revision.Covers(p.Revision):
		case !now.prepared.IsZero() && now.preparedID == p.ID:
			errs[i] = fmt.Errorf("promote key %q: its row changed while it was judged", p.Key)
		default:
			errs[i] = &commit.ConflictError{Key: p.Key, Want: p.Revision, Actual: now.revision}
		}
	}
	return errs, nil
}

// fencedWrite runs a write whose answer names the fence rows that held (true) and the items that were done (false).
func (s *Store) fencedWrite(ctx context.Context, what, sql string, args []any) (held map[int32]bool, done map[int64]bool, err error) {
	held, done = map[int32]bool{}, map[int64]bool{}
	err = s.rows(ctx, what, sql, args, func(row pgx.CollectableRow) error {
		var ofFence bool
		var n int64
		if err := row.Scan(&ofFence, &n); err != nil {
			return err
		}
		if ofFence {
			held[int32(n)] = true
		} else {
			done[n] = true
		}
		return nil
	})
	return held, done, err
}
