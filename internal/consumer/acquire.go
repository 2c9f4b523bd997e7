package consumer

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"milepost/internal/commit"
	"milepost/internal/stream"
)

// swaps is how often an acquisition reads the epochs again because another acquirer was faster.
const swaps = 5

// tryAcquire acquires the slots' partitions within the acquire time-out and starts their workers; or notes the error in each slot
// and pauses its fetch. fresh are those whose fetch begins at the frontier by itself; the others are sought. The caller
// holds s.acquiring.
func (s *session) tryAcquire(work context.Context, want []*slot, member string, generation int32, fresh map[int32]bool) error {
	began := time.Now()
	ctx, cancel := context.WithTimeout(work, s.c.cfg.AcquireTimeout)
	defer cancel()
	s.mu.Lock()
	s.cancelAttempt = cancel
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		s.cancelAttempt = nil
		s.mu.Unlock()
	}()

	ps := make([]stream.Partition, len(want))
	for i, sl := range want {
		ps[i] = sl.partition
	}
	slices.SortFunc(ps, func(a, b stream.Partition) int { return int(a.Number) - int(b.Number) })
	tenures, starts, err := s.acquire(ctx, ps, member, generation)
	if err == nil {
		// Broken off after the swap (a callback waits, or the session ends): these tenures begin nothing.
		err = s.stillMember(ctx, member)
	}
	if err != nil {
		for _, t := range tenures {
			t.Lose(fmt.Errorf("the acquisition failed: %w", err))
		}
		s.acquireFailed(want, err)
		return err
	}
	for i, t := range tenures {
		s.startWorker(work, t, starts[i], !fresh[t.Partition.Number])
		if f := s.c.deps.Observer.Acquired; f != nil {
			f(t.Partition, t.Epoch, time.Since(began))
		}
		s.c.log.InfoContext(ctx, "acquired", slog.Int("partition", int(t.Partition.Number)), slog.Int64("epoch", int64(t.Epoch)),
			slog.Int("generation", int(generation)), slog.String("frontier", starts[i].Frontier.String()),
			slog.Int("formers", len(starts[i].Formers)), slog.Int("prepared", starts[i].Prepared),
			slog.Duration("took", time.Since(began)))
	}
	return nil
}

