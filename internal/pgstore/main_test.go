package pgstore_test

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"go.uber.org/goleak"

	"milepost/internal/commit"
	"milepost/internal/commit/committest"
	"milepost/internal/devstack"
	"milepost/internal/pgstore"
	"milepost/internal/stream"
)

// server is the Postgres that the package's tests share; the first that needs it starts it, each has a database of its own.
var server struct {
	start sync.Once
	dsn   string
	err   error
	own   *devstack.Postgres
	next  atomic.Int64
}

func TestMain(m *testing.M) {
	if dsn := os.Getenv(childDSN); dsn != "" {
		os.Exit(child(dsn))
	}
	code := m.Run()
	if server.own != nil {
		if err := server.own.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, "stop postgres:", err)
			code = 1
		}
	}
	if err := goleak.Find(); code == 0 && err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// address gives the DSN of the shared server.
func address(tb testing.TB) string {
	tb.Helper()
	server.start.Do(func() {
		if server.dsn = os.Getenv("MILEPOST_TEST_DSN"); server.dsn != "" {
			return
		}
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
		defer cancel()
		server.own, server.err = devstack.StartPostgres(ctx, devstack.PostgresConfig{
			Unsafe: os.Getenv("MILEPOST_TEST_FSYNC") == "", Settings: map[string]string{"max_connections": "200"},
		})
		if server.err == nil {
			server.dsn = server.own.DSN()
		}
	})
	if server.err != nil {
		tb.Fatalf("start postgres: %v", server.err)
	}
	return server.dsn
}

// database makes an empty database for the test and gives its DSN.
func database(tb testing.TB) string {
	tb.Helper()
	name := fmt.Sprintf("t_%d_%d", os.Getpid(), server.next.Add(1))
	dsn := address(tb)
	admin := connect(tb, dsn)
	execute(tb, admin, "CREATE DATABASE "+name)
	tb.Cleanup(func() { execute(tb, connect(tb, dsn), "DROP DATABASE "+name+" WITH (FORCE)") })
	u, err := url.Parse(dsn)
	if err != nil || !strings.HasPrefix(u.Scheme, "postgres") {
		tb.Fatalf("MILEPOST_TEST_DSN must be a URL: %v", err)
	}
	u.Path = "/" + name
	return u.String()
}

// migrated makes a database with Milepost's tables.
func migrated(tb testing.TB) string {
	tb.Helper()
	dsn := database(tb)
	if _, err := pgstore.Migrate(tb.Context(), dsn, pgstore.MigrateUp); err != nil {
		tb.Fatal(err)
	}
	return dsn
}

// store opens a store on the DSN; change may alter its configuration.
func store(tb testing.TB, dsn string, change ...func(*pgstore.Config)) *pgstore.Store {
	tb.Helper()
	cfg := pgstore.DefaultConfig()
	cfg.DSN = dsn
	cfg.LockTimeout, cfg.StatementTimeout = time.Minute, 2*time.Minute // the machine may be slow; tests that are about them set them
	for _, f := range change {
		f(&cfg)
	}
	s, err := pgstore.Connect(tb.Context(), cfg, func(err error, next time.Duration) { tb.Logf("waiting %s: %v", next, err) })
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(s.Close)
	return s
}

// connect opens a plain connection that knows nothing of Milepost: a zombie's, an operator's or an observer's.
func connect(tb testing.TB, dsn string) *pgx.Conn {
	tb.Helper()
	ctx := context.WithoutCancel(tb.Context())
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = conn.Close(ctx) })
	return conn
}

func execute(tb testing.TB, conn *pgx.Conn, statement string, args ...any) {
	tb.Helper()
	if _, err := conn.Exec(context.WithoutCancel(tb.Context()), statement, args...); err != nil {
		tb.Fatalf("%s: %v", statement, err)
	}
}

func scalar[T any](tb testing.TB, conn *pgx.Conn, statement string, args ...any) T {
	tb.Helper()
	var v T
	if err := conn.QueryRow(context.WithoutCancel(tb.Context()), statement, args...).Scan(&v); err != nil {
		tb.Fatalf("%s: %v", statement, err)
	}
	return v
}

// eventually waits until the condition holds.
func eventually(tb testing.TB, what string, holds func() bool) {
	tb.Helper()
	deadline := time.Now().Add(20 * time.Second)
	for !holds() {
		if time.Now().After(deadline) {
			tb.Fatalf("not within 20 s: %s", what)
		}
		time.Sleep(2 * time.Millisecond)
	}
}

// waiters counts the sessions of the connection's database that wait for a lock with a statement like the pattern.
func waiters(tb testing.TB, conn *pgx.Conn, pattern string) int {
	tb.Helper()
	return scalar[int](tb, conn, `SELECT count(*) FROM pg_stat_activity
		WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE $1`, pattern)
}

// T1: Postgres and the memory store pass one suite.
func TestConformance(t *testing.T) { conform(t) }

// conform runs the suite on one store, whose tables are emptied before each test.
func conform(t *testing.T, change ...func(*pgstore.Config)) {
	t.Helper()
	dsn := migrated(t)
	s := store(t, dsn, change...)
	admin := connect(t, dsn)
	committest.Run(t, func(t *testing.T) committest.Stores {
		t.Helper()
		execute(t, admin, "TRUNCATE partition_owner, partition_frontier, checkpoint, quarantine")
		return s
	})
}

// own acquires a partition as a new tenure, whoever had it.
func own(tb testing.TB, s *pgstore.Store, p stream.Partition, instance string, nonce byte) *commit.Tenure {
	tb.Helper()
	rows, err := s.Epochs(tb.Context(), "g", []stream.Partition{p})
	if err != nil {
		tb.Fatal(err)
	}
	won, err := s.Acquire(tb.Context(), []commit.Claim{claimOf(rows[0], instance, nonce)})
	if err != nil || !won[0] {
		tb.Fatalf("acquire %s over epoch %d: %v, %v", p, rows[0].Epoch, won, err)
	}
	return tenureOf(p, rows[0].Epoch+1, nonce)
}

func claimOf(row commit.OwnerRow, instance string, nonce byte) commit.Claim {
	return commit.Claim{
		Group: "g", Partition: row.Partition, Expected: row.Epoch, Nonce: stream.Nonce{nonce}, Generation: 7,
		MemberID: "member-" + instance, Instance: instance, Lanes: 3, TopicID: [16]byte{1}, TopicGeneration: 1,
		LedgerTopicID: [16]byte{2}, Partitions: 8, First: stream.Frontier{Next: committest.Rev(100), LeaderEpoch: 5}, FirstFloor: 10,
	}
}

func tenureOf(p stream.Partition, epoch stream.Epoch, nonce byte) *commit.Tenure {
	return commit.NewTenure(commit.Ownership{
		Group: "g", Partition: p, TopicGeneration: 1, Epoch: epoch, Nonce: stream.Nonce{nonce}, MemberID: "member",
	})
}
