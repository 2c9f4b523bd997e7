package pgstore

import "github.com/jackc/pgx/v5/pgxpool"

// Pool gives tests the store's own sessions.
func (s *Store) Pool() *pgxpool.Pool { return s.pool }
