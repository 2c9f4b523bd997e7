package pgstore

import (
	"context"
	"fmt"

	"milepost/internal/commit"
)

// frontierSQL moves frontier and floor forward, each by itself: a floor that is valid with a frontier is valid with
// every later one. seen_at is the heartbeat and always moves, and what only the owner knows goes with it.
const frontierSQL = fenceCTE + `, updated AS (
    UPDATE partition_frontier p SET
        topic_generation = CASE WHEN (i.generation, i.next_offset, i.leader_epoch) > (p.topic_generation, p.next_offset, p.leader_epoch)
                                THEN i.generation ELSE p.topic_generation END,
        next_offset      = CASE WHEN (i.generation, i.next_offset, i.leader_epoch) > (p.topic_generation, p.next_offset, p.leader_epoch)
                                THEN i.next_offset ELSE p.next_offset END,
        leader_epoch     = CASE WHEN (i.generation, i.next_offset, i.leader_epoch) > (p.topic_generation, p.next_offset, p.leader_epoch)
                                THEN i.leader_epoch ELSE p.leader_epoch END,
        ledger_floor     = greatest(p.ledger_floor, i.floor),
        oldest_pending_ms = i.oldest_pending_ms, waiting = i.waiting, blocked = i.blocked,
        seen_at          = clock_timestamp()
    FROM unnest($6::int[], $7::int[], $8::bigint[], $9::int[], $10::bigint[], $11::bigint[], $12::int[], $13::int[])
        AS i(fence, generation, next_offset, leader_epoch, floor, oldest_pending_ms, waiting, blocked)
    JOIN fence f ON f.n = i.fence
    WHERE p.group_id = f.group_id AND p.topic = f.topic AND p.partition = f.partition
    RETURNING i.fence
)
SELECT true, n FROM fence UNION ALL SELECT false, fence FROM updated`

// SaveFrontier implements commit.Store.
func (s *Store) SaveFrontier(ctx context.Context, batch []commit.FrontierWrite) ([]error, error) {
	writes := merge(batch)
	judged, err := isolate(writes, func(writes []commit.FrontierWrite) ([]error, error) { return s.saveFrontier(ctx, writes) }, itself)
	if err != nil {
		return nil, err
	}
	verdicts := map[*commit.Tenure]error{}
	for i, w := range writes {
		verdicts[w.Tenure] = judged[i]
	}
	errs := make([]error, len(batch))
	for i, w := range batch {
		errs[i] = verdicts[w.Tenure]
	}
	return errs, nil
}

// merge leaves one write a tenure, the furthest: one statement updates a row once.
func merge(batch []commit.FrontierWrite) []commit.FrontierWrite {
	var merged []commit.FrontierWrite
	at := map[*commit.Tenure]int{}
	for _, w := range batch {
		i, there := at[w.Tenure]
		if !there {
			at[w.Tenure] = len(merged)
			merged = append(merged, w)
			continue
		}
		if w.Frontier.Next.Compare(merged[i].Frontier.Next) > 0 {
			merged[i].Frontier = w.Frontier
		}
		merged[i].LedgerFloor = max(merged[i].LedgerFloor, w.LedgerFloor)
		merged[i].Live = w.Live
	}
	return merged
}

func (s *Store) saveFrontier(ctx context.Context, writes []commit.FrontierWrite) ([]error, error) {
	n := len(writes)
	f := &fence{}
	fences, generations, offsets := make([]int32, n), make([]int32, n), make([]int64, n)
	leaderEpochs, floors := make([]int32, n), make([]int64, n)
	pending, waiting, blocked := make([]int64, n), make([]int32, n), make([]int32, n)
	for i, w := range writes {
		fences[i], floors[i] = f.add(w.Tenure), w.LedgerFloor
		generations[i], offsets[i], leaderEpochs[i] = w.Frontier.Next.Generation, w.Frontier.Next.Offset, w.Frontier.LeaderEpoch
		pending[i] = max(w.Live.OldestPending.Milliseconds(), 0)
		waiting[i], blocked[i] = int32(w.Live.Waiting), int32(w.Live.Blocked)
	}
	args := f.args(fences, generations, offsets, leaderEpochs, floors, pending, waiting, blocked)
	held, done, err := s.fencedWrite(ctx, "save frontier", frontierSQL, args)
	if err != nil {
		return nil, err
	}
	refused, err := s.refusals(ctx, f, held)
	if err != nil {
		return nil, err
	}
	errs := make([]error, n)
	for i, w := range writes {
		switch {
		case done[int64(fences[i])]:
		case refused[fences[i]] != nil:
			errs[i] = refused[fences[i]]
		default:
			errs[i] = fmt.Errorf("save frontier of %s: the partition has no frontier row", w.Tenure.Partition)
		}
	}
	return errs, nil
}
