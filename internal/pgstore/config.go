package pgstore

import (
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Config says how to reach the database and how long anything there may take.
type Config struct {
	// DSN is a connection URL or keyword string; it may hold a password and is never logged.
	DSN string
	// MaxConns bounds the pool.
	MaxConns int32
	// Pooler says that a transaction pooler (PgBouncer) stands between: statements are not prepared by name and the
	// session settings below are not sent, so that they must be set on the role (ALTER ROLE ... SET).
	Pooler bool
	// LockTimeout bounds the wait for one lock: that of an acquisition for a write under way, and the reverse.
	LockTimeout time.Duration
	// StatementTimeout bounds a statement.
	StatementTimeout time.Duration
	// IdleInTransaction ends a session that stands still in a transaction: no one of ours does, a zombie may.
	IdleInTransaction time.Duration
	// TCPUserTimeout is how long the server waits for a silent peer's acknowledgement.
	TCPUserTimeout time.Duration
	// Grace is how long a statement that has begun may go on after its caller was cancelled.
	Grace time.Duration
	// MaxRowBytes bounds a commit's state and outputs together; more is permanent.
	MaxRowBytes int
	// MaxQuarantine bounds the quarantined observations of a partition.
	MaxQuarantine int
}

// DefaultConfig is the configuration without a DSN.
func DefaultConfig() Config {
	return Config{
		MaxConns:          8,
		LockTimeout:       3 * time.Second,
		StatementTimeout:  10 * time.Second,
		IdleInTransaction: 5 * time.Second,
		TCPUserTimeout:    10 * time.Second,
		Grace:             2 * time.Second,
		MaxRowBytes:       64 << 20,
		MaxQuarantine:     100_000,
	}
}

// Validate reports every value out of its limits.
func (c Config) Validate() error {
	var errs []error
	if c.DSN == "" {
		errs = append(errs, errors.New("dsn is empty"))
	}
	for _, l := range []struct {
		name        string
		value       int64
		least, most int64
		unit        string
	}{
		{"max conns", int64(c.MaxConns), 2, 1000, "connections"},
		{"lock timeout", c.LockTimeout.Milliseconds(), 50, 60_000, "ms"},
		{"statement timeout", c.StatementTimeout.Milliseconds(), 100, 600_000, "ms"},
		{"idle in transaction", c.IdleInTransaction.Milliseconds(), 100, 60_000, "ms"},
		{"tcp user timeout", c.TCPUserTimeout.Milliseconds(), 1000, 120_000, "ms"},
		{"grace", c.Grace.Milliseconds(), 0, 60_000, "ms"},
		{"max row bytes", int64(c.MaxRowBytes), 1 << 10, 512 << 20, "bytes"},
		{"max quarantine", int64(c.MaxQuarantine), 1, 10_000_000, "rows"},
	} {
		if l.value < l.least || l.value > l.most {
			errs = append(errs, fmt.Errorf("%s is %d %s, must be %d to %d", l.name, l.value, l.unit, l.least, l.most))
		}
	}
	return errors.Join(errs...)
}

// pool is the configuration of the connection pool.
func (c Config) pool() (*pgxpool.Config, error) {
	p, err := pgxpool.ParseConfig(c.DSN)
	if err != nil {
		return nil, fmt.Errorf("parse dsn: %w", err) // pgx leaves the password out of its message
	}
	p.MaxConns = c.MaxConns
	params := p.ConnConfig.RuntimeParams
	if params["application_name"] == "" {
		params["application_name"] = "milepost"
	}
	if c.Pooler {
		p.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeCacheDescribe
		return p, nil
	}
	maps.Copy(params, c.session())
	p.AfterConnect = settle
	return p, nil
}

// session gives the settings that each session starts with.
func (c Config) session() map[string]string {
	ms := func(d time.Duration) string { return fmt.Sprintf("%dms", d.Milliseconds()) }
	return map[string]string{
		"default_transaction_isolation":       "read committed", // S8
		"idle_in_transaction_session_timeout": ms(c.IdleInTransaction),
		"lock_timeout":                        ms(c.LockTimeout),
		"statement_timeout":                   ms(c.StatementTimeout),
		"tcp_user_timeout":                    ms(c.TCPUserTimeout),
		// Every statement looks rows up by key, a few hundred a time. A plan made while the tables are small or
		// not analysed yet must not turn into a scan of a million rows; and planning each anew costs more than running it.
		"plan_cache_mode":  "force_generic_plan",
		"enable_seqscan":   "off",
		"enable_hashjoin":  "off",
		"enable_mergejoin": "off",
		"jit":              "off",
	}
}
