package pgstore

import (
	"context"

	"milepost/internal/commit"
)

// unprepareSQL clears the prepared columns where exactly the named commit stands.
const unprepareSQL = fenceCTE + `, updated AS (
    UPDATE checkpoint c SET
        has_prepared = false, prepared_generation = NULL, prepared_offset = NULL, prepared_segment = NULL, prepared_epoch = NULL,
        prepared_id = NULL, prepared_state = NULL, prepared_outputs = NULL
    FROM unnest($6::int[], $7::bytea[], $8::uuid[]) WITH ORDINALITY AS i(fence, key, id, n)
    JOIN fence f ON f.n = i.fence
    WHERE c.group_id = f.group_id AND c.topic = f.topic AND c.partition = f.partition AND c.key = i.key
      AND c.has_prepared AND c.prepared_id = i.id
    RETURNING i.n
)
SELECT true, n FROM fence UNION ALL SELECT false, n FROM updated`

// Unprepare implements commit.Store.
func (s *Store) Unprepare(ctx context.Context, p commit.Promotion) error {
	f := &fence{}
	fences, keys, ids := []int32{f.add(p.Tenure)}, [][]byte{[]byte(p.Key)}, uuids{uuid(p.ID)}
	held, _, err := s.fencedWrite(ctx, "unprepare", unprepareSQL, f.args(fences, keys, ids))
	if err != nil {
		return err
	}
	refused, err := s.refusals(ctx, f, held)
	if err != nil {
		return err
	}
	return refused[fences[0]]
}
