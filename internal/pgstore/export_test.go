package pgstore

import (
	"context"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Pool gives tests the store's own sessions.
func (s *Store) Pool() *pgxpool.Pool { return s.pool }

// OpenDialing opens a store whose connections the test dials.
func OpenDialing(ctx context.Context, cfg Config, dial pgconn.DialFunc) (*Store, error) {
	p, err := cfg.pool()
	if err != nil {
		return nil, err
	}
	p.ConnConfig.DialFunc = dial
	pool, err := pgxpool.NewWithConfig(ctx, p)
	if err != nil {
		return nil, err
	}
	return &Store{pool: pool, cfg: cfg}, nil
}
