package pgstore_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/jackc/pgx/v5"

	"milepost/internal/commit"
	"milepost/internal/commit/committest"
	"milepost/internal/pgstore"
	"milepost/internal/stream"
)

// operators is a store with a connection of its own that writes requests past it.
type operators struct {
	*pgstore.Store
	tb   testing.TB
	conn *pgx.Conn
}

func (o operators) Ask(group string, r commit.Request) int64 {
	o.tb.Helper()
	var key []byte
	var argument *int64
	if r.Kind == commit.RequestSeek {
		argument = &r.Offset
	} else {
		key = []byte(r.Key)
	}
	return scalar[int64](o.tb, o.conn, `INSERT INTO operator_request (group_id, topic, partition, kind, key, argument)
		VALUES ($1, $2, $3, $4, $5, $6) RETURNING id`, group, r.Partition.Topic, r.Partition.Number, string(r.Kind), key, argument)
}

func (o operators) Answered(id int64) *commit.Answer {
	o.tb.Helper()
	a := commit.Answer{Request: id}
	var state string
	err := o.conn.QueryRow(context.WithoutCancel(o.tb.Context()), "SELECT state, outcome FROM operator_request WHERE id = $1", id).Scan(&state, &a.Outcome)
	if err != nil {
		o.tb.Fatal(err)
	}
	if a.Failed = state == "failed"; state == "waiting" {
		return nil
	}
	return &a
}

// T1: Postgres's operations pass the suite that the memory store passes.
func TestOperationsConform(t *testing.T) {
	dsn := migrated(t)
	s := store(t, dsn)
	admin := connect(t, dsn)
	committest.RunOperations(t, func(t *testing.T) committest.Operators {
		t.Helper()
		execute(t, admin, "TRUNCATE partition_owner, partition_frontier, checkpoint, quarantine, operator_request")
		return operators{s, t, admin}
	})
}

// A19: what stopped a key is there to be shown, with its record and the prepared commit that could not be published;
// tombstones are not.
func TestQuarantineIsShown(t *testing.T) {
	s := store(t, migrated(t))
	tn := own(t, s, committest.Part(0), "a", 1)
	c := committest.CommitOf(tn, "poison", -1, 100)
	mustPrepare(t, s, c)
	errs, err := s.Quarantine(t.Context(), []commit.Quarantined{
		observation(tn, "poison", 100), observation(tn, "poison", 103), observation(tn, "gone", 104),
	})
	if err != nil || errs[0] != nil || errs[1] != nil || errs[2] != nil {
		t.Fatal(errs, err)
	}
	if _, err := s.Discard(t.Context(), tn, "gone", 0); err != nil {
		t.Fatal(err)
	}
	keys, err := s.QuarantineKeys(t.Context(), "g", "raw", 10)
	wantKeys := []pgstore.QuarantineKey{{
		Partition: committest.Part(0), Key: "poison", Rows: 2, First: committest.Rev(100), Last: committest.Rev(103),
		Class: observation(tn, "", 0).Class,
	}}
	if diff := cmp.Diff(wantKeys, keys, cmpopts.IgnoreFields(pgstore.QuarantineKey{}, "Since", "Reason")); err != nil || diff != "" {
		t.Errorf("keys: %v (-want +got):\n%s", err, diff)
	}
	entries, err := s.QuarantineEntries(t.Context(), "g", "raw", "poison", 10)
	if err != nil || len(entries) != 2 {
		t.Fatalf("entries: %+v, %v", entries, err)
	}
	if e := entries[0]; !e.Evidence || cmp.Diff(c.Outputs, e.Outputs, cmpopts.EquateEmpty()) != "" || e.Record.Offset != 100 || e.Epoch != 1 {
		t.Errorf("first entry: %+v", e)
	}
	if entries[1].Evidence {
		t.Error("the second entry has evidence of the first")
	}
}

// H10d: a command asks one request of each key's partition, sees them answered, and takes back what nobody executed.
func TestCommandsAskAndWithdraw(t *testing.T) {
	s := store(t, migrated(t))
	tn := own(t, s, committest.Part(0), "a", 1)
	errs, err := s.Quarantine(t.Context(), []commit.Quarantined{observation(tn, "a", 1), observation(tn, "a", 2), observation(tn, "b", 3)})
	if err != nil || errs[0] != nil {
		t.Fatal(errs, err)
	}
	if ids, err := s.AskKeys(t.Context(), "g", "raw", commit.RequestDiscard, "nobody", 10); err != nil || len(ids) != 0 {
		t.Errorf("asked of a key that is not there: %v, %v", ids, err)
	}
	ids, err := s.AskKeys(t.Context(), "g", "raw", commit.RequestRelease, "", 10)
	if err != nil || len(ids) != 2 {
		t.Fatalf("asked of all keys: %v, %v", ids, err)
	}
	if err := s.Answer(t.Context(), tn, commit.Answer{Request: ids[0], Outcome: "2 released"}); err != nil {
		t.Fatal(err)
	}
	withdrawn, err := s.Withdraw(t.Context(), "g", "raw", ids)
	if err != nil || len(withdrawn) != 1 || withdrawn[0].ID != ids[1] {
		t.Errorf("withdrawn: %+v, %v", withdrawn, err)
	}
	want := []pgstore.RequestState{
		{ID: ids[0], Partition: committest.Part(0), Key: "a", State: "done", Outcome: "2 released", Epoch: 1},
		{ID: ids[1], Partition: committest.Part(0), Key: "b", State: "withdrawn", Outcome: "nobody executed it in time"},
	}
	states, err := s.RequestStates(t.Context(), "g", "raw", ids)
	if diff := cmp.Diff(want, states); err != nil || diff != "" {
		t.Errorf("states: %v (-want +got):\n%s", err, diff)
	}
	if waiting, err := s.Requests(t.Context(), "g", []stream.Partition{committest.Part(0)}, 10); err != nil || len(waiting) != 0 {
		t.Errorf("still waiting: %+v, %v", waiting, err)
	}
}

// F25: what only a live owner knows is read from its last heartbeat, and the age of what is pending goes on growing.
func TestStatusTellsWhatTheOwnerKnows(t *testing.T) {
	s := store(t, migrated(t))
	tn := own(t, s, committest.Part(0), "a", 1)
	errs, err := s.SaveFrontier(t.Context(), []commit.FrontierWrite{{
		Tenure: tn, Frontier: stream.Frontier{Next: committest.Rev(100)},
		Live: commit.Live{OldestPending: 1500 * time.Millisecond, Waiting: 3, Blocked: 2},
	}})
	if err != nil || errs[0] != nil {
		t.Fatal(errs, err)
	}
	got, err := s.Status(t.Context(), "g", "raw")
	if err != nil || len(got) != 1 {
		t.Fatal(got, err)
	}
	if l := got[0].Live; l.OldestPending < 1500*time.Millisecond || l.OldestPending > time.Minute || l.Waiting != 3 || l.Blocked != 2 {
		t.Errorf("live: %+v", l)
	}
}
