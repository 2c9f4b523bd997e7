package pgstore

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"milepost/internal/commit"
	"milepost/internal/stream"
)

// prepareSQL writes the items whose row has their base, as its current or as its prepared revision; in the second case
// the prepared columns become the current ones in the same row version. An item without a base inserts its row. The
// answer: the fence rows that held, the items that were written over a row, the rows that were inserted.
const prepareSQL = fenceCTE + `, item AS (
    SELECT i.n, f.group_id, f.topic, f.partition, f.epoch, i.key, i.base_generation, i.base_offset,
           i.generation, i.at_offset, i.segment, i.id, i.state, i.outputs
    FROM unnest($6::int[], $7::bytea[], $8::int[], $9::bigint[], $10::int[], $11::bigint[], $12::bigint[], $13::uuid[], $14::bytea[], $15::bytea[])
             WITH ORDINALITY AS i(fence, key, base_generation, base_offset, generation, at_offset, segment, id, state, outputs, n)
    JOIN fence f ON f.n = i.fence
), updated AS (
    UPDATE checkpoint c SET
        revision_generation = i.base_generation,
        revision_offset     = i.base_offset,
        segment             = CASE WHEN c.has_prepared THEN c.prepared_segment ELSE c.segment END,
        commit_id           = CASE WHEN c.has_prepared THEN c.prepared_id ELSE c.commit_id END,
        state               = CASE WHEN c.has_prepared THEN c.prepared_state ELSE c.state END,
        expired             = c.expired AND NOT c.has_prepared,
        touched_at          = now(),
        has_prepared        = true,
        prepared_generation = i.generation,
        prepared_offset     = i.at_offset,
        prepared_segment    = i.segment,
        prepared_epoch      = i.epoch,
        prepared_id         = i.id,
        prepared_state      = i.state,
        prepared_outputs    = i.outputs
    FROM item i
    WHERE c.group_id = i.group_id AND c.topic = i.topic AND c.partition = i.partition AND c.key = i.key
      AND CASE WHEN c.has_prepared
               THEN c.prepared_generation = i.base_generation AND c.prepared_offset = i.base_offset
               ELSE c.revision_generation = i.base_generation AND c.revision_offset = i.base_offset END
    RETURNING i.n
), inserted AS (
    INSERT INTO checkpoint (group_id, topic, partition, key, has_prepared, prepared_generation, prepared_offset, prepared_segment,
                            prepared_epoch, prepared_id, prepared_state, prepared_outputs)
    SELECT group_id, topic, partition, key, true, generation, at_offset, segment, epoch, id, state, outputs
    FROM item
    WHERE base_generation = 0
    ON CONFLICT (group_id, topic, partition, key) DO NOTHING
    RETURNING group_id, topic, partition, key
)
SELECT 0, n, NULL::text, NULL::text, NULL::int, NULL::bytea FROM fence
UNION ALL SELECT 1, n, NULL, NULL, NULL, NULL FROM updated
UNION ALL SELECT 2, 0, group_id, topic, partition, key FROM inserted`

// preparing is one commit of a prepare, with the bytes that go into its row.
type preparing struct {
	*commit.Commit
	index   int // in the caller's batch
	place   place
	outputs []byte
}

// Prepare implements commit.Store.
func (s *Store) Prepare(ctx context.Context, batch []commit.Commit) ([]commit.PrepareVerdict, error) {
	verdicts := make([]commit.PrepareVerdict, len(batch))
	items := make([]preparing, 0, len(batch))
	for i := range batch {
		c := &batch[i]
		outputs, err := s.encode(c)
		if err != nil {
			verdicts[i].Err = err
			continue
		}
		items = append(items, preparing{c, i, placeOf(c.Tenure, c.Key), outputs})
	}
	slices.SortFunc(items, func(a, b preparing) int { return a.place.compare(b.place) })
	judged, err := isolate(items, func(items []preparing) ([]commit.PrepareVerdict, error) {
		return s.prepare(ctx, items, attempts)
	}, func(err error) commit.PrepareVerdict { return commit.PrepareVerdict{Err: err} })
	if err != nil {
		return nil, err
	}
	for i, v := range judged {
		verdicts[items[i].index] = v
	}
	return verdicts, nil
}

// encode gives the bytes of the commit's outputs and refuses what no row can hold.
func (s *Store) encode(c *commit.Commit) ([]byte, error) {
	if c.NoRow {
		return nil, fmt.Errorf("prepare: a dead letter has no row: %w", commit.ErrPermanent)
	}
	outputs, err := commit.EncodeOutputs(c)
	if err != nil {
		return nil, fmt.Errorf("prepare: %w", err)
	}
	if n := len(c.Next.State) + len(outputs); n > s.cfg.MaxRowBytes {
		return nil, fmt.Errorf("prepare: state and outputs have %d bytes, the limit is %d: %w", n, s.cfg.MaxRowBytes, commit.ErrPermanent)
	}
	return outputs, nil
}

