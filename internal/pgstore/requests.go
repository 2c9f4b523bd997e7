package pgstore

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"milepost/internal/commit"
	"milepost/internal/stream"
)

// QuarantineEntry is one observation in quarantine, for people and tools.
type QuarantineEntry struct {
	Partition stream.Partition
	Key       stream.Key
	Revision  stream.Revision
	Class     string
	Reason    string
	Published bool
	Epoch     stream.Epoch
	At        time.Time
	// Evidence says that a commit was prepared for it that could not be published.
	Evidence bool
	// Record and Outputs are there only where they were asked for.
	Record  *stream.Record
	Outputs []commit.Output
}

// QuarantineKey is a key in quarantine, for people and tools.
type QuarantineKey struct {
	Partition   stream.Partition
	Key         stream.Key
	Rows        int
	First, Last stream.Revision
	Class       string // of the first
	Reason      string
	Since       time.Time
}

const quarantineKeysSQL = `
SELECT q.partition, q.key, count(*),
       (array_agg(q.revision_generation ORDER BY q.revision_generation, q.revision_offset))[1],
       (array_agg(q.revision_offset ORDER BY q.revision_generation, q.revision_offset))[1],
       (array_agg(q.revision_generation ORDER BY q.revision_generation DESC, q.revision_offset DESC))[1],
       (array_agg(q.revision_offset ORDER BY q.revision_generation DESC, q.revision_offset DESC))[1],
       (array_agg(q.class ORDER BY q.revision_generation, q.revision_offset))[1],
       (array_agg(q.reason ORDER BY q.revision_generation, q.revision_offset))[1],
       min(q.at)
FROM quarantine q
WHERE q.group_id = $1 AND q.topic = $2 AND q.discarded_at IS NULL
GROUP BY q.partition, q.key
ORDER BY min(q.at), q.partition, q.key
LIMIT $3`

// QuarantineKeys lists the keys in quarantine of a group's raw topic, the longest there first, at most limit.
func (s *Store) QuarantineKeys(ctx context.Context, group, topic string, limit int) ([]QuarantineKey, error) {
	var all []QuarantineKey
	err := s.rows(ctx, "list quarantined keys", quarantineKeysSQL, []any{group, topic, limit}, func(row pgx.CollectableRow) error {
		k := QuarantineKey{Partition: stream.Partition{Topic: topic}}
		var key []byte
		if err := row.Scan(&k.Partition.Number, &key, &k.Rows, &k.First.Generation, &k.First.Offset, &k.Last.Generation, &k.Last.Offset,
			&k.Class, &k.Reason, &k.Since); err != nil {
			return err
		}
		k.Key = stream.Key(key)
		all = append(all, k)
		return nil
	})
	return all, err
}

const quarantineEntriesSQL = `
SELECT q.partition, q.revision_generation, q.revision_offset, q.class, q.reason, q.published, q.epoch, q.at,
       q.record, q.prepared_id IS NOT NULL, q.prepared_outputs
FROM quarantine q
WHERE q.group_id = $1 AND q.topic = $2 AND q.key = $3 AND q.discarded_at IS NULL
ORDER BY q.partition, q.revision_generation, q.revision_offset
LIMIT $4`

// QuarantineEntries gives a key's quarantined observations in their order, with their records and the prepared commits that
// could not be published, at most limit.
func (s *Store) QuarantineEntries(ctx context.Context, group, topic string, key stream.Key, limit int) ([]QuarantineEntry, error) {
	var all []QuarantineEntry
	args := []any{group, topic, []byte(key), limit}
	err := s.rows(ctx, "show quarantined observations", quarantineEntriesSQL, args, func(row pgx.CollectableRow) error {
		e := QuarantineEntry{Partition: stream.Partition{Topic: topic}, Key: key}
		var record, outputs []byte
		if err := row.Scan(&e.Partition.Number, &e.Revision.Generation, &e.Revision.Offset, &e.Class, &e.Reason, &e.Published, &e.Epoch, &e.At,
			&record, &e.Evidence, &outputs); err != nil {
			return err
		}
		r, err := commit.DecodeRecord(record)
		if err != nil {
			return fmt.Errorf("observation %s of key %q: %w", e.Revision, key, err)
		}
		e.Record = &r
		if e.Evidence {
			if e.Outputs, _, err = commit.DecodeOutputs(outputs); err != nil {
				return fmt.Errorf("evidence of observation %s of key %q: %w", e.Revision, key, err)
			}
		}
		all = append(all, e)
		return nil
	})
	return all, err
}

