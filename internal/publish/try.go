package publish

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"milepost/internal/commit"
	"milepost/internal/stream"
)

// try sends the part once, in the one order (X1). nil: every commit of the part has its fate in b. Any error means
// that nothing of the part is published (in mode idempotent: that not all of it is in the ledger).
func (p *Publisher) try(ctx context.Context, l *lane, b *batchState, part []int) error {
	ictx, cancel := context.WithTimeout(ctx, p.cfg.TransactionTimeout)
	err := l.prepare(ictx) // lane
	cancel()
	if err != nil {
		return err
	}
	if err := p.epochs(ctx, l, b, part); err != nil {
		return err
	}
	member, generation := p.group.Generation()
	if member == "" || generation <= 0 {
		return &refusedError{member: member, generation: generation, cause: errors.New("not in the group")}
	}
	if part = p.nonces(b, part, member); len(part) == 0 {
		return nil
	}
	if err := p.topicsThere(ctx, b, part); err != nil {
		return err
	}
	if l.plain {
		return p.emit(ctx, l, b, part)
	}
	return p.transact(ctx, l, b, part, member, generation)
}

// epochs asks Postgres for each tenure that was not looked up since the lane's client was made.
func (p *Publisher) epochs(ctx context.Context, l *lane, b *batchState, part []int) error {
	var ask []*commit.Tenure
	seen := map[*commit.Tenure]struct{}{}
	for _, i := range part {
		t := b.commits[i].Tenure
		// A dead letter was not prepared, so nothing has asked Postgres yet; and without transactions a lane that is not initialised anew
		// is not stopped by a newer owner either.
		if _, known := l.verified[t]; known && (!l.plain || !b.commits[i].NoRow) {
			continue
		}
		if _, twice := seen[t]; !twice {
			seen[t] = struct{}{}
			ask = append(ask, t)
		}
	}
	if len(ask) == 0 {
		return nil
	}
	// Rows are always asked for in partition order.
	slices.SortFunc(ask, func(a, b *commit.Tenure) int { return int(a.Partition.Number - b.Partition.Number) })
	ctx, cancel := context.WithTimeout(ctx, p.cfg.TransactionTimeout)
	defer cancel()
	holds, err := p.owners.Holds(ctx, ask)
	if err != nil {
		return fmt.Errorf("read ownership epochs: %w", err)
	}
	if len(holds) != len(ask) {
		return fmt.Errorf("read ownership epochs: asked for %d, got %d", len(ask), len(holds))
	}
	l.forget()
	for i, t := range ask {
		if !holds[i] {
			t.Lose(fenced(t, "the owner row has another epoch or nonce"))
			continue
		}
		l.verified[t] = struct{}{}
	}
	return nil
}

// nonces drops what is not this member's tenure any more. A tenure that began under another member id ends here (H1).
func (p *Publisher) nonces(b *batchState, part []int, member string) []int {
	for _, i := range part {
		if t := b.commits[i].Tenure; t.MemberID != member {
			t.Lose(fenced(t, "the group gave this process another member id"))
		}
	}
	return b.live(part)
}

// topicsThere holds back commits whose output topics do not exist: a transaction that met them would be aborted.
func (p *Publisher) topicsThere(ctx context.Context, b *batchState, part []int) error {
	absent, err := p.known.absent(ctx, topicsOf(b, part))
	if err != nil || len(absent) == 0 {
		return err
	}
	held := &culprits{certain: true, commits: map[int]error{}}
	for _, i := range part {
		for _, o := range b.commits[i].Outputs {
			if err := absent[o.Topic]; err != nil {
				held.commits[i] = fmt.Errorf("publish to topic %s: %w", o.Topic, err)
			}
		}
	}
	return held
}

func topicsOf(b *batchState, part []int) []string {
	seen := map[string]struct{}{}
	var topics []string
	for _, i := range part {
		for _, o := range b.commits[i].Outputs {
			if _, ok := seen[o.Topic]; !ok {
				seen[o.Topic] = struct{}{}
				topics = append(topics, o.Topic)
			}
		}
	}
	return topics
}

// share is what one ledger record is made of: the commits of one tenure and topic generation.
type share struct {
	tenure     *commit.Tenure
	generation int32
	commits    []int
}

func sharesOf(b *batchState, part []int) []share {
	var shares []share
	for _, i := range part {
		c := &b.commits[i]
		at := slices.IndexFunc(shares, func(s share) bool { return s.tenure == c.Tenure && s.generation == c.Revision.Generation })
		if at < 0 {
			shares = append(shares, share{tenure: c.Tenure, generation: c.Revision.Generation})
			at = len(shares) - 1
		}
		shares[at].commits = append(shares[at].commits, i)
	}
	slices.SortStableFunc(shares, func(a, b share) int {
		if a.tenure.Partition.Topic != b.tenure.Partition.Topic {
			return strings.Compare(a.tenure.Partition.Topic, b.tenure.Partition.Topic)
		}
		return int(a.tenure.Partition.Number - b.tenure.Partition.Number)
	})
	return shares
}

// transact runs one transaction: outputs, ledger, offsets, end (X3).
func (p *Publisher) transact(ctx context.Context, l *lane, b *batchState, part []int, member string, generation int32) error {
	// Shorter than the broker's own timeout, so that it is us who give up.
	tctx, cancel := context.WithTimeout(ctx, p.cfg.TransactionTimeout*8/10)
	defer cancel()
	shares := sharesOf(b, part)
	positions, err := p.compose(tctx, l, b, part, shares, member, generation)
	if err != nil {
		l.drop()
		return err
	}
	err = l.end(ctx, p.cfg.TransactionTimeout)
	if err == nil {
		p.away.over(ctx)
		b.published(positions)
		return nil
	}
	l.drop()
	committed, err := p.readBack(ctx, l, positions, err)
	switch {
	case errors.Is(err, errPassed):
		// Only a newer owner's recovery deletes there: it has read our entry, or seen that there is none.
		for _, i := range part {
			b.commits[i].Tenure.Lose(fenced(b.commits[i].Tenure, "a newer owner has deleted the ledger past our transaction"))
		}
		b.live(part)
		return nil
	case err != nil:
		return err
	case committed:
		b.published(positions)
		return nil
	}
	return errors.New("the transaction was aborted")
}

// compose sends everything of the transaction but its end.
func (p *Publisher) compose(ctx context.Context, l *lane, b *batchState, part []int, shares []share, member string, generation int32) (map[stream.Partition]int64, error) {
	if err := l.begin(); err != nil {
		return nil, err
	}
	landed, err := l.sendOutputs(ctx, b, part)
	if err != nil {
		p.known.doubt(topicsOf(b, part))
		return nil, err
	}
	positions, err := l.sendLedger(ctx, p.cfg.Topics.Ledger(), b, shares, landed)
	if err != nil {
		return nil, err
	}
	if err := p.commitOffsets(ctx, l, shares, member, generation); err != nil {
		return nil, err
	}
	if l.spoilt() {
		return nil, errSpoilt
	}
	return positions, nil
}
