package pgstore_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"milepost/internal/commit"
	"milepost/internal/commit/committest"
	"milepost/internal/pgstore"
	"milepost/internal/stream"
)

// childDSN names the environment variable that makes this test program a client to be killed.
const childDSN = "MILEPOST_PGSTORE_CHILD"

// child prepares one commit and says so on standard output when it has begun.
func child(dsn string) int {
	cfg := pgstore.DefaultConfig()
	cfg.DSN = dsn
	ctx := context.Background()
	s, err := pgstore.Connect(ctx, cfg, nil)
	if err != nil {
		fmt.Println(err)
		return 1
	}
	defer s.Close()
	fmt.Println("begun")
	v, err := s.Prepare(ctx, []commit.Commit{lostCommit(tenureOf(committest.Part(0), 1, 1))})
	fmt.Println(v, err)
	return 0
}

func lostCommit(t *commit.Tenure) commit.Commit { return committest.CommitOf(t, "k", 100, 101) }

// H11, P35: a client is killed while its statement waits. Read-back finds nothing, and the statement lands all the same, later.
// The same statement again gets a verdict that holds whichever of the two comes first.
func TestStatementOfAKilledClientLandsLater(t *testing.T) {
	dsn := migrated(t)
	s := store(t, dsn)
	tn := own(t, s, committest.Part(0), "a", 1)
	first := committest.CommitOf(tn, "k", -1, 100)
	mustPrepare(t, s, first)
	promoted(t, s, first)

	gate, watch := connect(t, dsn), connect(t, dsn)
	execute(t, gate, "BEGIN")
	execute(t, gate, "SELECT FROM checkpoint FOR UPDATE")
	client := exec.Command(os.Args[0])
	client.Env = append(os.Environ(), childDSN+"="+dsn)
	out, err := client.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := client.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); !strings.HasPrefix(line, "begun") {
		t.Fatalf("the client said %q, %v", line, err)
	}
	eventually(t, "the client's statement waits", func() bool { return waiters(t, watch, "%fence%") == 1 })
	if err := client.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = client.Wait()
	if got := preparedRevision(t, s, tn); !got.IsZero() {
		t.Fatalf("read-back finds revision %s prepared already", got)
	}

	again := make(chan commit.PrepareVerdict, 1)
	go func() {
		v, err := s.Prepare(context.Background(), []commit.Commit{lostCommit(tn)})
		if err != nil {
			t.Error(err)
		}
		again <- v[0]
	}()
	eventually(t, "both statements wait", func() bool { return waiters(t, watch, "%fence%") == 2 })
	execute(t, gate, "COMMIT")
	if v := <-again; v.Err != nil || v.Current {
		t.Errorf("the same statement again: %+v, want prepared", v)
	}
	if got := preparedRevision(t, s, tn); got != committest.Rev(101) {
		t.Errorf("prepared in the end: %s, want 1.101", got)
	}
	if v, err := s.Prepare(t.Context(), []commit.Commit{committest.CommitOf(tn, "k", 100, 102)}); err != nil || commit.ClassOf(v[0].Err) != commit.Busy {
		t.Errorf("another commit over the same base: %+v, %v, want busy", v, err)
	}
}

func preparedRevision(t *testing.T, s *pgstore.Store, tn *commit.Tenure) stream.Revision {
	t.Helper()
	rows, err := s.Restore(t.Context(), tn, []stream.Key{"k"})
	if err != nil {
		t.Fatal(err)
	}
	if rows[0].Prepared == nil {
		return stream.Revision{}
	}
	return rows[0].Prepared.Revision
}

// S9, P35: a caller that gives up while its statement is under way still gets the statement's own answer when that comes
// within the grace, and an error of class canceled when it does not.
func TestCancelledCallerWaitsForTheAnswer(t *testing.T) {
	for _, c := range []struct {
		name  string
		grace time.Duration
		want  string
	}{{"within the grace", 10 * time.Second, "prepared"}, {"past the grace", 20 * time.Millisecond, "canceled"}} {
		t.Run(c.name, func(t *testing.T) {
			dsn := migrated(t)
			s := store(t, dsn, func(cfg *pgstore.Config) { cfg.Grace = c.grace })
			tn := own(t, s, committest.Part(0), "a", 1)
			gate, watch := connect(t, dsn), connect(t, dsn)
			execute(t, gate, "BEGIN")
			execute(t, gate, lockOwner+"UPDATE", 0)
			ctx, cancel := context.WithCancel(t.Context())
			got := make(chan string, 1)
			go func() {
				v, err := s.Prepare(ctx, []commit.Commit{committest.CommitOf(tn, "k", -1, 100)})
				switch {
				case err != nil:
					got <- commit.ClassOf(err).String()
				case v[0].Err != nil:
					got <- v[0].Err.Error()
				default:
					got <- "prepared"
				}
			}()
			eventually(t, "the statement waits", func() bool { return waiters(t, watch, "%fence%") == 1 })
			cancel()
			if c.want == "prepared" {
				execute(t, gate, "COMMIT")
			}
			if got := <-got; got != c.want {
				t.Errorf("the caller got %q, want %q", got, c.want)
			}
		})
	}
}

// A12: sessions that the server ends between and during calls cost a transient error at most, and the same batch sent again is decided.
func TestSessionsEndedByTheServer(t *testing.T) {
	dsn := migrated(t)
	s := store(t, dsn)
	tn := own(t, s, committest.Part(0), "a", 1)
	admin := connect(t, dsn)
	for i := range int64(5) {
		execute(t, admin, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()")
		c := committest.CommitOf(tn, "k", 99+i, 100+i)
		if i == 0 {
			c = committest.CommitOf(tn, "k", -1, 100)
		}
		tries := 0
		for {
			v, err := s.Prepare(t.Context(), []commit.Commit{c})
			if err == nil {
				if v[0].Err != nil {
					t.Fatalf("commit %d: %v", i, v[0].Err)
				}
				break
			}
			if tries++; commit.ClassOf(err) != commit.Transient || tries > 20 {
				t.Fatalf("try %d of commit %d: %v", tries, i, err)
			}
		}
	}
}
