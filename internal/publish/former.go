package publish

import (
	"context"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"golang.org/x/sync/errgroup"

	"milepost/internal/commit"
)

// maxTransactionTimeout is the longest that the broker may keep a transaction of ours open.
const maxTransactionTimeout = 10 * time.Second

// formersAtOnce bounds the initialisations that run side by side inside an assignment callback.
const formersAtOnce = 16

// InitFormers initialises every lane id of every former owner of partitions of the raw topic: what was open there is
// aborted and its markers are written when it returns. It is called inside the assignment callback, after the epochs
// were swapped. ctx bounds it; it can be called again.
func (p *Publisher) InitFormers(ctx context.Context, raw string, formers []commit.Former) error {
	return initFormers(ctx, p.admin, p.cfg.Group, raw, p.cfg.TransactionTimeout, formers)
}

// InitFormers does the same for whoever has no publisher: an operator's command that has fenced owners.
func InitFormers(ctx context.Context, client *kgo.Client, group, raw string, formers []commit.Former) error {
	return initFormers(ctx, client, group, raw, maxTransactionTimeout, formers)
}

func initFormers(ctx context.Context, client *kgo.Client, group, raw string, timeout time.Duration, formers []commit.Former) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(formersAtOnce)
	done := map[string]struct{}{}
	for _, f := range formers {
		for n := range f.Lanes {
			id := LaneID(group, raw, f.Instance, n)
			// One instance is the former owner of many partitions.
			if _, again := done[id]; again {
				continue
			}
			done[id] = struct{}{}
			g.Go(func() error { return initID(ctx, client, id, timeout) })
		}
	}
	return g.Wait()
}

func (p *Publisher) initID(ctx context.Context, id string) error {
	return initID(ctx, p.admin, id, p.cfg.TransactionTimeout)
}

// initID initialises a transactional id over the shared client until the broker says that it is done.
func initID(ctx context.Context, client *kgo.Client, id string, timeout time.Duration) error {
	pause := 3 * time.Millisecond
	for {
		req := kmsg.NewPtrInitProducerIDRequest()
		req.TransactionalID = new(id)
		req.TransactionTimeoutMillis = int32(timeout.Milliseconds())
		req.ProducerID, req.ProducerEpoch = -1, -1
		resp, err := req.RequestWith(ctx, client)
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
