package pgstore

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"milepost/internal/commit"
	"milepost/internal/stream"
)

const insertOwnersSQL = `
INSERT INTO partition_owner (group_id, topic, partition)
SELECT $1, p.topic, p.partition
FROM unnest($2::text[], $3::int[]) AS p(topic, partition)
WHERE NOT EXISTS (SELECT FROM partition_owner o WHERE o.group_id = $1 AND o.topic = p.topic AND o.partition = p.partition)
ORDER BY p.topic, p.partition
ON CONFLICT (group_id, topic, partition) DO NOTHING`

const epochsSQL = `
SELECT p.n, o.epoch, o.generation, o.topic_id, o.topic_generation, o.ledger_topic_id, o.partitions, o.publish_mode,
       f.partition IS NOT NULL
FROM unnest($2::text[], $3::int[]) WITH ORDINALITY AS p(topic, partition, n)
JOIN partition_owner o ON o.group_id = $1 AND o.topic = p.topic AND o.partition = p.partition
LEFT JOIN partition_frontier f ON f.group_id = o.group_id AND f.topic = o.topic AND f.partition = o.partition`

// Epochs implements commit.Owners.
func (s *Store) Epochs(ctx context.Context, group string, partitions []stream.Partition) ([]commit.OwnerRow, error) {
	topics, numbers := make([]string, len(partitions)), make([]int32, len(partitions))
	for i, p := range partitions {
		topics[i], numbers[i] = p.Topic, p.Number
	}
	args := []any{group, topics, numbers}
	err := s.rows(ctx, "insert owner rows", insertOwnersSQL, args, func(pgx.CollectableRow) error { return nil })
	if err != nil {
		return nil, err
	}
	owners := make([]commit.OwnerRow, len(partitions))
	found := 0
	err = s.rows(ctx, "read owner epochs", epochsSQL, args, func(row pgx.CollectableRow) error {
		var (
			n                int
			o                commit.OwnerRow
			topicID, ledgers pgtype.UUID
		)
		if err := row.Scan(&n, &o.Epoch, &o.Generation, &topicID, &o.TopicGeneration, &ledgers, &o.Partitions, &o.PublishMode, &o.HasFrontier); err != nil {
			return err
		}
		o.Partition, o.TopicID, o.LedgerTopicID = partitions[n-1], topicID.Bytes, ledgers.Bytes
		owners[n-1] = o
		found++
		return nil
	})
	switch {
	case err != nil:
		return nil, err
	case found != len(partitions):
		return nil, fmt.Errorf("read owner epochs: %d of %d rows are there", found, len(partitions))
	}
	return owners, nil
}

const startSQL = `
SELECT f.n, o.epoch, o.nonce = f.nonce, o.unreleased_former,
       p.topic_generation, p.next_offset, p.leader_epoch, p.ledger_floor, p.anew_generation, p.anew_offset, p.anew_reason,
       (SELECT count(*) FROM checkpoint c
        WHERE c.group_id = f.group_id AND c.topic = f.topic AND c.partition = f.partition AND c.has_prepared)
FROM unnest($1::text[], $2::text[], $3::int[], $4::bigint[], $5::uuid[])
         WITH ORDINALITY AS f(group_id, topic, partition, epoch, nonce, n)
JOIN partition_owner o ON o.group_id = f.group_id AND o.topic = f.topic AND o.partition = f.partition
LEFT JOIN partition_frontier p ON p.group_id = f.group_id AND p.topic = f.topic AND p.partition = f.partition`

// former is how an unreleased former owner stands in its column.
type former struct {
	Instance string `json:"instance"`
	Lanes    int    `json:"lanes"`
	Epoch    int64  `json:"epoch"`
}

