package pgstore_test

import (
	"context"
	"flag"
	"fmt"
	"net/url"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"go.uber.org/goleak"

	"milepost/internal/commit/committest"
	"milepost/internal/devstack"
	"milepost/internal/pgstore"
)

// server is the Postgres that the package's tests share; each test has a database of its own.
var server struct {
	dsn  string
	err  error
	next atomic.Int64
}

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(run(m))
}

func run(m *testing.M) int {
	if server.dsn = os.Getenv("MILEPOST_TEST_DSN"); server.dsn == "" {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
		defer cancel()
		pg, err := devstack.StartPostgres(ctx, devstack.PostgresConfig{
			Unsafe: os.Getenv("MILEPOST_TEST_FSYNC") == "", Settings: map[string]string{"max_connections": "200"},
		})
		if err != nil {
			fmt.Fprintln(os.Stderr, "start postgres:", err)
			return 1
		}
		defer func() { _ = pg.Stop() }()
		server.dsn = pg.DSN()
	}
	before := goleak.IgnoreCurrent() // the server's keeper is devstack's and ends with Stop
	code := m.Run()
	if err := goleak.Find(before); code == 0 && err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

// database makes an empty database for the test and gives its DSN.
func database(t testing.TB) string {
	t.Helper()
	name := fmt.Sprintf("t_%d_%d", os.Getpid(), server.next.Add(1))
	admin := connect(t, server.dsn)
	exec(t, admin, "CREATE DATABASE "+name)
	t.Cleanup(func() { exec(t, connect(t, server.dsn), "DROP DATABASE "+name+" WITH (FORCE)") })
	u, err := url.Parse(server.dsn)
	if err != nil || !strings.HasPrefix(u.Scheme, "postgres") {
		t.Fatalf("MILEPOST_TEST_DSN must be a URL: %v", err)
	}
	u.Path = "/" + name
	return u.String()
}

// migrated makes a database with Milepost's tables.
func migrated(t testing.TB) string {
	t.Helper()
	dsn := database(t)
	if _, err := pgstore.Migrate(t.Context(), dsn, pgstore.MigrateUp); err != nil {
		t.Fatal(err)
	}
	return dsn
}

// store opens a store on the DSN; change may alter its configuration.
func store(t testing.TB, dsn string, change ...func(*pgstore.Config)) *pgstore.Store {
	t.Helper()
	cfg := pgstore.DefaultConfig()
	cfg.DSN = dsn
	for _, f := range change {
		f(&cfg)
	}
	s, err := pgstore.Connect(t.Context(), cfg, func(err error, next time.Duration) { t.Logf("waiting %s: %v", next, err) })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// connect opens a plain connection that knows nothing of Milepost: a zombie's, an operator's or an observer's.
func connect(t testing.TB, dsn string) *pgx.Conn {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(ctx) })
	return conn
}

func exec(t testing.TB, conn *pgx.Conn, sql string, args ...any) {
	t.Helper()
	if _, err := conn.Exec(context.WithoutCancel(t.Context()), sql, args...); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

func scalar[T any](t testing.TB, conn *pgx.Conn, sql string, args ...any) T {
	t.Helper()
	var v T
	if err := conn.QueryRow(context.WithoutCancel(t.Context()), sql, args...).Scan(&v); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return v
}

// eventually waits until the condition holds.
func eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	deadline := time.Now().Add(20 * time.Second)
	for !holds() {
		if time.Now().After(deadline) {
			t.Fatalf("not within 20 s: %s", what)
		}
		time.Sleep(2 * time.Millisecond)
	}
}

// waiters counts the sessions of the connection's database that wait for a lock with a statement like the pattern.
func waiters(t testing.TB, conn *pgx.Conn, pattern string) int {
	t.Helper()
	return scalar[int](t, conn, `SELECT count(*) FROM pg_stat_activity
		WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE $1`, pattern)
}

// T1: Postgres and the memory store pass one suite.
func TestConformance(t *testing.T) {
	committest.Run(t, func(t *testing.T) committest.Stores { return store(t, migrated(t)) })
}
