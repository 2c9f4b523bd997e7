package pgstore

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"milepost/internal/commit"
	"milepost/internal/stream"
)

const restoreSQL = `
SELECT i.n, i.key, c.revision_generation, c.revision_offset, c.segment, c.state,
       c.prepared_generation, c.prepared_offset, c.prepared_segment, c.prepared_id, c.prepared_state, c.prepared_outputs,
       q.kept, q.discarded_generation, q.discarded_offset, false, c.expired
FROM unnest($4::bytea[]) WITH ORDINALITY AS i(key, n)
LEFT JOIN checkpoint c ON c.group_id = $1 AND c.topic = $2 AND c.partition = $3 AND c.key = i.key
LEFT JOIN LATERAL (
    SELECT EXISTS (
               SELECT FROM quarantine k
               WHERE k.group_id = $1 AND k.topic = $2 AND k.partition = $3 AND k.key = i.key AND k.discarded_at IS NULL) AS kept,
           d.revision_generation AS discarded_generation, d.revision_offset AS discarded_offset
    FROM (SELECT) nothing
    LEFT JOIN LATERAL (
        SELECT t.revision_generation, t.revision_offset
        FROM quarantine t
        WHERE t.group_id = $1 AND t.topic = $2 AND t.partition = $3 AND t.key = i.key AND t.discarded_at IS NOT NULL
        ORDER BY t.revision_generation DESC, t.revision_offset DESC LIMIT 1) d ON true
) q ON true`

const preparedSQL = `
SELECT 0::bigint, c.key, c.revision_generation, c.revision_offset, c.segment, c.state,
       c.prepared_generation, c.prepared_offset, c.prepared_segment, c.prepared_id, c.prepared_state, c.prepared_outputs, false, NULL::int, NULL::bigint,
       EXISTS (SELECT FROM quarantine q
               WHERE q.group_id = c.group_id AND q.topic = c.topic AND q.partition = c.partition AND q.key = c.key
                 AND q.revision_generation = c.prepared_generation AND q.revision_offset = c.prepared_offset AND q.discarded_at IS NULL), c.expired
FROM checkpoint c
WHERE c.group_id = $1 AND c.topic = $2 AND c.partition = $3 AND c.has_prepared AND c.key > $4::bytea
ORDER BY c.key
LIMIT $5`

// row is a checkpoint row as both queries give it.
type row struct {
	n                             int64
	key                           []byte
	generation                    pgtype.Int4
	offset, segment               pgtype.Int8
	state                         []byte
	preparedGeneration            pgtype.Int4
	preparedOffset                pgtype.Int8
	preparedSegment               pgtype.Int8
	preparedID                    pgtype.UUID
	preparedState, preparedOutput []byte
	quarantined, released         bool
	discardedGeneration           pgtype.Int4
	discardedOffset               pgtype.Int8
	expired                       pgtype.Bool
}

func (r *row) scan(from pgx.CollectableRow) error {
	return from.Scan(&r.n, &r.key, &r.generation, &r.offset, &r.segment, &r.state, &r.preparedGeneration, &r.preparedOffset,
		&r.preparedSegment, &r.preparedID, &r.preparedState, &r.preparedOutput, &r.quarantined, &r.discardedGeneration, &r.discardedOffset, &r.released, &r.expired)
}

func (r *row) revision() stream.Revision {
	return stream.Revision{Generation: r.generation.Int32, Offset: r.offset.Int64}
}

func (r *row) discarded() stream.Revision {
	return stream.Revision{Generation: r.discardedGeneration.Int32, Offset: r.discardedOffset.Int64}
}

// prepared gives the commit that stands prepared in the row, nil without one. Its base is the row's current revision: a
// prepare leaves no other there.
func (r *row) prepared(t *commit.Tenure) (*commit.Commit, error) {
	if !r.preparedGeneration.Valid {
		return nil, nil
	}
	outputs, earlier, err := commit.DecodeOutputs(r.preparedOutput)
	if err != nil {
		return nil, fmt.Errorf("prepared commit of key %q: %w", r.key, err)
	}
	at := stream.Revision{Generation: r.preparedGeneration.Int32, Offset: r.preparedOffset.Int64}
	return &commit.Commit{
		Tenure: t, ID: r.preparedID.Bytes, Key: stream.Key(r.key), Revision: at, Earlier: earlier, Base: r.revision(), Outputs: outputs, Released: r.released,
		Next: commit.Checkpoint{Revision: at, Segment: r.preparedSegment.Int64, State: r.preparedState},
	}, nil
}

// Restore implements commit.Store.
func (s *Store) Restore(ctx context.Context, t *commit.Tenure, keys []stream.Key) ([]commit.Restored, error) {
	wanted := make([][]byte, len(keys))
	for i, k := range keys {
		wanted[i] = []byte(k)
	}
	restored := make([]commit.Restored, len(keys))
	args := []any{t.Group, t.Partition.Topic, t.Partition.Number, wanted}
	err := s.rows(ctx, "restore", restoreSQL, args, func(from pgx.CollectableRow) error {
		var r row
		if err := r.scan(from); err != nil {
			return err
		}
		prepared, err := r.prepared(t)
		if err != nil {
			return err
		}
		to := &restored[r.n-1]
		*to = commit.Restored{Key: stream.Key(r.key), Prepared: prepared, Quarantined: r.quarantined, Discarded: r.discarded()}
		if at := r.revision(); !at.IsZero() {
			to.Checkpoint = commit.Checkpoint{Revision: at, Segment: r.segment.Int64, State: r.state}
			to.Expired = r.expired.Bool || r.state == nil
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return restored, nil
}

// Prepared implements commit.Store.
func (s *Store) Prepared(ctx context.Context, t *commit.Tenure, after stream.Key, limit int) ([]commit.Commit, error) {
	var page []commit.Commit
	args := []any{t.Group, t.Partition.Topic, t.Partition.Number, []byte(after), limit}
	err := s.rows(ctx, "list prepared commits", preparedSQL, args, func(from pgx.CollectableRow) error {
		var r row
		if err := r.scan(from); err != nil {
			return err
		}
		c, err := r.prepared(t)
		if err != nil {
			return err
		}
		page = append(page, *c)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return page, nil
}
