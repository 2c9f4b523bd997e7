package pgstore

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"milepost/internal/commit"
	"milepost/internal/stream"
)

// fenceCTE is how every write begins: the owner rows of the tenures in $1 to $5, locked in partition order where they
// are still the tenures' own. n is the tenure's number in the arrays, from 1. The rows' locks hold until the statement has
// committed, and a row that an acquisition changes meanwhile is judged again by its newest version.
const fenceCTE = `
WITH fence AS MATERIALIZED (
    SELECT f.n, o.group_id, o.topic, o.partition, o.epoch
    FROM unnest($1::text[], $2::text[], $3::int[], $4::bigint[], $5::uuid[])
             WITH ORDINALITY AS f(group_id, topic, partition, epoch, nonce, n)
    JOIN partition_owner o ON o.group_id = f.group_id AND o.topic = f.topic AND o.partition = f.partition
    WHERE o.epoch = f.epoch AND o.nonce = f.nonce
    ORDER BY o.group_id, o.topic, o.partition
    FOR KEY SHARE OF o
)`

// fence is the tenures of one statement, each once.
type fence struct {
	tenures []*commit.Tenure
	number  map[*commit.Tenure]int32
}

// add gives the tenure's number in the statement.
func (f *fence) add(t *commit.Tenure) int32 {
	if n, there := f.number[t]; there {
		return n
	}
	if f.number == nil {
		f.number = map[*commit.Tenure]int32{}
	}
	f.tenures = append(f.tenures, t)
	n := int32(len(f.tenures))
	f.number[t] = n
	return n
}

// args gives the statement's parameters $1 to $5, with room for more.
func (f *fence) args(more ...any) []any {
	groups, topics := make([]string, len(f.tenures)), make([]string, len(f.tenures))
	partitions, epochs := make([]int32, len(f.tenures)), make([]int64, len(f.tenures))
	nonces := make(uuids, len(f.tenures))
	for i, t := range f.tenures {
		groups[i], topics[i], partitions[i] = t.Group, t.Partition.Topic, t.Partition.Number
		epochs[i], nonces[i] = int64(t.Epoch), uuid(t.Nonce)
	}
	return append([]any{groups, topics, partitions, epochs, nonces}, more...)
}

// uuids is a uuid[] parameter.
type uuids = pgtype.FlatArray[pgtype.UUID]

func uuid[T ~[16]byte](id T) pgtype.UUID { return pgtype.UUID{Bytes: id, Valid: true} }

const ownersSQL = `
SELECT f.n, o.epoch
FROM unnest($1::text[], $2::text[], $3::int[], $4::bigint[], $5::uuid[])
         WITH ORDINALITY AS f(group_id, topic, partition, epoch, nonce, n)
JOIN partition_owner o ON o.group_id = f.group_id AND o.topic = f.topic AND o.partition = f.partition`

// refusals gives the errors of the fence's tenures that the statement found not to hold, naming today's owner.
func (s *Store) refusals(ctx context.Context, f *fence, held map[int32]bool) (map[int32]error, error) {
	refused := map[int32]error{}
	if len(held) == len(f.tenures) {
		return refused, nil
	}
	owners := map[int32]stream.Epoch{}
	err := s.rows(ctx, "read owners", ownersSQL, f.args(), func(row pgx.CollectableRow) error {
		var n int32
		var epoch stream.Epoch
		if err := row.Scan(&n, &epoch); err != nil {
			return err
		}
		owners[n] = epoch
		return nil
	})
	if err != nil {
		return nil, err
	}
	for i, t := range f.tenures {
		if n := int32(i + 1); !held[n] {
			refused[n] = refusal(t, owners[n])
		}
	}
	return refused, nil
}

// refusal is the error of a tenure whose row has the epoch of owner, 0 for no row.
func refusal(t *commit.Tenure, owner stream.Epoch) error {
	e := &commit.FencedError{Partition: t.Partition, Held: t.Epoch, Owner: owner}
	switch owner {
	case 0:
		e.Reason = "the partition has no owner row"
	case t.Epoch:
		e.Reason = "another tenure holds the same epoch"
	}
	return e
}
