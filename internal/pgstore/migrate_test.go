package pgstore_test

import (
	"context"
	"database/sql"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	_ "github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"

	"milepost/internal/commit/committest"
	"milepost/internal/pgstore"
)

// schemaOf describes every column, index and constraint, with the comments, one a line.
func schemaOf(t *testing.T, dsn string) string {
	t.Helper()
	return scalar[string](t, connect(t, dsn), `
		SELECT coalesce(string_agg(line, E'\n' ORDER BY line), '') FROM (
			SELECT c.relname || '.' || a.attname || ' ' || format_type(a.atttypid, a.atttypmod) || ' ' || a.attnotnull
				|| ' ' || coalesce(col_description(c.oid, a.attnum), '') AS line
			FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 WHERE c.relnamespace = 'public'::regnamespace AND c.relkind = 'r'
			UNION ALL SELECT indexdef FROM pg_indexes WHERE schemaname = 'public'
			UNION ALL SELECT conrelid::regclass || ' ' || conname || ' ' || pg_get_constraintdef(oid) FROM pg_constraint WHERE connamespace = 'public'::regnamespace
			UNION ALL SELECT relname || ' ' || coalesce(reloptions::text, '') || ' ' || coalesce(obj_description(oid), '') FROM pg_class
				WHERE relnamespace = 'public'::regnamespace AND relkind = 'r'
		) s WHERE line NOT LIKE '%goose%'`)
}

func migrate(t *testing.T, dsn string, command pgstore.MigrateCommand) []pgstore.Migration {
	t.Helper()
	done, err := pgstore.Migrate(t.Context(), dsn, command)
	if err != nil {
		t.Fatal(err)
	}
	return done
}

// The design's "tables come and go with SQL migration tooling": up, down to nothing, up again give the same tables, whether the library or the
// stock goose command's own code path runs the files, and each goes on where the other stopped.
func TestMigrationsUpDownUp(t *testing.T) {
	dsn := database(t)
	if all := migrate(t, dsn, pgstore.MigrateStatus); len(all) == 0 || all[0].Applied {
		t.Fatalf("status of an empty database: %+v", all)
	}
	up := migrate(t, dsn, pgstore.MigrateUp)
	first := schemaOf(t, dsn)
	if !strings.Contains(first, "checkpoint.key bytea") {
		t.Fatalf("no checkpoint table after the migrations:\n%s", first)
	}
	if again := migrate(t, dsn, pgstore.MigrateUp); len(again) != 0 {
		t.Errorf("a second up ran %v", again)
	}
	for range up {
		if down := migrate(t, dsn, pgstore.MigrateDown); len(down) != 1 || down[0].Applied {
			t.Errorf("down ran %v, want one migration taken back", down)
		}
	}
	if none := migrate(t, dsn, pgstore.MigrateDown); len(none) != 0 {
		t.Errorf("down on an empty database ran %v", none)
	}
	if left := schemaOf(t, dsn); left != "" {
		t.Errorf("left behind after down:\n%s", left)
	}

	db, err := sql.Open("pgx", dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	stock := func(command string) {
		t.Helper()
		goose.SetLogger(goose.NopLogger())
		if err := goose.SetDialect("postgres"); err != nil {
			t.Fatal(err)
		}
		if err := goose.RunContext(t.Context(), command, db, "../../migrations"); err != nil {
			t.Fatalf("goose %s: %v", command, err)
		}
	}
	stock("up")
	if diff := cmp.Diff(first, schemaOf(t, dsn)); diff != "" {
		t.Errorf("the stock command makes other tables (-library +stock):\n%s", diff)
	}
	stock("down")
	if again := migrate(t, dsn, pgstore.MigrateUp); len(again) != 1 {
		t.Errorf("after the stock command's down the library ran %v, want one migration", again)
	}
	stock("reset")
	migrate(t, dsn, pgstore.MigrateUp)
	if diff := cmp.Diff(first, schemaOf(t, dsn)); diff != "" {
		t.Errorf("up, down, up changed the tables (-first +last):\n%s", diff)
	}
}

// A migration taken back leaves the other tables' rows alone.
func TestDownKeepsTheOtherTables(t *testing.T) {
	dsn := migrated(t)
	s := store(t, dsn)
	mustPrepare(t, s, committest.CommitOf(own(t, s, committest.Part(0), "a", 1), "k", -1, 100))
	s.Close()
	migrate(t, dsn, pgstore.MigrateDown)
	migrate(t, dsn, pgstore.MigrateUp)
	if n := scalar[int](t, connect(t, dsn), "SELECT count(*) FROM checkpoint JOIN partition_owner USING (group_id, topic, partition)"); n != 1 {
		t.Errorf("%d rows are left of one", n)
	}
}

// Processes that start at once take turns: every one succeeds, each migration runs once.
func TestMigrateFromManyProcessesAtOnce(t *testing.T) {
	dsn := database(t)
	var (
		wg   sync.WaitGroup
		mu   sync.Mutex
		runs int
	)
	for range 6 {
		wg.Go(func() {
			done, err := pgstore.Migrate(context.Background(), dsn, pgstore.MigrateUp)
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			runs += len(done)
		})
	}
	wg.Wait()
	if all := migrate(t, dsn, pgstore.MigrateStatus); runs != len(all) {
		t.Errorf("%d migrations ran, want %d", runs, len(all))
	}
	if n := scalar[int](t, connect(t, dsn), "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'"); n != 0 {
		t.Errorf("%d advisory locks are left", n)
	}
}

// A program that finds older tables, or none, says which command helps.
func TestCheckSchemaNamesTheRemedy(t *testing.T) {
	dsn := database(t)
	s := store(t, dsn)
	check := func(want string) {
		t.Helper()
		if err := s.CheckSchema(t.Context()); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "migrate up") {
			t.Errorf("check: %v, want %q and the remedy", err, want)
		}
	}
	check("no tables of milepost")
	migrate(t, dsn, pgstore.MigrateUp)
	if err := s.CheckSchema(t.Context()); err != nil {
		t.Error(err)
	}
	migrate(t, dsn, pgstore.MigrateDown)
	check("this program needs")
}
