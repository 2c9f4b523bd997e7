package pgstore

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"milepost/internal/commit"
	"milepost/internal/stream"
)

// Generation is the next topic generation of a group's raw topic, as the brokers describe it.
type Generation struct {
	Group, Topic  string
	TopicID       [16]byte
	LedgerTopicID [16]byte
	Partitions    int32
	// Starts is where partitions begin in the new generation; one that is not named goes on at its frontier, and one that has
	// none must be named.
	Starts map[int32]int64
	// Ends is where the raw topic's partitions end: where keys move to other partitions, every frontier must have come there.
	Ends map[int32]int64
	// LedgerStarts is the ledger floor of partitions that have none yet.
	LedgerStarts map[int32]int64
	// Unordered opens the generation although observations of the old layout are not done: the order of a key that has moved is not
	// kept across the change.
	Unordered bool
	// Anew makes every key that has history begin anew, with a reset of this reason; empty: histories go on.
	Anew string
}

// Opened says what was opened.
type Opened struct {
	TopicGeneration int32
	Fenced          []string // instances that owned partitions, and are fenced now
	// Formers did not release some partition: what they have in hand may be published until each of their lanes was initialised.
	Formers []commit.Former
}

// NotOpenedError says why a topic generation or a ledger was not opened. Nothing was changed.
type NotOpenedError struct{ Reasons []string }

func (e *NotOpenedError) Error() string { return "refused: " + strings.Join(e.Reasons, "; ") }

// standingPartition is a partition as it stands under the transaction's locks.
type standingPartition struct {
	number, generation, count int32
	epoch                     int64
	instance                  string
	released                  bool
	frontier                  *int64
	prepared, quarantined     int
}

const lockOwnersSQL = `
SELECT 1 FROM partition_owner WHERE group_id = $1 AND topic = $2 ORDER BY group_id, topic, partition FOR UPDATE`

// standingSQL is sent after the locks are held: what it reads no fenced write can change any more (S5).
const standingPartitionsSQL = `
SELECT o.partition, o.topic_generation, o.partitions, o.epoch, o.instance, o.released, f.next_offset,
       (SELECT count(*) FROM checkpoint c
        WHERE c.group_id = o.group_id AND c.topic = o.topic AND c.partition = o.partition AND c.has_prepared),
       (SELECT count(*) FROM quarantine q
        WHERE q.group_id = o.group_id AND q.topic = o.topic AND q.partition = o.partition AND q.discarded_at IS NULL)
FROM partition_owner o
LEFT JOIN partition_frontier f ON f.group_id = o.group_id AND f.topic = o.topic AND f.partition = o.partition
WHERE o.group_id = $1 AND o.topic = $2
ORDER BY o.partition`

// addOwnersSQL makes rows for partitions that were added, so that they begin in the new generation too.
const addOwnersSQL = `
INSERT INTO partition_owner (group_id, topic, partition, topic_generation)
SELECT $1, $2, n, $4 FROM generate_series(0, $3::int - 1) n
ON CONFLICT (group_id, topic, partition) DO NOTHING`

// bumpSQL takes every partition away from its owner, as an acquisition does: no write of an older epoch lands any more, and the
// next acquirer initialises the lanes of those that had not released.
const bumpSQL = `
UPDATE partition_owner o SET
    epoch = o.epoch + 1, nonce = gen_random_uuid(), member_id = '', instance = 'operator', lanes = 0, released = true,
    topic_id = $3, ledger_topic_id = $4, partitions = $5, topic_generation = $6, acquired_at = clock_timestamp(),
    unreleased_former = CASE WHEN o.epoch = 0 OR o.released THEN o.unreleased_former
        ELSE o.unreleased_former || jsonb_build_object('instance', o.instance, 'lanes', o.lanes, 'epoch', o.epoch) END
WHERE o.group_id = $1 AND o.topic = $2`

const openFrontiersSQL = `
INSERT INTO partition_frontier AS p (group_id, topic, partition, topic_generation, next_offset, leader_epoch, ledger_floor,
                                     anew_generation, anew_offset, anew_reason)
SELECT $1, $2, i.n, $3::int, i.start, -1, i.floor, CASE WHEN $7::text <> '' THEN $3::int END, CASE WHEN $7 <> '' THEN 0 END, nullif($7, '')
FROM unnest($4::int[], $5::bigint[], $6::bigint[]) AS i(n, start, floor)
ON CONFLICT (group_id, topic, partition) DO UPDATE SET
    topic_generation = excluded.topic_generation, next_offset = excluded.next_offset, leader_epoch = -1,
    oldest_pending_ms = 0, waiting = 0, blocked = 0,
    anew_generation = coalesce(excluded.anew_generation, p.anew_generation), anew_offset = coalesce(excluded.anew_offset, p.anew_offset),
    anew_reason = coalesce(excluded.anew_reason, p.anew_reason)`

