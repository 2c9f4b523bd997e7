package publish

import (
	"context"
	"fmt"

	"milepost/internal/commit"
	"milepost/internal/stream"
)

// emit publishes the part without a transaction: the outputs, and once all of a commit's are acknowledged its ledger entry
// (X10). What a try got done is kept in b, so that the next one repeats only what was not answered. An error means that not
// all of the part is in the ledger.
func (p *Publisher) emit(ctx context.Context, l *lane, b *batchState, part []int) error {
	if held := p.oversized(b, part); held != nil {
		return held
	}
	ctx, cancel := context.WithTimeout(ctx, p.cfg.TransactionTimeout*8/10)
	defer cancel()
	err := l.emitOutputs(ctx, b, part)
	if err != nil {
		p.known.doubt(topicsOf(b, part))
	} else {
		err = l.emitLedger(ctx, p.cfg.Topics.Ledger(), b, sharesOf(b, part))
	}
	if err != nil {
		// Nothing that was not answered may be sent once more behind our back, and the epochs are read again.
		l.drop()
		return err
	}
	p.away.over(ctx)
	return nil
}

// emitOutputs sends the outputs of commits that have not landed yet.
func (l *lane) emitOutputs(ctx context.Context, b *batchState, part []int) error {
	var todo []int
	for _, i := range part {
		if _, done := b.landed[i]; !done {
			todo = append(todo, i)
		}
	}
	records, owner := outputRecords(b, todo)
	var results []error
	if len(records) > 0 {
		results = l.send(ctx, records)
	}
	open := map[int]bool{}
	landed := map[int][]commit.Landing{}
	for n, err := range results {
		i := owner[n]
		if err != nil {
			open[i] = true
			continue
		}
		landed[i] = append(landed[i], landing(records[n]))
	}
	for _, i := range todo {
		if !open[i] {
			b.landed[i] = landed[i]
		}
	}
	return judge(results, func(n int, to func(int)) { to(owner[n]) }, records)
}

// emitLedger enters the shares, whose outputs have all landed, and notes those that are acknowledged.
func (l *lane) emitLedger(ctx context.Context, topic string, b *batchState, shares []share) error {
	records, err := ledgerRecords(topic, b, shares, b.landed)
	if err != nil {
		return err
	}
	results := l.send(ctx, records)
	for n, s := range shares {
		if results[n] != nil {
			continue
		}
		b.published(map[stream.Partition]int64{s.tenure.Partition: records[n].Offset})
		for _, i := range s.commits {
			b.entered[i] = true
		}
	}
	return judgeLedger(results, shares, records)
}

// oversized finds commits of which an output can never be sent, before any other of theirs is visible.
func (p *Publisher) oversized(b *batchState, part []int) error {
	held := &culprits{certain: true, commits: map[int]error{}}
	for _, i := range part {
		for o := range b.commits[i].Outputs {
			out := &b.commits[i].Outputs[o]
			if out.Size() > int64(p.cfg.MaxRecordBytes) {
				held.commits[i] = fmt.Errorf("publish to topic %s: the output has %d bytes, the bound is %d: %w",
					out.Topic, out.Size(), p.cfg.MaxRecordBytes, commit.ErrPermanent)
			}
		}
	}
	if len(held.commits) == 0 {
		return nil
	}
	return held
}
