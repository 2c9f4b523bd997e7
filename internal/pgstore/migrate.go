package pgstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"

	"milepost/migrations"
)

// MigrateCommand is what Migrate does.
type MigrateCommand string

// The commands of Migrate, with the meaning that the stock goose command gives them.
const (
	MigrateUp     MigrateCommand = "up"     // apply everything that is pending
	MigrateDown   MigrateCommand = "down"   // take the newest applied migration back
	MigrateStatus MigrateCommand = "status" // list all
)

// Migration is one migration as it stands or as it was just run.
type Migration struct {
	Version   int64
	Name      string // file name
	Applied   bool
	AppliedAt time.Time     // of MigrateStatus, zero where pending
	Took      time.Duration // of MigrateUp and MigrateDown
}

// migrationLock is the advisory lock that keeps two migrating processes apart: the one that goose's own library uses.
const migrationLock int64 = 4097083626

// Migrate runs the command on the database and returns the migrations it ran, or with MigrateStatus all of them. Any number
// of processes may call it at once: they take turns by an advisory lock, so the DSN must not lead through a transaction pooler.
func Migrate(ctx context.Context, dsn string, command MigrateCommand) (done []Migration, err error) {
	cfg, err := pgxpool.ParseConfig(dsn) // not pgx's: the DSN may have settings for the pool
	if err != nil {
		return nil, fmt.Errorf("parse dsn: %w", err)
	}
	db := stdlib.OpenDB(*cfg.ConnConfig)
	defer func() { err = errors.Join(err, db.Close()) }()
	lock, err := db.Conn(ctx)
	if err != nil {
		return nil, fmt.Errorf("connect to migrate: %w", err)
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	if _, err := lock.ExecContext(ctx, "SELECT pg_advisory_lock($1)", migrationLock); err != nil {
		return nil, fmt.Errorf("wait for the migration lock: %w", err)
	}
	// The lock ends with its session in any case; this gives it back before the connection is closed.
	defer func() {
		_, unlockErr := lock.ExecContext(context.WithoutCancel(ctx), "SELECT pg_advisory_unlock($1)", migrationLock)
		err = errors.Join(err, unlockErr)
	}()
	return migrate(ctx, db, command)
}

func migrate(ctx context.Context, db *sql.DB, command MigrateCommand) ([]Migration, error) {
	p, err := goose.NewProvider(goose.DialectPostgres, db, migrations.FS, goose.WithDisableGlobalRegistry(true))
	if err != nil {
		return nil, fmt.Errorf("read migrations: %w", err)
	}
	switch command {
	case MigrateUp:
		results, err := p.Up(ctx)
		if err != nil {
			return nil, fmt.Errorf("migrate up: %w", err)
		}
		return ran(results, true), nil
	case MigrateDown:
		result, err := p.Down(ctx)
		if errors.Is(err, goose.ErrNoNextVersion) {
			return nil, nil
		}
		if err != nil {
			return nil, fmt.Errorf("migrate down: %w", err)
		}
		return ran([]*goose.MigrationResult{result}, false), nil
	case MigrateStatus:
		all, err := p.Status(ctx)
		if err != nil {
			return nil, fmt.Errorf("read migration status: %w", err)
		}
		list := make([]Migration, 0, len(all))
		for _, m := range all {
			list = append(list, Migration{
				Version: m.Source.Version, Name: path.Base(m.Source.Path),
				Applied: m.State == goose.StateApplied, AppliedAt: m.AppliedAt,
			})
		}
		return list, nil
	}
	return nil, fmt.Errorf("migrate: no command %q: up, down or status", command)
}

func ran(results []*goose.MigrationResult, applied bool) []Migration {
	list := make([]Migration, 0, len(results))
	for _, r := range results {
		list = append(list, Migration{Version: r.Source.Version, Name: path.Base(r.Source.Path), Applied: applied, Took: r.Duration})
	}
	return list
}

// CheckSchema reports an error that names the remedy where the database does not have every migration of this program.
func (s *Store) CheckSchema(ctx context.Context) error {
	want, err := newestMigration()
	if err != nil {
		return err
	}
	var has int64
	err = s.rows(ctx, "read schema version", schemaVersionSQL, nil, func(row pgx.CollectableRow) error { return row.Scan(&has) })
	var pg *pgconn.PgError
	switch {
	case errors.As(err, &pg) && pg.Code == undefinedTable:
		return fmt.Errorf("the database has no tables of milepost: run orchestrator migrate up: %w", err)
	case err != nil:
		return err
	case has < want:
		return fmt.Errorf("the database is at migration %d, this program needs %d: run orchestrator migrate up", has, want)
	}
	return nil
}

// undefinedTable is Postgres's undefined_table.
const undefinedTable = "42P01"

// schemaVersionSQL reads goose's table as goose does: for each version its last entry counts.
const schemaVersionSQL = `
SELECT coalesce(max(version_id), 0)
FROM (SELECT DISTINCT ON (version_id) version_id, is_applied FROM goose_db_version ORDER BY version_id, id DESC) v
WHERE is_applied`

func newestMigration() (int64, error) {
	entries, err := migrations.FS.ReadDir(".")
	if err != nil {
		return 0, fmt.Errorf("read migrations: %w", err)
	}
	var newest int64
	for _, e := range entries {
		version, err := goose.NumericComponent(e.Name())
		if err != nil {
			return 0, fmt.Errorf("read migrations: %w", err)
		}
		newest = max(newest, version)
	}
	return newest, nil
}
