package publish

import (
	"context"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
	"golang.org/x/sync/errgroup"

	"milepost/internal/commit"
)

// formersAtOnce bounds the initialisations that run side by side inside an assignment callback.
const formersAtOnce = 16

// InitFormers initialises every lane id of every former owner of partitions of the raw topic: what was open there is
// aborted and its markers are written when it returns. It is called inside the assignment callback, after the epochs
// were swapped. ctx bounds it; it can be called again.
func (p *Publisher) InitFormers(ctx context.Context, raw string, formers []commit.Former) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(formersAtOnce)
	done := map[string]struct{}{}
	for _, f := range formers {
		for n := range f.Lanes {
			id := LaneID(p.cfg.Group, raw, f.Instance, n)
			// One instance is the former owner of many partitions.
			if _, again := done[id]; again {
				continue
			}
			done[id] = struct{}{}
			g.Go(func() error { return p.initID(ctx, id) })
		}
	}
	return g.Wait()
}

// initID initialises a transactional id over the shared client until the broker says that it is done.
func (p *Publisher) initID(ctx context.Context, id string) error {
	pause := 3 * time.Millisecond
	for {
		req := kmsg.NewPtrInitProducerIDRequest()
		req.TransactionalID = new(id)
		req.TransactionTimeoutMillis = int32(p.cfg.TransactionTimeout.Milliseconds())
		req.ProducerID, req.ProducerEpoch = -1, -1
		resp, err := req.RequestWith(ctx, p.admin)
		if err == nil {
			err = kerr.ErrorForCode(resp.ErrorCode)
		}
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil || !kerr.IsRetriable(err) && !is(err, kerr.ConcurrentTransactions):
			return fmt.Errorf("initialise transactional id %s: %w", id, err)
		}
		if !sleep(ctx, pause) {
			return fmt.Errorf("initialise transactional id %s: %w", id, context.Cause(ctx))
		}
		pause = min(2*pause, 50*time.Millisecond)
	}
}

// sleep reports whether d passed before ctx ended.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}
