package pgstore_test

import (
	"context"
	"io"
	"net"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"milepost/internal/commit"
	"milepost/internal/commit/committest"
	"milepost/internal/pgstore"
)

// A database that is down at start: the process says so, waits with backoff and goes on when it is there.
func TestConnectWaitsForTheDatabase(t *testing.T) {
	dsn := migrated(t)
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	upstream := u.Host
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	u.Host = free.Addr().String()
	if err := free.Close(); err != nil {
		t.Fatal(err)
	}
	var attempts atomic.Int32
	var pauses []time.Duration
	cfg := pgstore.DefaultConfig()
	cfg.DSN = u.String()
	s, err := pgstore.Connect(t.Context(), cfg, func(err error, next time.Duration) {
		if err == nil || strings.Contains(err.Error(), "password") || (u.User != nil && containsPassword(err, u)) {
			t.Errorf("told of %v", err)
		}
		pauses = append(pauses, next)
		if attempts.Add(1) == 3 {
			proxy(t, u.Host, upstream)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if diff := cmp.Diff([]time.Duration{100 * time.Millisecond, 200 * time.Millisecond, 400 * time.Millisecond}, pauses[:3]); diff != "" {
		t.Errorf("pauses (-want +got):\n%s", diff)
	}
	mustPrepare(t, s, committest.CommitOf(own(t, s, committest.Part(0), "a", 1), "k", -1, 100))
}

func containsPassword(err error, u *url.URL) bool {
	password, set := u.User.Password()
	return set && password != "" && strings.Contains(err.Error(), password)
}

// proxy forwards connections from the address to the upstream until the test ends.
func proxy(t *testing.T, address, upstream string) {
	t.Helper()
	listener, err := net.Listen("tcp", address)
	if err != nil {
		t.Error(err)
		return
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("tcp", upstream)
			if err != nil {
				_ = client.Close()
				continue
			}
			pipe := func(to, from net.Conn) {
				_, _ = io.Copy(to, from)
				_ = to.Close()
			}
			go pipe(server, client)
			go pipe(client, server)
		}
	}()
}

// A start that is given up while the database is down ends at once, as cancelled.
func TestConnectGivesUpWithItsContext(t *testing.T) {
	cfg := pgstore.DefaultConfig()
	cfg.DSN = "postgres://nobody@127.0.0.1:1/nothing"
	ctx, cancel := context.WithCancel(t.Context())
	_, err := pgstore.Connect(ctx, cfg, func(error, time.Duration) { cancel() })
	if err == nil || commit.ClassOf(err) != commit.Canceled {
		t.Errorf("connect: %v, want canceled", err)
	}
}

// S2, S8, P36, F22: whatever the database's defaults, our sessions are read committed, commit synchronously and bound every wait.
func TestSessionSettings(t *testing.T) {
	dsn := migrated(t)
	admin := connect(t, dsn)
	for setting, value := range map[string]string{"synchronous_commit": "off", "default_transaction_isolation": "serializable", "jit": "on"} {
		execute(t, admin, "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET "+setting+" = ''"+value+"''', current_database()); END $$")
	}
	s := store(t, dsn, func(c *pgstore.Config) {
		*c = pgstore.DefaultConfig()
		c.DSN = dsn
	})
	conn, err := s.Pool().Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Release()
	for setting, want := range map[string]string{
		"synchronous_commit": "on", "transaction_isolation": "read committed", "idle_in_transaction_session_timeout": "5s",
		"lock_timeout": "3s", "statement_timeout": "10s", "tcp_user_timeout": "10000", "application_name": "milepost", "jit": "off",
	} {
		if got := scalar[string](t, conn.Conn(), "SELECT current_setting($1)", setting); got != want {
			t.Errorf("%s is %q, want %q", setting, got, want)
		}
	}
}

// T1: the suite passes with the statements that suit a transaction pooler as well: none is prepared by name.
func TestConformanceForPooler(t *testing.T) {
	conform(t, func(c *pgstore.Config) { c.Pooler = true })
}

// Limits are checked all at once, each with its unit.
func TestConfigValidate(t *testing.T) {
	cfg := pgstore.DefaultConfig()
	cfg.DSN = "postgres:///x"
	if err := cfg.Validate(); err != nil {
		t.Errorf("the defaults: %v", err)
	}
	cfg.DSN, cfg.MaxConns, cfg.LockTimeout = "", 1, time.Hour
	err := cfg.Validate()
	for _, want := range []string{"dsn is empty", "max conns is 1 connections", "lock timeout is 3600000 ms, must be 50 to 60000"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("validate: %v, want %q", err, want)
		}
	}
}