// RequestState is where a request stands.
type RequestState struct {
	ID        int64
	Partition stream.Partition
	Key       stream.Key
	State     string // waiting, done, failed or withdrawn
	Outcome   string
	Epoch     stream.Epoch // that answered
}

const askKeysSQL = `
INSERT INTO operator_request (group_id, topic, partition, kind, key)
SELECT DISTINCT q.group_id, q.topic, q.partition, $3, q.key
FROM quarantine q
WHERE q.group_id = $1 AND q.topic = $2 AND q.discarded_at IS NULL AND ($4::bytea IS NULL OR q.key = $4)
ORDER BY q.partition, q.key
LIMIT $5
RETURNING id`

// AskKeys requests something of every key in quarantine, or of one, and gives the requests' numbers: none where nothing
// of the kind is in quarantine.
func (s *Store) AskKeys(ctx context.Context, group, topic string, kind commit.RequestKind, key stream.Key, limit int) ([]int64, error) {
	var one []byte
	if key != "" {
		one = []byte(key)
	}
	return s.ask(ctx, askKeysSQL, group, topic, string(kind), one, limit)
}

const askSeekSQL = `
INSERT INTO operator_request (group_id, topic, partition, kind, argument) VALUES ($1, $2, $3, 'seek', $4) RETURNING id`

// AskSeek requests that a partition's frontier be moved forward to an offset.
func (s *Store) AskSeek(ctx context.Context, group string, p stream.Partition, offset int64) ([]int64, error) {
	return s.ask(ctx, askSeekSQL, group, p.Topic, p.Number, offset)
}

func (s *Store) ask(ctx context.Context, sql string, args ...any) ([]int64, error) {
	var ids []int64
	err := s.rows(ctx, "write a request", sql, args, func(row pgx.CollectableRow) error {
		var id int64
		if err := row.Scan(&id); err != nil {
			return err
		}
		ids = append(ids, id)
		return nil
	})
	return ids, err
}

const requestStatesSQL = `
SELECT r.id, r.partition, r.key, r.state, r.outcome, r.epoch
FROM operator_request r
WHERE r.group_id = $1 AND r.topic = $2 AND r.id = ANY($3)
ORDER BY r.id`

// RequestStates tells where requests stand.
func (s *Store) RequestStates(ctx context.Context, group, topic string, ids []int64) ([]RequestState, error) {
	return s.requestStates(ctx, "read requests", requestStatesSQL, group, topic, ids)
}

const withdrawSQL = `
WITH withdrawn AS (
    UPDATE operator_request SET state = 'withdrawn', done_at = clock_timestamp(), outcome = 'nobody executed it in time'
    WHERE group_id = $1 AND topic = $2 AND id = ANY($3) AND state = 'waiting'
    RETURNING id, partition, key, state, outcome, epoch
)
SELECT * FROM withdrawn ORDER BY id`

// Withdraw takes back those of the requests that still wait, and gives them: an owner that comes later does not execute them.
func (s *Store) Withdraw(ctx context.Context, group, topic string, ids []int64) ([]RequestState, error) {
	return s.requestStates(ctx, "withdraw requests", withdrawSQL, group, topic, ids)
}

func (s *Store) requestStates(ctx context.Context, what, sql, group, topic string, ids []int64) ([]RequestState, error) {
	var all []RequestState
	err := s.rows(ctx, what, sql, []any{group, topic, ids}, func(row pgx.CollectableRow) error {
		r := RequestState{Partition: stream.Partition{Topic: topic}}
		var key []byte
		var epoch pgtype.Int8
		if err := row.Scan(&r.ID, &r.Partition.Number, &key, &r.State, &r.Outcome, &epoch); err != nil {
			return err
		}
		r.Key, r.Epoch = stream.Key(key), stream.Epoch(epoch.Int64)
		all = append(all, r)
		return nil
	})
	return all, err
}
