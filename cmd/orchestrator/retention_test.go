package main

import (
	"context"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
)

// A5, F8: --state-retention on real statements: the worker that owns a vehicle which was quiet for long lets go of its state, and the vehicle's
// next event says that it has expired.
func TestStateRetentionLive(t *testing.T) {
	y := newYard(t)
	brokers := []string{"--brokers", strings.Join(y.addrs, ","), "--prefix", "p"}
	roadMap := mapFile(t)
	db, err := pgx.Connect(t.Context(), y.dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close(context.WithoutCancel(t.Context())) }()
	play := func() {
		t.Helper()
		if got := orchestrator(t, trip, append([]string{"replay", "--raw", "raw", "--input", "csv", "-"}, brokers[:2]...)...); got.code != 0 {
			t.Fatalf("replay: %+v", got)
		}
	}
	rows := func(where string) (n int) {
		t.Helper()
		if err := db.QueryRow(t.Context(), "SELECT count(*) FROM checkpoint WHERE "+where).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	stop := y.worker(brokers, roadMap)
	if err := waitFor(t, "the worker to own both partitions", func(context.Context) bool {
		return strings.Count(y.run(append([]string{"status", "--json"}, brokers...)...).out, `"lag":0`) == 2
	}); err != nil {
		t.Fatal(err)
	}
	play()
	if got := y.outputs(5); len(got) != 5 {
		t.Fatalf("outputs: %q", got)
	}
	stop()
	if n := rows("NOT expired"); n != 1 {
		t.Fatalf("%d vehicles, want one", n)
	}
	if _, err := db.Exec(t.Context(), "UPDATE checkpoint SET touched_at = now() - interval '1 day'"); err != nil {
		t.Fatal(err)
	}
	stop = y.worker(append(brokers, "--state-retention", "20m"), roadMap)
	defer func() { stop() }()
	if err := waitFor(t, "the state to expire", func(context.Context) bool { return rows("expired") == 1 }); err != nil {
		t.Fatal(err)
	}
	play()
	got := y.outputs(10)
	if len(got) != 10 || !strings.HasSuffix(got[5], " expired") {
		t.Errorf("outputs: %q, want ten, the sixth with a reset of reason expired", got)
	}
	for _, id := range append(got[:5:5], got[6:]...) {
		if strings.Contains(id, " ") {
			t.Errorf("another reset: %s", id)
		}
	}
	if got := y.run("run", "--map", roadMap, "--state-retention", "5m"); got.code != exitUsage || !strings.Contains(got.err, "state retention is 5m0s") {
		t.Errorf("a retention that is too short: %+v", got)
	}
}
