package publish

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// ClientConfig is what all Kafka clients of the process have in common.
type ClientConfig struct {
	Brokers  []string // host:port
	ClientID string   // shown by the broker's tools and quotas; empty: "milepost"
	Log      *slog.Logger
	// Options are appended: TLS, SASL, a dialer.
	Options []kgo.Opt
}

// ClientOptions gives the options that every client of the process begins with.
func ClientOptions(c ClientConfig) []kgo.Opt {
	id := c.ClientID
	if id == "" {
		id = "milepost"
	}
	opts := []kgo.Opt{
		kgo.SeedBrokers(c.Brokers...),
		kgo.ClientID(id),
		kgo.SoftwareNameAndVersion("milepost", "1"),
		kgo.DialTimeout(3 * time.Second),
		kgo.DisableClientMetrics(),
		// A compressed batch may come to ten thousand times its size; the group consumer bounds its own more closely.
		kgo.MaxDecompressBatchBytes(64 << 20),
	}
	if c.Log != nil {
		opts = append(opts, kgo.WithLogger(&bridge{log: c.Log, said: map[string]time.Time{}}))
	}
	return append(opts, c.Options...)
}

// bridgeQuiet is how long a client's repeated message is kept back: an outage must not fill the log.
const bridgeQuiet = 30 * time.Second

// bridge passes franz-go's warnings on to slog, each message once per bridgeQuiet.
type bridge struct {
	log *slog.Logger

	mu   sync.Mutex
	said map[string]time.Time
}

func (b *bridge) Level() kgo.LogLevel { return kgo.LogLevelWarn }

func (b *bridge) Log(level kgo.LogLevel, msg string, keyvals ...any) {
	now := time.Now()
	b.mu.Lock()
	last, known := b.said[msg]
	quiet := known && now.Sub(last) < bridgeQuiet
	if !quiet {
		if len(b.said) > 100 {
			clear(b.said)
		}
		b.said[msg] = now
	}
	b.mu.Unlock()
	if quiet {
		return
	}
	attrs := []slog.Attr{slog.String("message", msg)}
	for i := 0; i+1 < len(keyvals); i += 2 {
		attrs = append(attrs, slog.Any(fmt.Sprint(keyvals[i]), keyvals[i+1]))
	}
	at := slog.LevelWarn
	if level == kgo.LogLevelError {
		at = slog.LevelError
	}
	b.log.LogAttrs(context.Background(), at, "kafka client", attrs...)
}

// outage says once that something is away and once that it is back.
type outage struct {
	log *slog.Logger

	mu    sync.Mutex
	since time.Time
}

func (o *outage) note(ctx context.Context, err error) {
	if errors.Is(err, context.Canceled) {
		return
	}
	o.mu.Lock()
	first := o.since.IsZero()
	if first {
		o.since = time.Now()
	}
	o.mu.Unlock()
	if first {
		o.log.LogAttrs(ctx, slog.LevelWarn, "publishing waits, nothing is lost", slog.Any("err", err))
	}
}

func (o *outage) over(ctx context.Context) {
	o.mu.Lock()
	since := o.since
	o.since = time.Time{}
	o.mu.Unlock()
	if !since.IsZero() {
		o.log.LogAttrs(ctx, slog.LevelInfo, "publishing goes on", slog.Duration("after", time.Since(since)))
	}
}
