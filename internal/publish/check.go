package publish

import (
	"context"
	"fmt"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"milepost/internal/commit"
)

// Check asks at start whether the broker can do what exactly-once needs: transaction.version 2, and our transactional ids
// with our timeout. The errors say what to change. Mode idempotent needs a producer id only.
func (p *Publisher) Check(ctx context.Context) error {
	if p.cfg.Mode == commit.Idempotent {
		if _, _, err := p.admin.ProducerID(ctx); err != nil {
			return fmt.Errorf("ask the broker for a producer id: %w", err)
		}
		return nil
	}
	if !p.cfg.SkipTransactionV2 {
		if err := p.checkTransactions(ctx); err != nil {
			return err
		}
	}
	err := p.initID(ctx, p.lanes[0].id)
	switch {
	case is(err, kerr.InvalidTransactionTimeout):
		return fmt.Errorf("the broker's transaction.max.timeout.ms is below our transaction timeout of %s: %w", p.cfg.TransactionTimeout, err)
	case is(err, kerr.TransactionalIDAuthorizationFailed):
		return fmt.Errorf("the broker's ACLs must let us write transactional ids that begin with %q: %w", p.cfg.Group+".", err)
	}
	return err
}

func (p *Publisher) checkTransactions(ctx context.Context) error {
	req := kmsg.NewPtrApiVersionsRequest()
	req.ClientSoftwareName, req.ClientSoftwareVersion = "milepost", "1"
	resp, err := req.RequestWith(ctx, p.admin)
	if err == nil {
		err = kerr.ErrorForCode(resp.ErrorCode)
	}
	if err != nil {
		return fmt.Errorf("ask the broker for its features: %w", err)
	}
	level := int16(0)
	for _, f := range resp.FinalizedFeatures {
		if f.Name == "transaction.version" {
			level = f.MaxVersionLevel
		}
	}
	if level < 2 {
		return fmt.Errorf("the brokers' transaction.version is %d, exactly-once needs 2 (Kafka 4.0 or newer): kafka-features.sh upgrade --feature transaction.version=2", level)
	}
	return nil
}
