package stand

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"milepost/internal/devstack"
)

// Stand is the servers that a package's tests share.
type Stand struct {
	Kafka    *devstack.Kafka
	Postgres *devstack.Postgres
}

// Config says what is unusual about the servers.
type Config struct {
	Kafka, Postgres map[string]string // settings
	SessionTimeout  time.Duration     // of KIP-848 groups; for classic ones the least that a member may ask for
	Safe            bool              // Postgres with fsync, as measurements need it
}

// Start starts the servers. It needs Java.
func Start(ctx context.Context, c Config, log *slog.Logger) (*Stand, error) {
	if _, err := exec.LookPath("java"); err != nil {
		return nil, fmt.Errorf("no Java for a real broker: %w", err)
	}
	postgres, err := devstack.StartPostgres(ctx, devstack.PostgresConfig{Logger: log, Settings: c.Postgres, Unsafe: !c.Safe})
	if err != nil {
		return nil, err
	}
	session := fmt.Sprint(c.SessionTimeout.Milliseconds())
	settings := map[string]string{
		"group.min.session.timeout.ms":          session,
		"group.consumer.min.session.timeout.ms": session, "group.consumer.session.timeout.ms": session,
		"group.consumer.min.heartbeat.interval.ms": "500", "group.consumer.heartbeat.interval.ms": "500",
	}
	maps.Copy(settings, c.Kafka)
	kafka, err := devstack.StartKafka(ctx, devstack.KafkaConfig{Logger: log, Settings: settings})
	if err != nil {
		return nil, errors.Join(err, postgres.Stop())
	}
	return &Stand{Kafka: kafka, Postgres: postgres}, nil
}

// Stop ends the servers.
func (s *Stand) Stop() error { return errors.Join(s.Kafka.Stop(), s.Postgres.Stop()) }

// Build builds the program into the folder.
func Build(ctx context.Context, dir string, tags ...string) (string, error) {
	path := filepath.Join(dir, "orchestrator")
	// As released: the embedded servers have no part here.
	tags = append(tags, "nodev")
	out, err := exec.CommandContext(ctx, "go", "build", "-o", path, "-tags", strings.Join(tags, ","), "milepost/cmd/orchestrator").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("build the program: %w: %s", err, out)
	}
	return path, nil
}

// Limit is a context that ends with the test or after d.
func Limit(tb testing.TB, d time.Duration) context.Context {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), d)
	tb.Cleanup(cancel)
	return ctx
}

// Eventually waits until probe returns nil and fails the test with its last error when that takes longer than d.
func Eventually(tb testing.TB, d time.Duration, what string, probe func(ctx context.Context) error) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), d)
	defer cancel()
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	var last error
	for {
		err := probe(ctx)
		if err == nil {
			return
		}
		if ctx.Err() == nil {
			last = err
		}
		select {
		case <-ctx.Done():
			tb.Fatalf("%s: not within %s: %v", what, d, last)
		case <-ticker.C:
		}
	}
}