// Start implements commit.Owners. A tenure that does not hold its row any more is a *commit.FencedError.
func (s *Store) Start(ctx context.Context, tenures []*commit.Tenure) ([]commit.Start, error) {
	f := &fence{tenures: tenures}
	starts := make([]commit.Start, len(tenures))
	missing := make(map[int]error, len(tenures))
	for i, t := range tenures {
		missing[i] = refusal(t, 0)
	}
	err := s.rows(ctx, "read where to start", startSQL, f.args(), func(row pgx.CollectableRow) error {
		var (
			n                       int
			epoch                   stream.Epoch
			sameNonce               bool
			formers                 []former
			generation, leaderEpoch pgtype.Int4
			offset, floor           pgtype.Int8
			prepared                int
			anewGeneration          *int32
			anewOffset              *int64
			anewReason              *string
		)
		if err := row.Scan(&n, &epoch, &sameNonce, &formers, &generation, &offset, &leaderEpoch, &floor,
			&anewGeneration, &anewOffset, &anewReason, &prepared); err != nil {
			return err
		}
		t := tenures[n-1]
		switch {
		case epoch != t.Epoch || !sameNonce:
			missing[n-1] = refusal(t, epoch)
			return nil
		case !generation.Valid:
			missing[n-1] = fmt.Errorf("partition %s has no frontier row: its first acquisition named none", t.Partition)
			return nil
		}
		delete(missing, n-1)
		starts[n-1] = commit.Start{
			Frontier: stream.Frontier{
				Next:        stream.Revision{Generation: generation.Int32, Offset: offset.Int64},
				LeaderEpoch: leaderEpoch.Int32,
			},
			LedgerFloor: floor.Int64, Prepared: prepared, Anew: anewOf(anewGeneration, anewOffset, anewReason),
		}
		for _, x := range formers {
			starts[n-1].Formers = append(starts[n-1].Formers, commit.Former{Instance: x.Instance, Lanes: x.Lanes, Epoch: stream.Epoch(x.Epoch)})
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	for i := range tenures {
		if err := missing[i]; err != nil {
			return nil, err
		}
	}
	return starts, nil
}

const holdsSQL = ownersSQL + `
WHERE o.epoch = f.epoch AND o.nonce = f.nonce`

// Holds implements commit.Owners.
func (s *Store) Holds(ctx context.Context, tenures []*commit.Tenure) ([]bool, error) {
	f := &fence{tenures: tenures}
	holds := make([]bool, len(tenures))
	err := s.rows(ctx, "read owners", holdsSQL, f.args(), func(row pgx.CollectableRow) error {
		var n int
		var epoch int64
		if err := row.Scan(&n, &epoch); err != nil {
			return err
		}
		holds[n-1] = true
		return nil
	})
	if err != nil {
		return nil, err
	}
	return holds, nil
}

const recoveredSQL = `
UPDATE partition_owner o SET unreleased_former = (
    SELECT coalesce(jsonb_agg(l.entry ORDER BY l.n), '[]')
    FROM jsonb_array_elements(o.unreleased_former) WITH ORDINALITY AS l(entry, n)
    WHERE NOT EXISTS (
        SELECT FROM unnest($6::text[], $7::bigint[]) AS r(instance, epoch)
        WHERE l.entry ->> 'instance' = r.instance AND (l.entry ->> 'epoch')::bigint = r.epoch))
WHERE o.group_id = $1 AND o.topic = $2 AND o.partition = $3 AND o.epoch = $4 AND o.nonce = $5
RETURNING true`

// Recovered implements commit.Owners.
func (s *Store) Recovered(ctx context.Context, t *commit.Tenure, formers []commit.Former) error {
	instances, epochs := make([]string, len(formers)), make([]int64, len(formers))
	for i, f := range formers {
		instances[i], epochs[i] = f.Instance, int64(f.Epoch)
	}
	return s.ownRow(ctx, "clear former owners", recoveredSQL, t, instances, epochs)
}

const releaseSQL = `
UPDATE partition_owner SET released = true
WHERE group_id = $1 AND topic = $2 AND partition = $3 AND epoch = $4 AND nonce = $5
RETURNING true`

// Release implements commit.Owners.
func (s *Store) Release(ctx context.Context, t *commit.Tenure) error {
	return s.ownRow(ctx, "release partition", releaseSQL, t)
}

// ownRow changes the tenure's own owner row, but not its epoch (S4).
func (s *Store) ownRow(ctx context.Context, what, sql string, t *commit.Tenure, more ...any) error {
	held := map[int32]bool{}
	args := append([]any{t.Group, t.Partition.Topic, t.Partition.Number, int64(t.Epoch), uuid(t.Nonce)}, more...)
	err := s.rows(ctx, what, sql, args, func(pgx.CollectableRow) error {
		held[1] = true
		return nil
	})
	if err != nil {
		return err
	}
	f := &fence{}
	n := f.add(t)
	refused, err := s.refusals(ctx, f, held)
	if err != nil {
		return err
	}
	return refused[n]
}
