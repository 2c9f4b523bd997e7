package pgstore

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"milepost/internal/commit"
	"milepost/internal/stream"
)

var _ commit.Operations = (*Store)(nil)

const requestsSQL = `
SELECT r.topic, r.partition, r.id, r.kind, r.key, r.argument
FROM unnest($2::text[], $3::int[]) AS p(topic, partition)
JOIN operator_request r ON r.group_id = $1 AND r.topic = p.topic AND r.partition = p.partition AND r.state = 'waiting'
ORDER BY r.id
LIMIT $4`

// Requests implements commit.Operations.
func (s *Store) Requests(ctx context.Context, group string, partitions []stream.Partition, limit int) ([]commit.Request, error) {
	topics, numbers := make([]string, len(partitions)), make([]int32, len(partitions))
	for i, p := range partitions {
		topics[i], numbers[i] = p.Topic, p.Number
	}
	var all []commit.Request
	err := s.rows(ctx, "read operators' requests", requestsSQL, []any{group, topics, numbers, limit}, func(row pgx.CollectableRow) error {
		var (
			r      commit.Request
			key    []byte
			offset pgtype.Int8
		)
		if err := row.Scan(&r.Partition.Topic, &r.Partition.Number, &r.ID, &r.Kind, &key, &offset); err != nil {
			return err
		}
		r.Key, r.Offset = stream.Key(key), offset.Int64
		all = append(all, r)
		return nil
	})
	return all, err
}

const answerSQL = fenceCTE + `, answered AS (
    UPDATE operator_request r SET state = $7, outcome = $8, epoch = f.epoch, done_at = clock_timestamp()
    FROM fence f
    WHERE r.group_id = f.group_id AND r.topic = f.topic AND r.partition = f.partition AND r.id = $6 AND r.state = 'waiting'
    RETURNING f.n
)
SELECT true, n FROM fence UNION ALL SELECT false, n FROM answered`

// Answer implements commit.Operations.
func (s *Store) Answer(ctx context.Context, t *commit.Tenure, a commit.Answer) error {
	state := "done"
	if a.Failed {
		state = "failed"
	}
	_, err := s.fencedOne(ctx, "answer an operator's request", answerSQL, t, a.Request, state, text(a.Outcome))
	return err
}

// fencedOne runs a write under one tenure's fence and reports whether it changed anything.
func (s *Store) fencedOne(ctx context.Context, what, sql string, t *commit.Tenure, more ...any) (bool, error) {
	f := &fence{}
	n := f.add(t)
	held, done, err := s.fencedWrite(ctx, what, sql, f.args(more...))
	if err != nil {
		return false, err
	}
	refused, err := s.refusals(ctx, f, held)
	if err != nil {
		return false, err
	}
	return len(done) > 0, refused[n]
}

const asidesSQL = `
SELECT q.revision_generation, q.revision_offset, q.record
FROM quarantine q
LEFT JOIN checkpoint c ON c.group_id = q.group_id AND c.topic = q.topic AND c.partition = q.partition AND c.key = q.key
WHERE q.group_id = $1 AND q.topic = $2 AND q.partition = $3 AND q.key = $4 AND q.discarded_at IS NULL
  AND (q.revision_generation, q.revision_offset) > ($5::int, $6::bigint)
  AND (q.revision_generation, q.revision_offset) > (coalesce(c.revision_generation, 0), coalesce(c.revision_offset, 0))
ORDER BY q.revision_generation, q.revision_offset
LIMIT $7`

// Asides implements commit.Operations. What is planned over a stale read fails its swap, so it needs no fence.
func (s *Store) Asides(ctx context.Context, t *commit.Tenure, key stream.Key, after stream.Revision, limit int) ([]commit.Aside, error) {
	var all []commit.Aside
	args := []any{t.Group, t.Partition.Topic, t.Partition.Number, []byte(key), after.Generation, after.Offset, limit}
	err := s.rows(ctx, "read quarantined observations", asidesSQL, args, func(row pgx.CollectableRow) error {
		var a commit.Aside
		var record []byte
		if err := row.Scan(&a.Revision.Generation, &a.Revision.Offset, &record); err != nil {
			return err
		}
		var err error
		a.Record, err = commit.DecodeRecord(record)
		all = append(all, a)
		return err
	})
	return all, err
}

// discardSQL empties the rows but for what makes them tombstones. A commit that stands prepared for one of them goes in
// the same statement: its outputs will never be published.
const discardSQL = fenceCTE + `, gone AS (
    UPDATE quarantine q SET
        discarded_at = clock_timestamp(), tombstone_floor = $7, record = '',
        prepared_id = NULL, prepared_segment = NULL, prepared_state = NULL, prepared_outputs = NULL
    FROM fence f
    WHERE q.group_id = f.group_id AND q.topic = f.topic AND q.partition = f.partition AND q.key = $6 AND q.discarded_at IS NULL
    RETURNING f.n, q.group_id, q.topic, q.partition, q.key, q.revision_generation, q.revision_offset
), cleared AS (
    UPDATE checkpoint c SET
        has_prepared = false, prepared_generation = NULL, prepared_offset = NULL, prepared_segment = NULL, prepared_epoch = NULL,
        prepared_id = NULL, prepared_state = NULL, prepared_outputs = NULL
    FROM gone g
    WHERE c.group_id = g.group_id AND c.topic = g.topic AND c.partition = g.partition AND c.key = g.key
      AND c.has_prepared AND c.prepared_generation = g.revision_generation AND c.prepared_offset = g.revision_offset
)
SELECT true, n FROM fence UNION ALL SELECT false, count(*) FROM gone HAVING count(*) > 0`

