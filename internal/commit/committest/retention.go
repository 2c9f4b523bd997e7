package committest

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"milepost/internal/commit"
	"milepost/internal/stream"
)

// Retainers is what RunRetention puts to the test.
type Retainers interface {
	Stores
	commit.Retention
}

// RunRetention puts every implementation of commit.Retention through the same suite; newStore gives an empty one.
func RunRetention(t *testing.T, newStore func(t *testing.T) Retainers) {
	for _, c := range []struct {
		name string
		test func(t *testing.T, s Retainers)
	}{
		{"A5/F8/expired is neither never seen nor lost", testExpired},
		{"A5/a later commit of any kind ends it", testExpiredThenCommitted},
		{"A5/what is in use or held up stays", testKept},
		{"A5/keys are looked at in pages", testQuietPages},
		{"I5/a state that moved on is left alone", testExpireSwaps},
		{"I13/an older epoch expires nothing", testExpireFenced},
	} {
		t.Run(c.name, func(t *testing.T) { c.test(t, newStore(t)) })
	}
}

// passed saves a frontier above everything that the suite commits.
func passed(t *testing.T, s commit.Store, tn *commit.Tenure, next int64) {
	t.Helper()
	errs, err := s.SaveFrontier(t.Context(), []commit.FrontierWrite{{Tenure: tn, Frontier: stream.Frontier{Next: Rev(next), LeaderEpoch: 5}, LedgerFloor: 10}})
	if err != nil || errs[0] != nil {
		t.Fatalf("save the frontier: %v, %v", errs, err)
	}
}

// committed prepares and promotes commits.
func committed(t *testing.T, s commit.Store, cs ...commit.Commit) {
	t.Helper()
	mustPrepare(t, s, cs...)
	for _, err := range promote(t, s, cs...) {
		if err != nil {
			t.Fatalf("promote: %v", err)
		}
	}
}

// quiet gives the keys whose state may go, of a whole partition.
func quiet(t *testing.T, s commit.Retention, tn *commit.Tenure, age time.Duration) []commit.Quiet {
	t.Helper()
	all, next, err := s.Quiet(t.Context(), tn, "", age, 100)
	if err != nil || next != "" {
		t.Fatalf("quiet keys: next %q, %v", next, err)
	}
	return all
}

// expire puts tails in place of the states of all quiet keys and says how many.
func expire(t *testing.T, s commit.Retention, tn *commit.Tenure) int {
	t.Helper()
	var tails []commit.Tail
	for _, q := range quiet(t, s, tn, 0) {
		tails = append(tails, commit.Tail{Key: q.Key, Revision: q.Revision, State: []byte("tail")})
	}
	n, err := s.Expire(t.Context(), tn, tails)
	if err != nil {
		t.Fatalf("expire: %v", err)
	}
	return n
}

func testExpired(t *testing.T, s Retainers) {
	tn := Own(t, s, Part(0), "a", 1)
	c := CommitOf(tn, "k\xff", -1, 100)
	committed(t, s, c)
	passed(t, s, tn, 101)
	if young := quiet(t, s, tn, time.Hour); len(young) != 0 {
		t.Errorf("a key of this moment is quiet for an hour: %+v", young)
	}
	want := []commit.Quiet{{Key: c.Key, Revision: Rev(100), State: c.Next.State}}
	if d := cmp.Diff(want, quiet(t, s, tn, 0)); d != "" {
		t.Errorf("quiet keys (-want +got):\n%s", d)
	}
	if r := restore(t, s, tn, c.Key); r.Expired {
		t.Error("it has expired before anybody let go of it")
	}
	if n := expire(t, s, tn); n != 1 {
		t.Fatalf("%d states expired, want 1", n)
	}
	// restore asks for a key that was never seen beside it, which has no revision.
	wantRow := commit.Restored{Key: c.Key, Checkpoint: commit.Checkpoint{Revision: Rev(100), Segment: 10, State: []byte("tail")}, Expired: true}
	if d := cmp.Diff(wantRow, restore(t, s, tn, c.Key)); d != "" {
		t.Errorf("the expired row (-want +got):\n%s", d)
	}
	if again := quiet(t, s, tn, 0); len(again) != 0 {
		t.Errorf("an expired key may expire again: %+v", again)
	}
}

func testExpiredThenCommitted(t *testing.T, s Retainers) {
	tn := Own(t, s, Part(0), "a", 1)
	prepared, folded, persisted := CommitOf(tn, "prepared", -1, 100), CommitOf(tn, "folded", -1, 101), CommitOf(tn, "persisted", -1, 102)
	committed(t, s, prepared, folded, persisted)
	passed(t, s, tn, 103)
	if n := expire(t, s, tn); n != 3 {
		t.Fatalf("%d states expired, want 3", n)
	}
	// While its next commit is only prepared, the current state is still the tail.
	second := CommitOf(tn, "prepared", 100, 110)
	mustPrepare(t, s, second)
	if r := restore(t, s, tn, "prepared"); !r.Expired || r.Prepared == nil || string(r.Checkpoint.State) != "tail" {
		t.Errorf("with its next commit prepared: %+v, want the tail and the commit", r)
	}
	if err := promote(t, s, second)[0]; err != nil {
		t.Fatal(err)
	}
	mustPrepare(t, s, CommitOf(tn, "folded", 101, 111))
	mustPrepare(t, s, CommitOf(tn, "folded", 111, 112))
	p := CommitOf(tn, "persisted", 102, 113)
	errs, err := s.Persist(t.Context(), []commit.Persist{{Tenure: tn, Key: p.Key, Base: p.Base, Next: p.Next, ID: p.ID}})
	if err != nil || errs[0] != nil {
		t.Fatalf("persist: %v, %v", errs, err)
	}
	for key, at := range map[stream.Key]int64{"prepared": 110, "folded": 111, "persisted": 113} {
		r := restore(t, s, tn, key)
		if want := fmt.Sprintf("state of %q at %d", key, at); r.Expired || string(r.Checkpoint.State) != want || r.Checkpoint.Revision != Rev(at) {
			t.Errorf("%s after its next commit: %+v, want %s, not expired", key, r, want)
		}
	}
}

