package pgstore

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"milepost/internal/commit"
)

// Store implements commit.Store and commit.Owners. It is safe for concurrent use.
type Store struct {
	pool *pgxpool.Pool
	cfg  Config
}

var (
	_ commit.Store  = (*Store)(nil)
	_ commit.Owners = (*Store)(nil)
)

// Waiting is told of each failed attempt to connect: what went wrong and how long until the next attempt.
type Waiting func(err error, next time.Duration)

// Open makes a store without connecting: its first use does.
func Open(ctx context.Context, cfg Config) (*Store, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("postgres configuration: %w", err)
	}
	p, err := cfg.pool()
	if err != nil {
		return nil, err
	}
	pool, err := pgxpool.NewWithConfig(ctx, p)
	if err != nil {
		return nil, fmt.Errorf("make connection pool: %w", err)
	}
	return &Store{pool: pool, cfg: cfg}, nil
}

// Connect opens a store and waits with backoff (100 ms doubling to 5 s) until the database answers or ctx ends.
func Connect(ctx context.Context, cfg Config, waiting Waiting) (*Store, error) {
	s, err := Open(ctx, cfg)
	if err != nil {
		return nil, err
	}
	if err := s.Await(ctx, waiting); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// Await waits with backoff until the database answers or ctx ends.
func (s *Store) Await(ctx context.Context, waiting Waiting) error {
	const first, longest, attempt = 100 * time.Millisecond, 5 * time.Second, 10 * time.Second
	for wait := first; ; wait = min(2*wait, longest) {
		err := s.Ping(ctx, attempt)
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return fmt.Errorf("connect to postgres: %w", ctx.Err())
		}
		if waiting != nil {
			waiting(err, wait)
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return fmt.Errorf("connect to postgres: %w", ctx.Err())
		}
	}
}

// Ping asks the database for a sign of life within the timeout.
func (s *Store) Ping(ctx context.Context, timeout time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	if err := s.pool.Ping(ctx); err != nil {
		return fmt.Errorf("ping postgres: %w", err)
	}
	return nil
}

// Close ends all connections and waits for those in use.
func (s *Store) Close() { s.pool.Close() }

// settle makes a new session as safe as S2 and S8 ask where the connection's parameters cannot.
func settle(ctx context.Context, conn *pgx.Conn) error {
	_, err := conn.Exec(ctx, `
		SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'
		UNION ALL
		SELECT set_config('transaction_timeout', current_setting('statement_timeout'), false)
		WHERE current_setting('server_version_num')::int >= 170000`, pgx.QueryExecModeSimpleProtocol)
	if err != nil {
		return fmt.Errorf("set up session: %w", err)
	}
	return nil
}

// outlast gives the context of a statement that has begun: it ends a grace after ctx does, and in any case when the
// server must have answered long ago.
func (s *Store) outlast(ctx context.Context) (context.Context, context.CancelFunc) {
	detached, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.cfg.StatementTimeout+s.cfg.TCPUserTimeout)
	stop := context.AfterFunc(ctx, func() {
		timer := time.NewTimer(s.cfg.Grace)
		defer timer.Stop()
		select {
		case <-timer.C:
			cancel()
		case <-detached.Done():
		}
	})
	return detached, func() {
		stop()
		cancel()
	}
}

// do runs f, a statement and the reading of its answer, on a connection. An error tells what was tried and has its class.
func (s *Store) do(ctx context.Context, what string, f func(ctx context.Context, conn *pgxpool.Conn) error) error {
	conn, err := s.pool.Acquire(ctx)
	if err != nil {
		return classify(ctx, what, err)
	}
	defer conn.Release()
	outlasting, done := s.outlast(ctx)
	defer done()
	return classify(ctx, what, f(outlasting, conn))
}

// rows runs a query and calls each for every row, which it scans itself.
func (s *Store) rows(ctx context.Context, what, sql string, args []any, each func(row pgx.CollectableRow) error) error {
	return s.do(ctx, what, func(ctx context.Context, conn *pgxpool.Conn) error {
		rows, err := conn.Query(ctx, sql, args...)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			if err := each(rows); err != nil {
				return err
			}
		}
		return rows.Err()
	})
}
