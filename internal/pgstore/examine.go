package pgstore

import (
	"context"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"milepost/internal/doctor"
)

const (
	oldestServer = 140000           // server_version_num
	skewAllowed  = time.Second      // of clocks; no decision rests on them, but people compare log lines
	oldSnapshot  = 10 * time.Minute // P37: it keeps dead rows of the hot table
	leastSpare   = 10               // connections
)

const factsSQL = `
SELECT current_setting('server_version_num')::int, current_setting('server_version'), pg_is_in_recovery(),
       current_setting('fsync'), current_setting('full_page_writes'), current_setting('synchronous_commit'),
       current_setting('synchronous_standby_names'), current_setting('max_connections')::int, (SELECT count(*) FROM pg_stat_activity)::int,
       coalesce((SELECT extract(epoch FROM max(clock_timestamp() - xact_start)) FROM pg_stat_activity
                 WHERE backend_xmin IS NOT NULL AND pid <> pg_backend_pid()), 0)::float8,
       (SELECT count(*) FROM pg_prepared_xacts)::int,
       (SELECT count(*) FROM pg_replication_slots WHERE NOT active)::int,
       pg_database_size(current_database()), clock_timestamp()`

// serverFacts is what the server says of itself.
type serverFacts struct {
	number                                           int
	version                                          string
	standby                                          bool
	fsync, fullPages, synchronousCommit, standbys    string
	maxConnections, connections, prepared, idleSlots int
	snapshotAge                                      float64 // seconds
	bytes                                            int64
	clock                                            time.Time
}

// Examine looks at the database with the session settings that a worker has: what is wrong comes with its remedy (D1).
func (s *Store) Examine(ctx context.Context) []doctor.Finding {
	e := doctor.Examination{Area: "postgres"}
	var f serverFacts
	before := time.Now()
	err := s.rows(ctx, "read the server's settings", factsSQL, nil, func(row pgx.CollectableRow) error {
		return row.Scan(&f.number, &f.version, &f.standby, &f.fsync, &f.fullPages, &f.synchronousCommit, &f.standbys,
			&f.maxConnections, &f.connections, &f.snapshotAge, &f.prepared, &f.idleSlots, &f.bytes, &f.clock)
	})
	if err != nil {
		e.Fail("reachable", "check --dsn, the network and the role's rights", "%v", err)
		return e.Findings
	}
	after := time.Now()
	e.OK("reachable", "answered in %s", after.Sub(before).Round(time.Millisecond))
	f.examine(&e)
	// The answer was made somewhere between asking and hearing it.
	skew := f.clock.Sub(before.Add(after.Sub(before) / 2)).Abs()
	skew = max(skew-after.Sub(before)/2, 0)
	e.Check("clock", skew <= skewAllowed, doctor.Warn, "synchronise the clocks (NTP): no decision rests on them, but log lines do not match",
		"%s apart from ours", skew.Round(time.Millisecond))
	if err := s.CheckSchema(ctx); err != nil {
		e.Fail("schema", "orchestrator migrate up", "%v", err)
	} else {
		e.OK("schema", "every migration of this program is applied")
	}
	return e.Findings
}

func (f *serverFacts) examine(e *doctor.Examination) {
	e.Check("version", f.number >= oldestServer, doctor.Fail, "upgrade to Postgres 14 or newer", "%s", f.version)
	e.Check("primary", !f.standby, doctor.Fail, "--dsn must lead to the primary", "in recovery: %t", f.standby)
	e.Check("fsync", f.fsync == "on", doctor.Fail, "set fsync = on: without it a crash takes back what was prepared", "%s", f.fsync)
	e.Check("full_page_writes", f.fullPages == "on", doctor.Fail, "set full_page_writes = on: a torn page is lost data", "%s", f.fullPages)
	e.Check("synchronous_commit", f.synchronousCommit != "off" && f.synchronousCommit != "local", doctor.Fail,
		"let sessions commit synchronously (synchronous_commit = on); a pooler must not hide the setting", "%s", f.synchronousCommit)
	e.Check("synchronous standby", f.standbys != "", doctor.Warn,
		"set synchronous_standby_names: without a synchronous standby a failover can lose commits, and exactly-once with them", "%s", orNone(f.standbys))
	spare := f.maxConnections - f.connections
	e.Check("connections", spare >= leastSpare, doctor.Warn, "raise max_connections, or put a pooler between and set --dsn-pooler",
		"%d of %d in use", f.connections, f.maxConnections)
	age := time.Duration(f.snapshotAge * float64(time.Second)).Round(time.Second)
	e.Check("old snapshots", age < oldSnapshot, doctor.Warn, "end the transaction (pg_stat_activity, backend_xmin): it keeps dead rows of the hot tables",
		"oldest is %s", age)
	e.Check("prepared transactions", f.prepared == 0, doctor.Warn, "commit or roll them back (pg_prepared_xacts): they hold locks and snapshots; none is ours",
		"%d", f.prepared)
	e.Check("replication slots", f.idleSlots == 0, doctor.Warn, "drop slots that nobody reads (pg_replication_slots): they keep the log for ever and fill the disk",
		"%d inactive", f.idleSlots)
	e.OK("size", "%s MB in this database; how much is free the server does not tell", strconv.FormatInt(f.bytes>>20, 10))
}

func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return s
}
