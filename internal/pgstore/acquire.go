package pgstore

import (
	"cmp"
	"context"
	"encoding/base64"
	"strconv"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"milepost/internal/commit"
	"milepost/internal/stream"
)

// acquireSQL moves owner rows from the expected epoch to the next. The rows are locked FOR UPDATE first, in partition
// order (S3, S4): that waits for every write that passed the fence, and no later one passes. The columns that the update
// reads are those of the newest row version; what else the former owner wrote while this statement waited it does not
// see, so it returns nothing but which rows it took (S5).
const acquireSQL = `
WITH locked AS MATERIALIZED (
    SELECT c.*
    FROM unnest($1::text[], $2::text[], $3::int[], $4::bigint[], $5::uuid[], $6::int[], $7::text[], $8::text[], $9::int[],
                $10::uuid[], $11::int[], $12::uuid[], $13::int[], $14::int[], $15::bigint[], $16::int[], $17::bigint[],
                $18::text[])
             WITH ORDINALITY AS c(group_id, topic, partition, expected, nonce, generation, member_id, instance, lanes,
                                  topic_id, topic_generation, ledger_topic_id, partitions,
                                  first_generation, first_offset, first_leader_epoch, first_floor, publish_mode, n)
    JOIN partition_owner o ON o.group_id = c.group_id AND o.topic = c.topic AND o.partition = c.partition
    WHERE o.epoch = c.expected
      AND (o.epoch = 0 OR (o.topic_id = c.topic_id AND o.topic_generation = c.topic_generation
                           AND o.ledger_topic_id = c.ledger_topic_id AND o.partitions = c.partitions
                           AND o.publish_mode = c.publish_mode))
    ORDER BY o.group_id, o.topic, o.partition
    FOR UPDATE OF o
), swapped AS (
    UPDATE partition_owner o SET
        epoch = l.expected + 1, nonce = l.nonce, generation = l.generation, member_id = l.member_id, instance = l.instance,
        lanes = l.lanes, topic_id = l.topic_id, topic_generation = l.topic_generation, ledger_topic_id = l.ledger_topic_id,
        partitions = l.partitions, publish_mode = l.publish_mode, acquired_at = clock_timestamp(), released = false,
        unreleased_former = CASE WHEN o.epoch = 0 OR o.released THEN o.unreleased_former
            ELSE o.unreleased_former || jsonb_build_object('instance', o.instance, 'lanes', o.lanes, 'epoch', o.epoch) END
    FROM locked l
    WHERE o.group_id = l.group_id AND o.topic = l.topic AND o.partition = l.partition AND o.epoch = l.expected
    RETURNING l.n
), started AS (
    INSERT INTO partition_frontier (group_id, topic, partition, topic_generation, next_offset, leader_epoch, ledger_floor)
    SELECT l.group_id, l.topic, l.partition, l.first_generation, l.first_offset, l.first_leader_epoch, l.first_floor
    FROM locked l JOIN swapped s ON s.n = l.n
    WHERE l.first_generation > 0
      AND NOT EXISTS (SELECT FROM partition_frontier p
                      WHERE p.group_id = l.group_id AND p.topic = l.topic AND p.partition = l.partition)
    ON CONFLICT (group_id, topic, partition) DO NOTHING
)
SELECT n FROM swapped`

// Acquire implements commit.Owners. It refuses with a *commit.RefusedError, before anything is locked, where the raw
// topic, its partition count or the ledger are not those of the rows.
func (s *Store) Acquire(ctx context.Context, claims []commit.Claim) ([]bool, error) {
	won := make([]bool, len(claims))
	if len(claims) == 0 {
		return won, nil
	}
	if err := s.checkBindings(ctx, claims); err != nil {
		return nil, err
	}
	err := s.rows(ctx, "acquire partitions", acquireSQL, claimArgs(claims), func(row pgx.CollectableRow) error {
		var n int
		if err := row.Scan(&n); err != nil {
			return err
		}
		won[n-1] = true
		return nil
	})
	if err != nil {
		return nil, err
	}
	return won, nil
}