// acquireFailed notes a failed try. A refusal concerns the whole topic and ends the session.
func (s *session) acquireFailed(want []*slot, err error) {
	if _, refused := errors.AsType[*commit.RefusedError](err); refused {
		s.fail(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	for _, sl := range want {
		sl.err = err
		sl.next = now.Add(s.c.backoff(sl.attempts))
		sl.attempts++
		s.client.PauseFetchPartitions(map[string][]int32{s.c.cfg.Topic: {sl.partition.Number}})
	}
}

// acquire runs the steps of an acquisition in their order (G1). Tenures that it returns with an error must be lost.
func (s *session) acquire(ctx context.Context, ps []stream.Partition, member string, generation int32) ([]*commit.Tenure, []commit.Start, error) {
	if member == "" || generation <= 0 {
		return nil, nil, &MemberError{MemberID: member, Generation: generation, Err: errors.New("not a member yet")}
	}
	facts, err := s.readFacts(ctx)
	if err != nil {
		return nil, nil, err
	}
	tenures, err := s.swapAll(ctx, ps, member, generation, facts)
	if err != nil {
		return tenures, nil, err
	}
	// A later statement than the swap's, which read the past (H5).
	starts, err := s.c.deps.Owners.Start(ctx, tenures)
	if err != nil {
		return tenures, nil, fmt.Errorf("read what to go on from: %w", err)
	}
	if err := s.c.settleOlder(ctx, ps); err != nil {
		return tenures, nil, err
	}
	// Inside the callback: the group's own OffsetFetch would otherwise meet open transactions and sleep a second (H15c).
	if formers := s.foreign(starts); len(formers) > 0 {
		if err := s.c.deps.Formers.InitFormers(ctx, s.c.cfg.Topic, formers); err != nil {
			return tenures, nil, fmt.Errorf("initialise the lanes of %d former owners: %w", len(formers), err)
		}
	}
	return tenures, starts, nil
}

// swapAll reads the epochs, proves the generation, and swaps, again for rows that another acquirer had moved.
func (s *session) swapAll(ctx context.Context, ps []stream.Partition, member string, generation int32, facts topicFacts) ([]*commit.Tenure, error) {
	var tenures []*commit.Tenure
	rest := ps
	for range swaps {
		rows, err := s.c.deps.Owners.Epochs(ctx, s.c.cfg.Group, rest)
		if err != nil {
			return tenures, fmt.Errorf("read ownership epochs: %w", err)
		}
		claims, err := s.claims(ctx, rows, member, generation, facts)
		if err != nil {
			return tenures, err
		}
		if err := s.prove(ctx, member, generation); err != nil {
			if next, ok := s.advanced(err, member, generation); ok {
				generation = next // captured anew: the epochs are read and the proof is made again
				continue
			}
			return tenures, err
		}
		if err := s.stillMember(ctx, member); err != nil {
			return tenures, err
		}
		won, err := s.c.deps.Owners.Acquire(ctx, claims)
		if err != nil {
			return tenures, fmt.Errorf("acquire %d partitions: %w", len(claims), err)
		}
		rest = nil
		for i := range claims {
			if !won[i] {
				rest = append(rest, claims[i].Partition)
				continue
			}
			tenures = append(tenures, commit.NewTenure(commit.Ownership{
				Group: s.c.cfg.Group, Partition: claims[i].Partition, TopicGeneration: claims[i].TopicGeneration,
				Epoch: claims[i].Expected + 1, Nonce: claims[i].Nonce, MemberID: member,
			}))
		}
		if len(rest) == 0 {
			slices.SortFunc(tenures, func(a, b *commit.Tenure) int { return int(a.Partition.Number) - int(b.Partition.Number) })
			return tenures, nil
		}
	}
	return tenures, fmt.Errorf("acquire %d partitions: another process was faster %d times", len(rest), swaps)
}

// claims makes the evidence for rows, and refuses topics that are not those the rows speak of.
func (s *session) claims(ctx context.Context, rows []commit.OwnerRow, member string, generation int32, facts topicFacts) ([]commit.Claim, error) {
	claims := make([]commit.Claim, len(rows))
	var first []int
	for i, row := range rows {
		if err := refuse(s.c.cfg.Group, row, facts); err != nil {
			return nil, err
		}
		claims[i] = commit.Claim{
			Group: s.c.cfg.Group, Partition: row.Partition, Expected: row.Epoch, Generation: generation, MemberID: member,
			Instance: s.c.cfg.Instance, Lanes: s.c.cfg.Lanes, TopicID: facts.RawID, TopicGeneration: max(row.TopicGeneration, 1),
			LedgerTopicID: facts.LedgerID, Partitions: facts.Partitions, PublishMode: facts.PublishMode,
		}
		if _, err := io.ReadFull(s.c.deps.Rand, claims[i].Nonce[:]); err != nil {
			return nil, fmt.Errorf("make a nonce: %w", err)
		}
		if !row.HasFrontier {
			first = append(first, i)
		}
	}
	if len(first) > 0 {
		if err := s.firstStart(ctx, claims, first); err != nil {
			return nil, err
		}
	}
	return claims, nil
}

// refuse compares what an owned row was written for with what the broker has now.
func refuse(group string, row commit.OwnerRow, facts topicFacts) error {
	if row.Epoch == 0 || row.TopicID == ([16]byte{}) {
		return nil // never owned
	}
	id := func(b [16]byte) string { return "id " + hex.EncodeToString(b[:]) }
	e := &commit.RefusedError{Group: group, Partition: row.Partition}
	switch {
	case row.TopicID != facts.RawID:
		e.What, e.Stored, e.Found = "the raw topic", id(row.TopicID), id(facts.RawID)
		e.Remedy = commit.RemedyTopicMadeAgain
	case row.Partitions != facts.Partitions:
		e.What, e.Stored, e.Found = "the raw topic's partition count", strconv.Itoa(int(row.Partitions)), strconv.Itoa(int(facts.Partitions))
		e.Remedy = commit.RemedyPartitionsAdded
	case row.LedgerTopicID != facts.LedgerID:
		e.What, e.Stored, e.Found = "the ledger topic", id(row.LedgerTopicID), id(facts.LedgerID)
		e.Remedy = commit.RemedyLedgerMadeAgain
	case facts.PublishMode != "" && row.PublishMode != facts.PublishMode:
		e.What, e.Stored, e.Found = "the publish mode", string(row.PublishMode), string(facts.PublishMode)
		e.Remedy = commit.RemedyPublishMode
	default:
		return nil
	}
	return e
}

// prove asks the group whether it holds member and generation current. A group that is preparing a rebalance says so
// only to its current generation, which is proof too (measured).
func (s *session) prove(ctx context.Context, member string, generation int32) error {
	if s.c.cfg.Protocol == ConsumerGroup {
		return s.proveEpoch(ctx, member, generation)
	}
	req := kmsg.NewPtrHeartbeatRequest()
	req.Group, req.MemberID, req.Generation = s.c.cfg.Group, member, generation
	resp, err := req.RequestWith(ctx, s.client)
	if err != nil {
		return fmt.Errorf("prove the group's generation: %w", err)
	}
	switch err := kerr.ErrorForCode(resp.ErrorCode); {
	case err == nil, errors.Is(err, kerr.RebalanceInProgress):
		return nil
	case errors.Is(err, kerr.UnknownMemberID), errors.Is(err, kerr.IllegalGeneration), errors.Is(err, kerr.FencedInstanceID):
		return &MemberError{MemberID: member, Generation: generation, Err: err}
	default:
		return fmt.Errorf("prove the group's generation: %w", err)
	}
}

// foreign gathers the former owners that are not this process, each once, with the most lanes that any row says.
func (s *session) foreign(starts []commit.Start) []commit.Former {
	most := map[string]commit.Former{}
	for _, start := range starts {
		for _, f := range start.Formers {
			// This process's own lanes serve other partitions; settleOlder stands for their initialisation.
			if f.Instance != s.c.cfg.Instance && f.Lanes > most[f.Instance].Lanes {
				most[f.Instance] = f
			}
		}
	}
	formers := make([]commit.Former, 0, len(most))
	for _, f := range most {
		formers = append(formers, f)
	}
	return formers
}
