package pgstore

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"milepost/internal/commit"
	"milepost/internal/stream"
)

// PartitionStatus is what the database knows of a partition, for people and tools.
type PartitionStatus struct {
	Partition   stream.Partition
	Instance    string // of the owner; empty: never owned
	MemberID    string
	Epoch       stream.Epoch
	Generation  int32 // the group's
	Released    bool
	Formers     int // former owners that have not released
	AcquiredAt  time.Time
	Frontier    stream.Frontier // zero: no frontier yet
	LedgerFloor int64
	SeenAt      time.Time // the owner's last heartbeat
	Prepared    int       // commits that stand prepared
	Quarantined int       // keys in quarantine
	Aside       int       // their observations
	// Live is what the owner said at its last heartbeat; the age of what was pending then has grown since.
	Live commit.Live
}

const statusSQL = `
SELECT o.partition, o.instance, o.member_id, o.epoch, o.generation, o.released, jsonb_array_length(o.unreleased_former), o.acquired_at,
       f.topic_generation, f.next_offset, f.leader_epoch, f.ledger_floor, f.seen_at,
       (SELECT count(*) FROM checkpoint c
        WHERE c.group_id = o.group_id AND c.topic = o.topic AND c.partition = o.partition AND c.has_prepared),
       q.keys, q.rows,
       CASE WHEN f.oldest_pending_ms = 0 THEN 0
            ELSE f.oldest_pending_ms + greatest(0, extract(epoch FROM clock_timestamp() - f.seen_at) * 1000)::bigint END,
       f.waiting, f.blocked
FROM partition_owner o
LEFT JOIN partition_frontier f ON f.group_id = o.group_id AND f.topic = o.topic AND f.partition = o.partition
CROSS JOIN LATERAL (
    SELECT count(DISTINCT q.key) AS keys, count(*) AS rows FROM quarantine q
    WHERE q.group_id = o.group_id AND q.topic = o.topic AND q.partition = o.partition AND q.discarded_at IS NULL) q
WHERE o.group_id = $1 AND o.topic = $2
ORDER BY o.partition`

// Status reads the partitions of a group's raw topic, in order. It takes no lock.
func (s *Store) Status(ctx context.Context, group, topic string) ([]PartitionStatus, error) {
	var all []PartitionStatus
	err := s.rows(ctx, "read status", statusSQL, []any{group, topic}, func(row pgx.CollectableRow) error {
		var (
			p                       = PartitionStatus{Partition: stream.Partition{Topic: topic}}
			acquired, seen          pgtype.Timestamptz
			generation, leaderEpoch pgtype.Int4
			offset, floor, pending  pgtype.Int8
			waiting, blocked        pgtype.Int4
		)
		if err := row.Scan(&p.Partition.Number, &p.Instance, &p.MemberID, &p.Epoch, &p.Generation, &p.Released, &p.Formers, &acquired,
			&generation, &offset, &leaderEpoch, &floor, &seen, &p.Prepared, &p.Quarantined, &p.Aside, &pending, &waiting, &blocked); err != nil {
			return err
		}
		p.AcquiredAt, p.SeenAt, p.LedgerFloor = acquired.Time, seen.Time, floor.Int64
		p.Frontier = stream.Frontier{
			Next:        stream.Revision{Generation: generation.Int32, Offset: offset.Int64},
			LeaderEpoch: leaderEpoch.Int32,
		}
		p.Live = commit.Live{
			OldestPending: time.Duration(pending.Int64) * time.Millisecond, Waiting: int(waiting.Int32), Blocked: int(blocked.Int32),
		}
		all = append(all, p)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return all, nil
}
