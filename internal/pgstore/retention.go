package pgstore

import (
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"milepost/internal/commit"
	"milepost/internal/stream"
)

var _ commit.Retention = (*Store)(nil)

// quietSQL names every key that it looks at, so that the caller knows where to go on; the state comes only with those that may expire.
const quietSQL = `
SELECT c.key, c.revision_generation, c.revision_offset,
       CASE WHEN NOT c.has_prepared AND NOT c.expired AND c.touched_at <= clock_timestamp() - make_interval(secs => $6)
             AND (c.revision_generation, c.revision_offset) < (p.topic_generation, p.next_offset)
             AND NOT EXISTS (
                 SELECT FROM quarantine q
                 WHERE q.group_id = $1 AND q.topic = $2 AND q.partition = $3 AND q.key = c.key AND q.discarded_at IS NULL)
            THEN c.state END
FROM checkpoint c
JOIN partition_frontier p ON p.group_id = c.group_id AND p.topic = c.topic AND p.partition = c.partition
WHERE c.group_id = $1 AND c.topic = $2 AND c.partition = $3 AND c.key > $4::bytea
ORDER BY c.key
LIMIT $5`

// Quiet implements commit.Retention.
func (s *Store) Quiet(ctx context.Context, t *commit.Tenure, after stream.Key, age time.Duration, limit int) ([]commit.Quiet, stream.Key, error) {
	var (
		quiet  []commit.Quiet
		last   stream.Key
		looked int
	)
	args := []any{t.Group, t.Partition.Topic, t.Partition.Number, []byte(after), limit, age.Seconds()}
	err := s.rows(ctx, "list quiet keys", quietSQL, args, func(row pgx.CollectableRow) error {
		var (
			q   commit.Quiet
			key []byte
		)
		if err := row.Scan(&key, &q.Revision.Generation, &q.Revision.Offset, &q.State); err != nil {
			return err
		}
		looked++
		q.Key = stream.Key(key)
		last = q.Key
		if q.State != nil {
			quiet = append(quiet, q)
		}
		return nil
	})
	if err != nil {
		return nil, "", err
	}
	if looked < limit {
		last = ""
	}
	return quiet, last, nil
}

// expireSQL leaves touched_at alone: it is the last commit's.
const expireSQL = fenceCTE + `, expired AS (
    UPDATE checkpoint c SET state = i.state, expired = true
    FROM unnest($6::bytea[], $7::int[], $8::bigint[], $9::bytea[]) AS i(key, generation, at_offset, state), fence f
    JOIN partition_frontier p ON p.group_id = f.group_id AND p.topic = f.topic AND p.partition = f.partition
    WHERE c.group_id = f.group_id AND c.topic = f.topic AND c.partition = f.partition AND c.key = i.key
      AND c.revision_generation = i.generation AND c.revision_offset = i.at_offset AND NOT c.has_prepared AND NOT c.expired
      AND (c.revision_generation, c.revision_offset) < (p.topic_generation, p.next_offset)
      AND NOT EXISTS (
          SELECT FROM quarantine q
          WHERE q.group_id = c.group_id AND q.topic = c.topic AND q.partition = c.partition AND q.key = c.key AND q.discarded_at IS NULL)
    RETURNING f.n
)
SELECT true, n FROM fence UNION ALL SELECT false, count(*) FROM expired HAVING count(*) > 0`

// Expire implements commit.Retention.
func (s *Store) Expire(ctx context.Context, t *commit.Tenure, tails []commit.Tail) (int, error) {
	tails = slices.SortedFunc(slices.Values(tails), func(a, b commit.Tail) int { return placeOf(t, a.Key).compare(placeOf(t, b.Key)) })
	n := len(tails)
	keys, states, generations, offsets := make([][]byte, n), make([][]byte, n), make([]int32, n), make([]int64, n)
	for i, x := range tails {
		keys[i], states[i], generations[i], offsets[i] = []byte(x.Key), present(x.State), x.Revision.Generation, x.Revision.Offset
	}
	f := &fence{}
	number := f.add(t)
	held, gone, err := s.fencedWrite(ctx, "expire states", expireSQL, f.args(keys, generations, offsets, states))
	if err != nil {
		return 0, err
	}
	refused, err := s.refusals(ctx, f, held)
	if err == nil {
		err = refused[number]
	}
	if err != nil {
		return 0, err
	}
	expired := 0
	for count := range gone {
		expired = int(count)
	}
	return expired, nil
}