const tombstoneSQL = `
SELECT q.revision_generation, q.revision_offset
FROM quarantine q
WHERE q.group_id = $1 AND q.topic = $2 AND q.partition = $3 AND q.key = $4 AND q.discarded_at IS NOT NULL
ORDER BY q.revision_generation DESC, q.revision_offset DESC
LIMIT 1`

// Discard implements commit.Operations.
func (s *Store) Discard(ctx context.Context, t *commit.Tenure, key stream.Key, floor int64) (commit.Discarded, error) {
	var d commit.Discarded
	f := &fence{}
	n := f.add(t)
	held, gone, err := s.fencedWrite(ctx, "discard quarantined observations", discardSQL, f.args([]byte(key), floor))
	if err != nil {
		return d, err
	}
	refused, err := s.refusals(ctx, f, held)
	if err == nil {
		err = refused[n]
	}
	if err != nil {
		return d, err
	}
	for count := range gone {
		d.Rows = int(count)
	}
	args := []any{t.Group, t.Partition.Topic, t.Partition.Number, []byte(key)}
	err = s.rows(ctx, "read tombstones", tombstoneSQL, args, func(row pgx.CollectableRow) error {
		return row.Scan(&d.Until.Generation, &d.Until.Offset)
	})
	return d, err
}

const seekSQL = fenceCTE + `, request AS (
    SELECT f.n, f.group_id, f.topic, f.partition, f.epoch, r.id
    FROM fence f
    JOIN operator_request r ON r.group_id = f.group_id AND r.topic = f.topic AND r.partition = f.partition
    WHERE r.id = $6 AND r.state = 'waiting'
    FOR UPDATE OF r
), moved AS (
    UPDATE partition_frontier p SET next_offset = $8, leader_epoch = -1, oldest_pending_ms = 0, seen_at = clock_timestamp()
    FROM request q
    WHERE p.group_id = q.group_id AND p.topic = q.topic AND p.partition = q.partition
      AND p.topic_generation = $7 AND p.next_offset < $8
    RETURNING q.n, q.id, q.epoch
), answered AS (
    UPDATE operator_request r SET state = 'done', outcome = $9, epoch = m.epoch, done_at = clock_timestamp()
    FROM moved m, request q
    WHERE r.group_id = q.group_id AND r.topic = q.topic AND r.partition = q.partition AND r.id = q.id
)
SELECT true, n FROM fence UNION ALL SELECT false, n FROM moved`

// Seek implements commit.Operations.
func (s *Store) Seek(ctx context.Context, t *commit.Tenure, request int64, to stream.Revision, outcome string) (bool, error) {
	if to.Generation != t.TopicGeneration {
		return false, errors.New("seek: another topic generation than the tenure's")
	}
	return s.fencedOne(ctx, "seek", seekSQL, t, request, to.Generation, to.Offset, text(outcome))
}

const loseSQL = fenceCTE + `, moved AS (
    UPDATE partition_frontier p SET
        next_offset = $7, leader_epoch = -1, seen_at = clock_timestamp(), anew_generation = $6, anew_offset = $7, anew_reason = $8
    FROM fence f
    WHERE p.group_id = f.group_id AND p.topic = f.topic AND p.partition = f.partition AND p.topic_generation = $6 AND p.next_offset < $7
    RETURNING f.n
)
SELECT true, n FROM fence UNION ALL SELECT false, n FROM moved`

// Lose implements commit.Operations.
func (s *Store) Lose(ctx context.Context, t *commit.Tenure, to stream.Revision, reason string) (bool, error) {
	return s.fencedOne(ctx, "move over lost observations", loseSQL, t, to.Generation, to.Offset, reason)
}

const sweepSQL = fenceCTE + `, swept AS (
    DELETE FROM quarantine q
    USING fence f
    JOIN partition_frontier p ON p.group_id = f.group_id AND p.topic = f.topic AND p.partition = f.partition
    WHERE q.group_id = f.group_id AND q.topic = f.topic AND q.partition = f.partition
      AND CASE WHEN q.discarded_at IS NOT NULL
          THEN (q.revision_generation, q.revision_offset) < (p.topic_generation, p.next_offset) AND q.tombstone_floor <= p.ledger_floor
          ELSE EXISTS (
              SELECT FROM checkpoint c
              WHERE c.group_id = q.group_id AND c.topic = q.topic AND c.partition = q.partition AND c.key = q.key
                AND (c.revision_generation, c.revision_offset) >= (q.revision_generation, q.revision_offset)) END
    RETURNING f.n
)
SELECT true, n FROM fence UNION ALL SELECT DISTINCT false, n FROM swept`

// Sweep implements commit.Operations.
func (s *Store) Sweep(ctx context.Context, t *commit.Tenure) error {
	_, err := s.fencedOne(ctx, "sweep the quarantine", sweepSQL, t)
	return err
}
