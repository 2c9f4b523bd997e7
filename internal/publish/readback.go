package publish

import (
	"context"
	"errors"
	"fmt"

	"milepost/internal/stream"
)

// readBack finds out whether a transaction whose end was not answered with success was committed. Its lane's id is
// initialised first, after which it can not be committed any more; then our own ledger record, whose position is
// known from its acknowledgement, is there for a read_committed reader or it is not. It returns only when that is
// known, or ctx has ended; errPassed when nobody can know any more.
func (p *Publisher) readBack(ctx context.Context, l *lane, positions map[stream.Partition]int64, cause error) (bool, error) {
	for try := 0; ; try++ {
		committed, err := p.look(ctx, l, positions)
		if err == nil || errors.Is(err, errPassed) {
			return committed, err
		}
		if ctx.Err() != nil {
			return false, fmt.Errorf("the outcome of a transaction is not known: %w", errors.Join(cause, context.Cause(ctx)))
		}
		p.away.note(ctx, err)
		sleep(ctx, backoff(try+1))
	}
}

func (p *Publisher) look(ctx context.Context, l *lane, positions map[stream.Partition]int64) (bool, error) {
	ictx, cancel := context.WithTimeout(ctx, p.cfg.TransactionTimeout)
	defer cancel()
	if err := l.prepare(ictx); err != nil {
		return false, err
	}
	var passed error
	for partition, at := range positions {
		there, err := p.ledger.committed(ctx, partition.Number, at)
		if errors.Is(err, errPassed) {
			passed = err
			continue
		}
		return there, err
	}
	return false, passed
}
