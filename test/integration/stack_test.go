//go:build integration

package integration_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"milepost/test/stand"
)

// Stack is a Kafka broker and a Postgres server that the tests of this package
// share.
type Stack struct {
	Kind    string // "containers", "local processes" or "given"
	Brokers []string
	DSN     string // of the superuser's database; tests use NewDatabase

	Replicas int16  // of new topics; 0 is 1
	Broker   Server // nil when the servers were given
	Database Server
	stop     func() error
}

// Server can be broken: each of these returns when it has happened.
type Server interface {
	Kill() error                       // as kill -9
	Restart(ctx context.Context) error // after Kill, at the same address
	Pause() error                      // stops answering, keeps its connections
	Resume() error
}

// stack is the package's; errNoStack says why there is none.
var (
	stack      *Stack
	errNoStack error
)

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	logger := slog.New(slog.NewTextHandler(os.Stderr, nil))
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	stack, errNoStack = startStack(ctx, logger)
	if errNoStack != nil {
		fmt.Fprintln(os.Stderr, "no stack:", errNoStack)
	} else {
		fmt.Fprintf(os.Stderr, "running on %s: brokers %v\n", stack.Kind, stack.Brokers)
		defer func() {
			if err := stack.stop(); err != nil {
				fmt.Fprintln(os.Stderr, "stop the stack:", err)
			}
		}()
	}

	return m.Run()
}

// startStack chooses what to run on.
func startStack(ctx context.Context, logger *slog.Logger) (*Stack, error) {
	if brokers, dsn := os.Getenv("MILEPOST_TEST_BROKERS"), os.Getenv("MILEPOST_TEST_DSN"); brokers != "" && dsn != "" {
		return &Stack{Kind: "given", Brokers: strings.Split(brokers, ","), DSN: dsn, stop: func() error { return nil }}, nil
	}
	switch kind := os.Getenv("MILEPOST_STACK"); kind {
	case "containers":
		return startContainers(ctx)
	case "local":
		return startLocal(ctx, logger)
	case "":
		s, err := startContainers(ctx)
		if err == nil {
			return s, nil
		}
		logger.InfoContext(ctx, "no containers, trying local processes", slog.Any("reason", err))
		s, localErr := startLocal(ctx, logger)
		if localErr != nil {
			return nil, errors.Join(fmt.Errorf("containers: %w", err), fmt.Errorf("local processes: %w", localErr))
		}

		return s, nil
	default:
		return nil, fmt.Errorf("MILEPOST_STACK=%s: want containers or local", kind)
	}
}

// useStack returns the package's stack. A machine that cannot have one skips
// the test, unless the kind was demanded, as CI does.
func useStack(t *testing.T) *Stack {
	t.Helper()
	if errNoStack == nil {
		return stack
	}
	if os.Getenv("MILEPOST_STACK") != "" {
		t.Fatalf("no stack: %v", errNoStack)
	}
	t.Skipf("no stack: %v", errNoStack)

	return nil
}

// breakable is useStack for tests that break a server.
func breakable(t *testing.T) *Stack {
	t.Helper()
	s := useStack(t)
	if s.Broker == nil {
		t.Skip("the servers were given, and this test breaks one")
	}

	return s
}

// NewDatabase makes an empty database for one test and returns its URL.
func (s *Stack) NewDatabase(t *testing.T) string {
	t.Helper()
	ctx := stand.Limit(t, 30*time.Second)
	name := "it_" + strings.ToLower(rand.Text()[:12])
	conn, err := pgx.Connect(ctx, s.DSN)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(ctx) }()
	if _, err := conn.Exec(ctx, "CREATE DATABASE "+pgx.Identifier{name}.Sanitize()); err != nil {
		t.Fatal(err)
	}
	u, err := url.Parse(s.DSN)
	if err != nil {
		t.Fatal(err)
	}
	u.Path = "/" + name

	return u.String()
}

// NewNames returns a raw topic that exists and an output prefix and group that
// nobody else uses.
func (s *Stack) NewNames(t *testing.T, partitions int32) (raw, prefix, group string) {
	t.Helper()
	base := "it-" + strings.ToLower(rand.Text()[:10])
	raw, prefix, group = base+".raw", base, base+".group"
	s.NewTopic(t, raw, partitions)

	return raw, prefix, group
}

// NewTopic makes a topic.
func (s *Stack) NewTopic(t *testing.T, name string, partitions int32) {
	t.Helper()
	_, err := kadm.NewClient(s.Client(t)).CreateTopic(stand.Limit(t, 30*time.Second), partitions, max(s.Replicas, 1), nil, name)
	if err != nil {
		t.Fatal(err)
	}
}

// Client returns a client of the stack's brokers that ends with the test.
func (s *Stack) Client(t *testing.T, opts ...kgo.Opt) *kgo.Client {
	t.Helper()
	// A killed broker's port may still be open (a container's proxy): the client must not take that for a wrong protocol.
	client, err := kgo.NewClient(append(opts, kgo.SeedBrokers(s.Brokers...), kgo.AlwaysRetryEOF())...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)

	return client
}
