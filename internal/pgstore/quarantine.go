package pgstore

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"milepost/internal/commit"
	"milepost/internal/stream"
)

// quarantineSQL enters observations, each once, as long as the partition has room ($13 rows). A commit that stands
// prepared for an observation and was not published can never be: it moves into the quarantine row, in this statement, so
// that no recovery tries again (H10). Where there is no room it is cleared all the same: the dead letter that the observation
// becomes is the evidence, and a prepared row below the frontier must mean that it was published. The answer names fence rows
// and the items that are in quarantine now.
const quarantineSQL = fenceCTE + `, item AS (
    SELECT i.*, f.group_id, f.topic, f.partition, f.epoch
    FROM unnest($6::int[], $7::bytea[], $8::int[], $9::bigint[], $10::text[], $11::text[], $12::bool[], $14::timestamptz[], $15::bytea[])
             WITH ORDINALITY AS i(fence, key, generation, at_offset, class, reason, published, at, record, n)
    JOIN fence f ON f.n = i.fence
), standing AS MATERIALIZED (
    SELECT i.n, c.group_id, c.topic, c.partition, c.key, c.prepared_id, c.prepared_segment, c.prepared_state, c.prepared_outputs
    FROM item i
    JOIN checkpoint c ON c.group_id = i.group_id AND c.topic = i.topic AND c.partition = i.partition AND c.key = i.key
    WHERE NOT i.published AND c.has_prepared AND c.prepared_generation = i.generation AND c.prepared_offset = i.at_offset
    ORDER BY c.group_id, c.topic, c.partition, c.key
    FOR NO KEY UPDATE OF c
), known AS (
    SELECT i.n, i.fence, EXISTS (
        SELECT FROM quarantine q
        WHERE q.group_id = i.group_id AND q.topic = i.topic AND q.partition = i.partition AND q.key = i.key
          AND q.revision_generation = i.generation AND q.revision_offset = i.at_offset) AS there
    FROM item i
), taken AS (
    SELECT f.n AS fence, (
        SELECT count(*) FROM (
            SELECT FROM quarantine q
            WHERE q.group_id = f.group_id AND q.topic = f.topic AND q.partition = f.partition LIMIT $13) q) AS rows
    FROM fence f
), admitted AS (
    SELECT k.n
    FROM (SELECT n, fence, there, count(*) FILTER (WHERE NOT there) OVER (PARTITION BY fence ORDER BY n) AS nth FROM known) k
    JOIN taken t ON t.fence = k.fence
    WHERE k.there OR t.rows + k.nth <= $13
), entered AS (
    INSERT INTO quarantine AS q (group_id, topic, partition, key, revision_generation, revision_offset, class, reason, published, epoch,
                                 at, record, prepared_id, prepared_segment, prepared_state, prepared_outputs)
    SELECT i.group_id, i.topic, i.partition, i.key, i.generation, i.at_offset, i.class, i.reason, i.published, i.epoch,
           i.at, i.record, s.prepared_id, s.prepared_segment, s.prepared_state, s.prepared_outputs
    FROM item i
    JOIN admitted a ON a.n = i.n
    LEFT JOIN standing s ON s.n = i.n
    ORDER BY i.n
    ON CONFLICT (group_id, topic, partition, key, revision_generation, revision_offset) DO UPDATE SET
        prepared_id = excluded.prepared_id, prepared_segment = excluded.prepared_segment,
        prepared_state = excluded.prepared_state, prepared_outputs = excluded.prepared_outputs
        WHERE excluded.prepared_id IS NOT NULL
), moved AS (
    UPDATE checkpoint c SET
        has_prepared = false, prepared_generation = NULL, prepared_offset = NULL, prepared_segment = NULL, prepared_epoch = NULL,
        prepared_id = NULL, prepared_state = NULL, prepared_outputs = NULL
    FROM standing s
    WHERE c.group_id = s.group_id AND c.topic = s.topic AND c.partition = s.partition AND c.key = s.key
      AND c.prepared_id = s.prepared_id
)
SELECT true, n FROM fence UNION ALL SELECT false, n FROM admitted`

// longestReason bounds the text that goes into a row, in bytes.
const longestReason = 1000

// quarantining is one observation on its way, with its record's bytes.
type quarantining struct {
	*commit.Quarantined
	name   observation
	record []byte
}

// observation names one row of the table.
type observation struct {
	place
	revision stream.Revision
}

// Quarantine implements commit.Store. Without room in the partition an observation's verdict wraps
// commit.ErrQuarantineFull.
func (s *Store) Quarantine(ctx context.Context, batch []commit.Quarantined) ([]error, error) {
	verdicts := map[observation]error{}
	names := make([]observation, len(batch))
	var items []quarantining
	for i := range batch {
		q := &batch[i]
		names[i] = observation{placeOf(q.Tenure, q.Key), q.Revision}
		if _, twice := verdicts[names[i]]; twice {
			continue
		}
		record, err := commit.EncodeRecord(&q.Record)
		if verdicts[names[i]] = err; err == nil {
			items = append(items, quarantining{q, names[i], record})
		}
	}
	slices.SortStableFunc(items, func(a, b quarantining) int {
		if c := a.name.compare(b.name.place); c != 0 {
			return c
		}
		return a.Revision.Compare(b.Revision)
	})
	judged, err := isolate(items, func(items []quarantining) ([]error, error) { return s.quarantine(ctx, items) }, itself)
	if err != nil {
		return nil, err
	}
	for i, err := range judged {
		verdicts[items[i].name] = err
	}
	errs := make([]error, len(batch))
	for i, name := range names {
		errs[i] = verdicts[name]
	}
	return errs, nil
}

func (s *Store) quarantine(ctx context.Context, items []quarantining) ([]error, error) {
	f := &fence{}
	fences, args := quarantineArgs(f, items, s.cfg.MaxQuarantine)
	held, done, err := s.fencedWrite(ctx, "quarantine", quarantineSQL, args)
	if err != nil {
		return nil, err
	}
	refused, err := s.refusals(ctx, f, held)
	if err != nil {
		return nil, err
	}
	errs := make([]error, len(items))
	for i, q := range items {
		switch {
		case done[int64(i+1)]:
		case refused[fences[i]] != nil:
			errs[i] = refused[fences[i]]
		default:
			errs[i] = fmt.Errorf("partition %s holds %d observations: %w", q.Tenure.Partition, s.cfg.MaxQuarantine, commit.ErrQuarantineFull)
		}
	}
	return errs, nil
}

func quarantineArgs(f *fence, items []quarantining, room int) ([]int32, []any) {
	n := len(items)
	fences, keys, records := make([]int32, n), make([][]byte, n), make([][]byte, n)
	generations, offsets := make([]int32, n), make([]int64, n)
	classes, reasons := make([]string, n), make([]string, n)
	published, at := make([]bool, n), make([]time.Time, n)
	for i, q := range items {
		fences[i], keys[i], records[i] = f.add(q.Tenure), []byte(q.Key), present(q.record)
		generations[i], offsets[i] = q.Revision.Generation, q.Revision.Offset
		classes[i], reasons[i], published[i], at[i] = text(q.Class), text(q.Reason), q.Published, q.At
	}
	return fences, f.args(fences, keys, generations, offsets, classes, reasons, published, room, at, records)
}

// text makes a column value of any string: what stops a key must never be refused for its wording.
func text(s string) string {
	s = strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "")
	if len(s) > longestReason {
		s = strings.ToValidUTF8(s[:longestReason], "")
	}
	return s
}
