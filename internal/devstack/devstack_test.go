//go:build linux && !nodev

package devstack_test

import (
	"context"
	"log/slog"
	"os"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/goleak"

	"milepost/internal/devstack"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(parentEnv); dir != "" {
		beParent(dir)
	}
	goleak.VerifyTestMain(m)
}

// testLogger writes to the test's log.
func testLogger(t *testing.T) *slog.Logger {
	t.Helper()

	return slog.New(slog.NewTextHandler(t.Output(), nil))
}

// limit is a context for one test.
func limit(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)

	return ctx
}

// TestPostgresSurvivesKill: data that was committed is there after a crash of
// the server, on the same address (design section 13: a local Postgres that
// is found or fetched).
func TestPostgresSurvivesKill(t *testing.T) {
	ctx := limit(t, 3*time.Minute)
	p, err := devstack.StartPostgres(ctx, devstack.PostgresConfig{Logger: testLogger(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Stop(); err != nil {
			t.Error(err)
		}
	})
	dsn := p.DSN()
	execSQL(ctx, t, dsn, "CREATE TABLE kept (n int); INSERT INTO kept VALUES (7)")

	if err := p.Kill(); err != nil {
		t.Fatal(err)
	}
	if _, err := pgx.Connect(ctx, dsn); err == nil {
		t.Fatal("connected to a killed server")
	}
	if err := p.Restart(ctx); err != nil {
		t.Fatal(err)
	}
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(ctx) }()
	var got int
	if err := conn.QueryRow(ctx, "SELECT n FROM kept").Scan(&got); err != nil || got != 7 {
		t.Errorf("got %d, %v; want 7", got, err)
	}
}

// TestPostgresPaused: a paused server answers nobody, an open connection too,
// and both go on after Resume.
func TestPostgresPaused(t *testing.T) {
	ctx := limit(t, time.Minute)
	p, err := devstack.StartPostgres(ctx, devstack.PostgresConfig{Unsafe: true, Logger: testLogger(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Stop(); err != nil {
			t.Error(err)
		}
	})
	conn, err := pgx.Connect(ctx, p.DSN())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(ctx) }()
	if err := p.Pause(); err != nil {
		t.Fatal(err)
	}
	short, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
	defer cancel()
	if err := conn.Ping(short); err == nil {
		t.Error("a paused backend answered")
	}
	if err := p.Resume(); err != nil {
		t.Fatal(err)
	}
	execSQL(ctx, t, p.DSN(), "SELECT 1")
}

// TestPostgresFetched: a machine without Postgres gets one from Maven Central
// that runs in the same way, under another user where this one is root.
func TestPostgresFetched(t *testing.T) {
	if testing.Short() {
		t.Skip("it downloads a Postgres the first time; run without -short")
	}
	ctx := limit(t, 3*time.Minute)
	p, err := devstack.StartPostgres(ctx, devstack.PostgresConfig{Fetch: true, Unsafe: true, Logger: testLogger(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Stop(); err != nil {
			t.Error(err)
		}
	})
	dsn, err := p.NewDatabase(ctx, "Other one")
	if err != nil {
		t.Fatal(err)
	}
	execSQL(ctx, t, dsn, "SELECT 1")
}

func execSQL(ctx context.Context, t *testing.T, dsn, sql string) {
	t.Helper()
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(ctx) }()
	if _, err := conn.Exec(ctx, sql); err != nil {
		t.Fatal(err)
	}
}