func claimArgs(claims []commit.Claim) []any {
	n := len(claims)
	groups, topics, members, instances := make([]string, n), make([]string, n), make([]string, n), make([]string, n)
	partitions, generations, lanes := make([]int32, n), make([]int32, n), make([]int32, n)
	expected, offsets, floors := make([]int64, n), make([]int64, n), make([]int64, n)
	nonces, topicIDs, ledgerIDs := make(uuids, n), make(uuids, n), make(uuids, n)
	topicGenerations, counts := make([]int32, n), make([]int32, n)
	firstGenerations, leaderEpochs := make([]int32, n), make([]int32, n)
	modes := make([]string, n)
	for i, c := range claims {
		groups[i], topics[i], partitions[i] = c.Group, c.Partition.Topic, c.Partition.Number
		expected[i], nonces[i], generations[i] = int64(c.Expected), uuid(c.Nonce), c.Generation
		members[i], instances[i], lanes[i] = c.MemberID, c.Instance, int32(c.Lanes)
		topicIDs[i], topicGenerations[i], ledgerIDs[i], counts[i] = uuid(c.TopicID), c.TopicGeneration, uuid(c.LedgerTopicID), c.Partitions
		firstGenerations[i], offsets[i] = c.First.Next.Generation, c.First.Next.Offset
		leaderEpochs[i], floors[i] = c.First.LeaderEpoch, c.FirstFloor
		modes[i] = string(modeOf(c))
	}
	return []any{
		groups, topics, partitions, expected, nonces, generations, members, instances, lanes,
		topicIDs, topicGenerations, ledgerIDs, counts, firstGenerations, offsets, leaderEpochs, floors,
		modes,
	}
}

// modeOf gives the claim's publish mode; a claim that names none is transactional.
func modeOf(c commit.Claim) commit.PublishMode { return cmp.Or(c.PublishMode, commit.Transactional) }

// bindingsSQL finds a row that binds the group to something else than the claim names, or the claim's ledger to another
// group or raw topic (H8).
const bindingsSQL = `
SELECT o.group_id, o.topic, o.partition, o.topic_id, o.ledger_topic_id, o.partitions, o.publish_mode
FROM partition_owner o
WHERE o.epoch > 0
  AND CASE WHEN o.group_id = $1 AND o.topic = $2
           THEN o.topic_id <> $3 OR o.ledger_topic_id <> $4 OR o.partitions <> $5 OR o.publish_mode <> $6
           ELSE o.ledger_topic_id = $4 END
ORDER BY o.group_id, o.topic, o.partition
LIMIT 1`

// binding is what the rows of a group's raw topic have in common.
type binding struct {
	group, topic  string
	topicID       [16]byte
	ledgerTopicID [16]byte
	partitions    int32
	mode          commit.PublishMode
}

func (s *Store) checkBindings(ctx context.Context, claims []commit.Claim) error {
	checked := map[binding]bool{}
	for _, c := range claims {
		b := binding{c.Group, c.Partition.Topic, c.TopicID, c.LedgerTopicID, c.Partitions, modeOf(c)}
		if checked[b] {
			continue
		}
		checked[b] = true
		var refused error
		args := []any{b.group, b.topic, uuid(b.topicID), uuid(b.ledgerTopicID), b.partitions, string(b.mode)}
		err := s.rows(ctx, "check topic ids", bindingsSQL, args, func(row pgx.CollectableRow) error {
			var stored binding
			var p stream.Partition
			var topicID, ledgerID pgtype.UUID
			if err := row.Scan(&stored.group, &p.Topic, &p.Number, &topicID, &ledgerID, &stored.partitions, &stored.mode); err != nil {
				return err
			}
			stored.topic, stored.topicID, stored.ledgerTopicID = p.Topic, topicID.Bytes, ledgerID.Bytes
			refused = refuse(stored, b, p)
			return nil
		})
		if err != nil {
			return err
		}
		if refused != nil {
			return refused
		}
	}
	return nil
}

// refuse says how the found binding differs from the stored one and what a person can do.
func refuse(stored, found binding, p stream.Partition) error {
	e := &commit.RefusedError{Group: stored.group, Partition: p}
	switch {
	case stored.group != found.group || stored.topic != found.topic:
		e.What, e.Stored, e.Found = "the ledger topic", "its own", "also claimed by group "+strconv.Quote(found.group)+" on "+found.topic
		e.Remedy = commit.RemedyLedgerTaken
	case stored.topicID != found.topicID:
		e.What, e.Stored, e.Found = "the raw topic's id", topicID(stored.topicID), topicID(found.topicID)
		e.Remedy = commit.RemedyTopicMadeAgain
	case stored.ledgerTopicID != found.ledgerTopicID:
		e.What, e.Stored, e.Found = "the ledger topic's id", topicID(stored.ledgerTopicID), topicID(found.ledgerTopicID)
		e.Remedy = commit.RemedyLedgerMadeAgain
	case stored.mode != found.mode:
		e.What, e.Stored, e.Found = "the publish mode", string(stored.mode), string(found.mode)
		e.Remedy = commit.RemedyPublishMode
	default:
		e.What, e.Stored, e.Found = "the raw topic's partition count", strconv.Itoa(int(stored.partitions)), strconv.Itoa(int(found.partitions))
		e.Remedy = commit.RemedyPartitionsAdded
	}
	return e
}

// topicID prints an id as Kafka's tools do.
func topicID(id [16]byte) string { return base64.RawURLEncoding.EncodeToString(id[:]) }
