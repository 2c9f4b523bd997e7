package publish

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"milepost/internal/commit"
)

// lane is one producer, transactional unless it is plain. Its mutex is held for a whole Publish; everything in it is touched under it.
type lane struct {
	id    string
	opts  []kgo.Opt
	plain bool // no transactions: the id is a name only

	mu     sync.Mutex
	closed bool
	client *kgo.Client // nil: to be made again
	// open says that a transaction with this id may be open at the broker.
	open bool
	// inits counts the client's InitProducerID requests; own is how many of them we asked for.
	inits *initCounter
	own   int32
	// verified holds the tenures that were looked up since the client was made (X1).
	verified map[*commit.Tenure]struct{}
}

// initCounter counts the InitProducerID requests that a client writes.
type initCounter struct{ n atomic.Int32 }

// OnBrokerWrite is franz-go's hook.
func (c *initCounter) OnBrokerWrite(_ kgo.BrokerMetadata, key int16, _ int, _, _ time.Duration, _ error) {
	if key == int16(kmsg.InitProducerID) {
		c.n.Add(1)
	}
}

// prepare makes the lane's client where there is none, and initialises its producer id: whatever was open with
// a transactional id is aborted when it returns.
func (l *lane) prepare(ctx context.Context) error {
	if l.client != nil {
		return nil
	}
	inits := &initCounter{}
	opts := slices.Clip(l.opts)
	if !l.plain {
		opts = append(opts, kgo.TransactionalID(l.id), kgo.WithHooks(inits))
	}
	client, err := kgo.NewClient(opts...)
	if err != nil {
		return fmt.Errorf("make client of lane %s: %w", l.id, err)
	}
	id, _, err := client.ProducerID(ctx)
	if err == nil && id < 0 {
		err = fmt.Errorf("the broker gave no producer id")
	}
	if err != nil {
		client.Close()
		return fmt.Errorf("initialise lane %s: %w", l.id, err)
	}
	l.client, l.inits, l.own, l.open = client, inits, inits.n.Load(), false
	l.verified = map[*commit.Tenure]struct{}{}
	return nil
}

// spoilt reports whether the client initialised itself (X2).
func (l *lane) spoilt() bool { return l.inits.n.Load() != l.own }

// drop throws the client away. A transaction that it had open stays so until the id is initialised again.
func (l *lane) drop() {
	if l.client != nil {
		l.client.Close()
		l.client = nil
	}
}

// forget drops lost tenures from what the lane remembers.
func (l *lane) forget() {
	for t := range l.verified {
		if t.Err() != nil {
			delete(l.verified, t)
		}
	}
}