// TestBrokerHasItsTopics: the broker in process starts with the topics it was
// given.
func TestBrokerHasItsTopics(t *testing.T) {
	ctx := limit(t, 30*time.Second)
	b, err := devstack.StartBroker(devstack.BrokerConfig{Topics: []devstack.Topic{{Name: "raw", Partitions: 5}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Stop)
	wantPartitions(ctx, t, b.Addrs(), "raw", 5)
}

// TestKafkaNodeComesBack: a real broker keeps its records over kill -9, and a
// paused one does not answer until it is resumed.
func TestKafkaNodeComesBack(t *testing.T) {
	if testing.Short() {
		t.Skip("a real broker takes 20 s; run without -short")
	}
	ctx := limit(t, 5*time.Minute)
	k := startKafka(ctx, t, devstack.KafkaConfig{Topics: []devstack.Topic{{Name: "raw", Partitions: 3}}})
	wantPartitions(ctx, t, k.Addrs(), "raw", 3)
	produce(ctx, t, k.Addrs(), "raw", "before")

	if err := k.Kill(0); err != nil {
		t.Fatal(err)
	}
	if err := k.Restart(ctx, 0); err != nil {
		t.Fatal(err)
	}
	if got := consumeOne(ctx, t, k.Addrs(), "raw"); got != "before" {
		t.Errorf("got %q after the restart, want %q", got, "before")
	}

	if err := k.Pause(0); err != nil {
		t.Fatal(err)
	}
	short, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	client := newClient(t, k.Addrs())
	if err := client.Ping(short); err == nil {
		t.Error("a paused broker answered")
	}
	if err := k.Resume(0); err != nil {
		t.Fatal(err)
	}
	if err := client.Ping(ctx); err != nil {
		t.Errorf("after resume: %v", err)
	}
}

// TestKafkaThreeNodes: a cluster of three goes on without one of its nodes.
func TestKafkaThreeNodes(t *testing.T) {
	if testing.Short() {
		t.Skip("three real brokers take 30 s; run without -short")
	}
	ctx := limit(t, 5*time.Minute)
	k := startKafka(ctx, t, devstack.KafkaConfig{Brokers: 3, HeapMB: 256, Topics: []devstack.Topic{{Name: "raw", Partitions: 1}}})
	if err := k.Kill(2); err != nil {
		t.Fatal(err)
	}
	produce(ctx, t, k.Addrs(), "raw", "with two of three")
	if got := consumeOne(ctx, t, k.Addrs()[:2], "raw"); got != "with two of three" {
		t.Errorf("got %q", got)
	}
}

// TestDelawareMap: the demo's road map is in the module cache of every build.
func TestDelawareMap(t *testing.T) {
	path, err := devstack.DelawareMap(limit(t, 2*time.Minute), testLogger(t))
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if info.Size() < 5<<20 {
		t.Errorf("the map has %d bytes, want several MB", info.Size())
	}
}

func startKafka(ctx context.Context, t *testing.T, c devstack.KafkaConfig) *devstack.Kafka {
	t.Helper()
	c.Logger = testLogger(t)
	k, err := devstack.StartKafka(ctx, c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := k.Stop(); err != nil {
			t.Error(err)
		}
	})

	return k
}

func newClient(t *testing.T, addrs []string, opts ...kgo.Opt) *kgo.Client {
	t.Helper()
	client, err := kgo.NewClient(append(opts, kgo.SeedBrokers(addrs...))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)

	return client
}

func wantPartitions(ctx context.Context, t *testing.T, addrs []string, topic string, want int) {
	t.Helper()
	details, err := kadm.NewClient(newClient(t, addrs)).ListTopics(ctx, topic)
	if err != nil {
		t.Fatal(err)
	}
	if got := len(details[topic].Partitions); got != want {
		t.Errorf("topic %s has %d partitions, want %d", topic, got, want)
	}
}

func produce(ctx context.Context, t *testing.T, addrs []string, topic, value string) {
	t.Helper()
	client := newClient(t, addrs, kgo.RequiredAcks(kgo.AllISRAcks()))
	if err := client.ProduceSync(ctx, &kgo.Record{Topic: topic, Value: []byte(value)}).FirstErr(); err != nil {
		t.Fatal(err)
	}
}

func consumeOne(ctx context.Context, t *testing.T, addrs []string, topic string) string {
	t.Helper()
	client := newClient(t, addrs, kgo.ConsumeTopics(topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	for {
		fetches := client.PollFetches(ctx)
		if ctx.Err() != nil {
			t.Fatal("nothing to consume: ", fetches.Err())
		}
		for _, r := range fetches.Records() {
			return string(r.Value)
		}
	}
}