// OpenGeneration opens the next topic generation: in one transaction every partition is fenced off its owner, bound to the topic and
// ledger as they are, and moved to where it begins. Workers that run are fenced and acquire anew under it. It refuses, with
// every reason at once, what would lose or reorder observations.
func (s *Store) OpenGeneration(ctx context.Context, g Generation) (Opened, error) {
	var opened Opened
	err := s.transact(ctx, "open a topic generation", func(ctx context.Context, tx pgx.Tx) error {
		rows, err := standingPartitions(ctx, tx, g.Group, g.Topic)
		if err != nil {
			return err
		}
		if reasons := g.refuse(rows); len(reasons) > 0 {
			return &NotOpenedError{reasons}
		}
		for _, r := range rows {
			opened.TopicGeneration = max(opened.TopicGeneration, r.generation+1)
			if r.epoch > 0 && !r.released && !slices.Contains(opened.Fenced, r.instance) {
				opened.Fenced = append(opened.Fenced, r.instance)
			}
		}
		if err := g.open(ctx, tx, rows, opened.TopicGeneration); err != nil {
			return err
		}
		opened.Formers, err = g.formers(ctx, tx)
		return err
	})
	return opened, err
}

const formersSQL = `
SELECT DISTINCT f.instance, f.lanes, f.epoch
FROM partition_owner o, jsonb_to_recordset(o.unreleased_former) AS f(instance text, lanes int, epoch bigint)
WHERE o.group_id = $1 AND o.topic = $2
ORDER BY 1, 3`

func (g *Generation) formers(ctx context.Context, tx pgx.Tx) ([]commit.Former, error) {
	rows, err := tx.Query(ctx, formersSQL, g.Group, g.Topic)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (f commit.Former, err error) {
		err = row.Scan(&f.Instance, &f.Lanes, &f.Epoch)
		return f, err
	})
}

// transact runs f in a transaction: the only one of this package that has more than one statement. It waits for nothing but the
// locks of owner rows, within the session's lock time-out.
func (s *Store) transact(ctx context.Context, what string, f func(ctx context.Context, tx pgx.Tx) error) error {
	return s.do(ctx, what, func(ctx context.Context, conn *pgxpool.Conn) error {
		return pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error { return f(ctx, tx) })
	})
}

func standingPartitions(ctx context.Context, tx pgx.Tx, group, topic string) ([]standingPartition, error) {
	if _, err := tx.Exec(ctx, lockOwnersSQL, group, topic); err != nil {
		return nil, err
	}
	rows, err := tx.Query(ctx, standingPartitionsSQL, group, topic)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (p standingPartition, err error) {
		err = row.Scan(&p.number, &p.generation, &p.count, &p.epoch, &p.instance, &p.released, &p.frontier, &p.prepared, &p.quarantined)
		return p, err
	})
}

// refuse gives every reason for which the generation must not be opened.
func (g *Generation) refuse(rows []standingPartition) []string {
	var reasons []string
	say := func(format string, args ...any) { reasons = append(reasons, fmt.Sprintf(format, args...)) }
	known := map[int32]standingPartition{}
	for _, r := range rows {
		known[r.number] = r
		if r.epoch == 0 {
			continue
		}
		moved := r.count != g.Partitions
		orphan := r.number >= g.Partitions
		end, inTopic := g.Ends[r.number]
		_, named := g.Starts[r.number]
		switch {
		case (orphan || moved) && r.prepared > 0:
			say("partition %d has %d commits that stand prepared, and its keys move: let a worker finish them first", r.number, r.prepared)
		case (orphan || moved) && r.quarantined > 0:
			say("partition %d has %d observations in quarantine, and its keys move: release or discard them first (orchestrator quarantine)", r.number, r.quarantined)
		case moved && !orphan && !g.Unordered && inTopic && !named && r.frontier != nil && *r.frontier < end:
			say("partition %d is done up to %d of %d, and its keys move: stop the producers and let it reach its end, or give up the order "+
				"of keys across the change with --unordered", r.number, *r.frontier, end)
		}
	}
	if len(known) == 0 {
		say("group %q never owned a partition of topic %s: there is nothing to follow", g.Group, g.Topic)
	}
	for n := range g.Partitions {
		if _, named := g.Starts[n]; !named && (known[n].frontier == nil) {
			say("partition %d has no frontier and no start is named", n)
		}
	}
	return reasons
}