// prepare sends the items in one statement and judges those that it did not write by what stands there afterwards.
func (s *Store) prepare(ctx context.Context, items []preparing, left int) ([]commit.PrepareVerdict, error) {
	fence, args := prepareArgs(items)
	inserts := map[place]int{}
	for i := range items {
		if items[i].Base.IsZero() {
			inserts[items[i].place] = i
		}
	}
	held, written, err := s.swap(ctx, "prepare", prepareSQL, args, len(items), inserts)
	if err != nil {
		return nil, err
	}
	refused, err := s.refusals(ctx, fence, held)
	if err != nil {
		return nil, err
	}
	verdicts := make([]commit.PrepareVerdict, len(items))
	var open []int
	for i := range items {
		if err := refused[fence.number[items[i].Tenure]]; err != nil {
			verdicts[i].Err = err
		} else if !written[i] {
			open = append(open, i)
		}
	}
	return verdicts, s.judge(ctx, items, open, verdicts, left)
}

func prepareArgs(items []preparing) (*fence, []any) {
	var c columns
	outputs := make([][]byte, len(items))
	for i, x := range items {
		c.add(x.Tenure, x.Key, x.Base, x.Next, x.ID)
		outputs[i] = present(x.outputs)
	}
	return &c.fence, c.args(outputs)
}

// swap runs a statement that writes n items over their base and says which fence rows held and which items were written;
// at finds the items without a base.
func (s *Store) swap(
	ctx context.Context, name, sql string, args []any, n int, at map[place]int,
) (held map[int32]bool, written []bool, err error) {
	held, written = map[int32]bool{}, make([]bool, n)
	err = s.rows(ctx, name, sql, args, func(row pgx.CollectableRow) error {
		var (
			what         int
			n            int64
			group, topic *string
			partition    *int32
			key          []byte
		)
		if err := row.Scan(&what, &n, &group, &topic, &partition, &key); err != nil {
			return err
		}
		switch what {
		case 0:
			held[int32(n)] = true
		case 1:
			written[n-1] = true
		default:
			i, ours := at[place{*group, stream.Partition{Topic: *topic, Number: *partition}, stream.Key(key)}]
			if !ours {
				return errors.New("the answer names a row that was not sent")
			}
			written[i] = true
		}
		return nil
	})
	return held, written, err
}

// judge gives the open items their verdicts by the rows as they stand now, and sends again what would pass now.
func (s *Store) judge(ctx context.Context, items []preparing, open []int, verdicts []commit.PrepareVerdict, left int) error {
	if len(open) == 0 {
		return nil
	}
	places := make([]place, len(open))
	for i, at := range open {
		places[i] = items[at].place
	}
	found, err := s.standings(ctx, places)
	if err != nil {
		return err
	}
	var again []preparing
	var indices []int
	for i, at := range open {
		now, there := found[i]
		v, passes := verdictOf(items[at].Commit, now, there)
		if verdicts[at] = v; passes {
			again, indices = append(again, items[at]), append(indices, at)
		}
	}
	if len(again) == 0 {
		return nil
	}
	if left <= 1 {
		for _, at := range indices {
			verdicts[at].Err = fmt.Errorf("prepare of key %q: its row changed while it was judged", items[at].Key)
		}
		return nil
	}
	second, err := s.prepare(ctx, again, left-1)
	for i, v := range second {
		verdicts[indices[i]] = v
	}
	return err
}

// verdictOf judges a commit that a statement did not write by its row as it stands; passes says that the row has the
// commit's base by now.
func verdictOf(c *commit.Commit, now standing, there bool) (v commit.PrepareVerdict, passes bool) {
	prepared := !now.prepared.IsZero()
	switch {
	case !there:
		v.Err = &commit.ConflictError{Key: c.Key, Want: c.Base}
		return v, c.Base.IsZero()
	case prepared && now.preparedID == c.ID:
		return v, false
	case now.id == c.ID && now.revision == c.Revision:
		v.Current = true
		return v, false
	case prepared && now.prepared != c.Base:
		v.Err = &commit.BusyError{Key: c.Key, Prepared: now.prepared}
		return v, false
	case prepared || now.revision == c.Base:
		return v, true
	}
	v.Err = &commit.ConflictError{Key: c.Key, Want: c.Base, Actual: now.revision}
	return v, false
}