func testKept(t *testing.T, s Retainers) {
	tn := Own(t, s, Part(0), "a", 1)
	below, above, set := CommitOf(tn, "below", -1, 100), CommitOf(tn, "above", -1, 150), CommitOf(tn, "set aside", -1, 101)
	first := CommitOf(tn, "prepared", -1, 102)
	committed(t, s, below, above, set, first)
	mustPrepare(t, s, CommitOf(tn, "prepared", 102, 103), CommitOf(tn, "only prepared", -1, 104))
	setAside(t, s, tn, "set aside", 105)
	passed(t, s, tn, 120)
	var got []stream.Key
	for _, q := range quiet(t, s, tn, 0) {
		got = append(got, q.Key)
	}
	if d := cmp.Diff([]stream.Key{"below"}, got); d != "" {
		t.Errorf("keys whose state may go (-want +got):\n%s", d)
	}
	// Who asks all the same, over a stale look, changes nothing.
	var tails []commit.Tail
	for _, c := range []commit.Commit{above, set, first} {
		tails = append(tails, commit.Tail{Key: c.Key, Revision: c.Revision, State: []byte("tail")})
	}
	if n, err := s.Expire(t.Context(), tn, tails); n != 0 || err != nil {
		t.Errorf("%d of what must stay has expired, %v", n, err)
	}
	for _, c := range []commit.Commit{above, set, first} {
		if r := restore(t, s, tn, c.Key); r.Expired || string(r.Checkpoint.State) != string(c.Next.State) {
			t.Errorf("%s is now %+v", c.Key, r)
		}
	}
}

func testQuietPages(t *testing.T, s Retainers) {
	tn, other := Own(t, s, Part(0), "a", 1), Own(t, s, Part(1), "a", 2)
	var cs []commit.Commit
	for i := range 7 {
		cs = append(cs, CommitOf(tn, stream.Key(fmt.Sprintf("k%d", i)), -1, int64(100+i)))
	}
	committed(t, s, append(cs, CommitOf(other, "k of another partition", -1, 100))...)
	mustPrepare(t, s, CommitOf(tn, "k3", 103, 110)) // looked at, but not given
	passed(t, s, tn, 120)
	var got [][]stream.Key
	for after := stream.Key(""); ; {
		page, next, err := s.Quiet(t.Context(), tn, after, 0, 3)
		if err != nil {
			t.Fatal(err)
		}
		var keys []stream.Key
		for _, q := range page {
			keys = append(keys, q.Key)
		}
		got = append(got, keys)
		if after = next; next == "" {
			break
		}
	}
	if d := cmp.Diff([][]stream.Key{{"k0", "k1", "k2"}, {"k4", "k5"}, {"k6"}}, got); d != "" {
		t.Errorf("pages (-want +got):\n%s", d)
	}
}

func testExpireSwaps(t *testing.T, s Retainers) {
	tn := Own(t, s, Part(0), "a", 1)
	committed(t, s, CommitOf(tn, "k", -1, 100))
	next := CommitOf(tn, "k", 100, 101)
	committed(t, s, next)
	passed(t, s, tn, 110)
	tails := []commit.Tail{{Key: "k", Revision: Rev(100), State: []byte("tail")}, {Key: "unknown", Revision: Rev(100), State: []byte("tail")}}
	if n, err := s.Expire(t.Context(), tn, tails); n != 0 || err != nil {
		t.Errorf("%d states expired over an older revision, %v", n, err)
	}
	if r := restore(t, s, tn, "k"); r.Expired || string(r.Checkpoint.State) != string(next.Next.State) {
		t.Errorf("the row is now %+v", r)
	}
	if n, err := s.Expire(t.Context(), tn, nil); n != 0 || err != nil {
		t.Errorf("nothing to expire: %d, %v", n, err)
	}
}

func testExpireFenced(t *testing.T, s Retainers) {
	old := Own(t, s, Part(0), "a", 1)
	c := CommitOf(old, "k", -1, 100)
	committed(t, s, c)
	passed(t, s, old, 110)
	now := Own(t, s, Part(0), "b", 2)
	n, err := s.Expire(t.Context(), old, []commit.Tail{{Key: "k", Revision: Rev(100), State: []byte("tail")}})
	wantClass(t, err, commit.Fenced)
	if r := restore(t, s, now, "k"); n != 0 || r.Expired {
		t.Errorf("a former owner expired %d states: %+v", n, r)
	}
}