func (g *Generation) open(ctx context.Context, tx pgx.Tx, rows []standingPartition, generation int32) error {
	if _, err := tx.Exec(ctx, addOwnersSQL, g.Group, g.Topic, g.Partitions, generation); err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, bumpSQL, g.Group, g.Topic, uuid(g.TopicID), uuid(g.LedgerTopicID), g.Partitions, generation); err != nil {
		return err
	}
	var numbers []int32
	var starts, floors []int64
	for n := range g.Partitions {
		at, named := g.Starts[n]
		for _, r := range rows {
			if r.number == n && !named && r.frontier != nil {
				at = *r.frontier
			}
		}
		numbers, starts, floors = append(numbers, n), append(starts, at), append(floors, g.LedgerStarts[n])
	}
	_, err := tx.Exec(ctx, openFrontiersSQL, g.Group, g.Topic, generation, numbers, starts, floors, g.Anew)
	return err
}

const acceptFloorsSQL = `
UPDATE partition_frontier p SET ledger_floor = i.floor
FROM unnest($3::int[], $4::bigint[]) AS i(n, floor)
WHERE p.group_id = $1 AND p.topic = $2 AND p.partition = i.n`

// AcceptLedger binds a group's raw topic to the ledger as it is, although nobody can tell any more what was published before: the
// floors move to where the ledger starts, and every partition is fenced off its owner. It gives how many commits stand prepared: each
// is published by the next owner, perhaps once more.
func (s *Store) AcceptLedger(ctx context.Context, group, topic string, ledgerID [16]byte, starts map[int32]int64) (prepared int, err error) {
	err = s.transact(ctx, "accept a ledger", func(ctx context.Context, tx pgx.Tx) error {
		rows, err := standingPartitions(ctx, tx, group, topic)
		if err != nil {
			return err
		}
		if len(rows) == 0 {
			return &NotOpenedError{[]string{fmt.Sprintf("group %q never owned a partition of topic %s", group, topic)}}
		}
		var numbers []int32
		var floors []int64
		for _, r := range rows {
			prepared += r.prepared
			if at, ok := starts[r.number]; ok {
				numbers, floors = append(numbers, r.number), append(floors, at)
			}
		}
		if _, err := tx.Exec(ctx, rebindLedgerSQL, group, topic, uuid(ledgerID)); err != nil {
			return err
		}
		_, err = tx.Exec(ctx, acceptFloorsSQL, group, topic, numbers, floors)
		return err
	})
	return prepared, err
}

const rebindLedgerSQL = `
UPDATE partition_owner o SET
    epoch = o.epoch + 1, nonce = gen_random_uuid(), member_id = '', instance = 'operator', lanes = 0, released = true,
    ledger_topic_id = $3, acquired_at = clock_timestamp(),
    unreleased_former = CASE WHEN o.released THEN o.unreleased_former
        ELSE o.unreleased_former || jsonb_build_object('instance', o.instance, 'lanes', o.lanes, 'epoch', o.epoch) END
WHERE o.group_id = $1 AND o.topic = $2 AND o.epoch > 0`

// Binding is what a group's rows are bound to.
type Binding struct {
	TopicID, LedgerTopicID [16]byte
	Partitions             int32
	TopicGeneration        int32
}

const bindingSQL = `
SELECT o.topic_id, o.ledger_topic_id, o.partitions, o.topic_generation
FROM partition_owner o WHERE o.group_id = $1 AND o.topic = $2 AND o.epoch > 0
ORDER BY o.partition LIMIT 1`

// Binding reads what a group's raw topic is bound to; false: nothing was ever owned.
func (s *Store) Binding(ctx context.Context, group, topic string) (b Binding, found bool, err error) {
	err = s.rows(ctx, "read the binding", bindingSQL, []any{group, topic}, func(row pgx.CollectableRow) error {
		found = true
		return row.Scan(&b.TopicID, &b.LedgerTopicID, &b.Partitions, &b.TopicGeneration)
	})
	return b, found, err
}

// anewOf is what a frontier row says about keys that begin anew.
func anewOf(generation *int32, offset *int64, reason *string) commit.Anew {
	if generation == nil || offset == nil || reason == nil {
		return commit.Anew{}
	}
	return commit.Anew{Before: stream.Revision{Generation: *generation, Offset: *offset}, Reason: *reason}
}
