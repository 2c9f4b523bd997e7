package pgstore

import (
	"cmp"
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"milepost/internal/commit"
	"milepost/internal/stream"
)

// attempts is how often a statement is sent for a row that changed between the statement and the reading of its verdict.
const attempts = 3

// place names a key's row.
type place struct {
	group     string
	partition stream.Partition
	key       stream.Key
}

func placeOf(t *commit.Tenure, key stream.Key) place { return place{t.Group, t.Partition, key} }

// compare is the order in which rows are sent, and so locked (S3).
func (p place) compare(o place) int {
	return cmp.Or(
		cmp.Compare(p.group, o.group), cmp.Compare(p.partition.Topic, o.partition.Topic),
		cmp.Compare(p.partition.Number, o.partition.Number), cmp.Compare(p.key, o.key),
	)
}

// standing is what stands in a key's row.
type standing struct {
	revision   stream.Revision
	id         commit.ID
	prepared   stream.Revision // zero: none
	preparedID commit.ID
}

const standingSQL = `
SELECT i.n, c.revision_generation, c.revision_offset, c.commit_id, c.prepared_generation, c.prepared_offset, c.prepared_id
FROM unnest($1::text[], $2::text[], $3::int[], $4::bytea[]) WITH ORDINALITY AS i(group_id, topic, partition, key, n)
JOIN checkpoint c ON c.group_id = i.group_id AND c.topic = i.topic AND c.partition = i.partition AND c.key = i.key`

// standings reads the rows at the places, in a statement of its own (S5). A place without a row is not in the answer.
func (s *Store) standings(ctx context.Context, places []place) (map[int]standing, error) {
	groups, topics := make([]string, len(places)), make([]string, len(places))
	partitions, keys := make([]int32, len(places)), make([][]byte, len(places))
	for i, p := range places {
		groups[i], topics[i], partitions[i], keys[i] = p.group, p.partition.Topic, p.partition.Number, []byte(p.key)
	}
	found := map[int]standing{}
	err := s.rows(ctx, "read verdicts", standingSQL, []any{groups, topics, partitions, keys}, func(row pgx.CollectableRow) error {
		var (
			n              int64
			now            standing
			id, preparedID pgtype.UUID
			generation     pgtype.Int4
			offset         pgtype.Int8
		)
		if err := row.Scan(&n, &now.revision.Generation, &now.revision.Offset, &id, &generation, &offset, &preparedID); err != nil {
			return err
		}
		now.id, now.preparedID = id.Bytes, preparedID.Bytes
		now.prepared = stream.Revision{Generation: generation.Int32, Offset: offset.Int64}
		found[int(n)-1] = now
		return nil
	})
	return found, err
}
