package committest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"milepost/internal/commit"
	"milepost/internal/stream"
)

// Stores is what Run puts to the test: one implementation of both contracts over the same rows.
type Stores interface {
	commit.Store
	commit.Owners
}

// Run puts every implementation through the same conformance suite; newStore gives an empty one.
func Run(t *testing.T, newStore func(t *testing.T) Stores) {
	for _, c := range []struct {
		name string
		test func(t *testing.T, s Stores)
	}{
		{"A12/first commit of a key", testFirstCommit},
		{"A12/next prepare folds the prepared columns in", testFold},
		{"A12/same commit again is already prepared", testAlready},
		{"A12/same commit after its promotion is current", testCurrent},
		{"A12/I5/another base is a conflict", testConflict},
		{"A12/another prepared commit is busy", testBusy},
		{"I13/every write of an older epoch is refused", testFenced},
		{"H16/the nonce fences too", testNonce},
		{"A18/a batch over partitions gets a verdict each", testBatch},
		{"A12/promotion is idempotent", testPromote},
		{"A13/persist swaps on the last persisted revision", testPersist},
		{"A13/I13/persist is fenced and meets a prepared commit as busy", testPersistRefused},
		{"A14/I4/frontier and floor never go back", testFrontier},
		{"A2/prepared rows are listed in pages with their bytes", testPrepared},
		{"H10/quarantine is idempotent and comes with the restore", testQuarantine},
		{"F21/I13/what is taken out of its row is as if it had never been prepared", testUnprepare},
		{"P5/one of many acquirers wins an epoch", testAcquireRace},
		{"H16/unreleased former owners stay listed until recovered", testFormers},
		{"H9/a row is not moved by a claim of another publish mode", testPublishMode},
		{"H7/the first frontier is written in the acquisition", testFirstFrontier},
		{"P12/bytes of any kind survive", testBytes},
	} {
		t.Run(c.name, func(t *testing.T) { c.test(t, newStore(t)) })
	}
}

// Part is the partition with the number, of the suite's raw topic.
func Part(n int32) stream.Partition { return stream.Partition{Topic: "raw", Number: n} }

// Rev is offset's revision in topic generation 1.
func Rev(offset int64) stream.Revision { return stream.Revision{Generation: 1, Offset: offset} }

// Own acquires a partition as a new tenure, whoever had it, and fails the test where it cannot.
func Own(t *testing.T, s commit.Owners, p stream.Partition, instance string, nonce byte) *commit.Tenure {
	t.Helper()
	rows, err := s.Epochs(t.Context(), "g", []stream.Partition{p})
	if err != nil {
		t.Fatalf("epochs of %s: %v", p, err)
	}
	won, err := s.Acquire(t.Context(), []commit.Claim{claim(rows[0], instance, nonce)})
	if err != nil || !won[0] {
		t.Fatalf("acquire %s over epoch %d: won %v, %v", p, rows[0].Epoch, won, err)
	}
	return tenure(p, rows[0].Epoch+1, nonce)
}

func claim(row commit.OwnerRow, instance string, nonce byte) commit.Claim {
	return commit.Claim{
		Group: "g", Partition: row.Partition, Expected: row.Epoch, Nonce: stream.Nonce{nonce}, Generation: 7,
		MemberID: "member-" + instance, Instance: instance, Lanes: 3, TopicID: [16]byte{1}, TopicGeneration: 1,
		LedgerTopicID: [16]byte{2}, Partitions: 4, First: stream.Frontier{Next: Rev(100), LeaderEpoch: 5}, FirstFloor: 10,
	}
}

func tenure(p stream.Partition, epoch stream.Epoch, nonce byte) *commit.Tenure {
	return commit.NewTenure(commit.Ownership{
		Group: "g", Partition: p, TopicGeneration: 1, Epoch: epoch, Nonce: stream.Nonce{nonce}, MemberID: "member",
	})
}

// CommitOf is a commit of the key's observation at offset over base (an offset, or -1 for none).
func CommitOf(t *commit.Tenure, key stream.Key, base, offset int64) commit.Commit {
	b := stream.Revision{}
	if base >= 0 {
		b = Rev(base)
	}
	return commit.NewCommit(t, key, b, commit.Plan{
		Next: commit.Checkpoint{Revision: Rev(offset), Segment: offset / 10, State: fmt.Appendf(nil, "state of %q at %d", key, offset)},
		Outputs: []commit.Output{{
			Topic: "out", Key: []byte(key), Value: fmt.Appendf(nil, "output %d", offset),
			Headers: []stream.Header{{Key: "ce_id", Value: fmt.Appendf(nil, "raw/1/0/%d/0", offset)}, {Key: "empty"}},
		}},
	})
}

func mustPrepare(t *testing.T, s commit.Store, cs ...commit.Commit) {
	t.Helper()
	for i, v := range prepare(t, s, cs...) {
		if v.Err != nil || v.Current {
			t.Fatalf("prepare of %q at %s: %+v, want prepared", cs[i].Key, cs[i].Revision, v)
		}
	}
}

func prepare(t *testing.T, s commit.Store, cs ...commit.Commit) []commit.PrepareVerdict {
	t.Helper()
	verdicts, err := s.Prepare(t.Context(), cs)
	if err != nil {
		t.Fatalf("prepare: %v", err)
	}
	if len(verdicts) != len(cs) {
		t.Fatalf("prepare of %d commits gave %d verdicts", len(cs), len(verdicts))
	}
	return verdicts
}

func promote(t *testing.T, s commit.Store, cs ...commit.Commit) []error {
	t.Helper()
	var batch []commit.Promotion
	for _, c := range cs {
		batch = append(batch, commit.Promotion{Tenure: c.Tenure, Key: c.Key, Revision: c.Revision, ID: c.ID})
	}
	errs, err := s.Promote(t.Context(), batch)
	if err != nil {
		t.Fatalf("promote: %v", err)
	}
	return errs
}

func restore(t *testing.T, s commit.Store, tn *commit.Tenure, key stream.Key) commit.Restored {
	t.Helper()
	rows, err := s.Restore(t.Context(), tn, []stream.Key{"never seen", key})
	if err != nil {
		t.Fatalf("restore: %v", err)
	}
	if !rows[0].Checkpoint.Revision.IsZero() || rows[0].Prepared != nil {
		t.Fatalf("a key never seen restores as %+v", rows[0])
	}
	if rows[1].Key != key {
		t.Fatalf("restore answers %q in the place of %q", rows[1].Key, key)
	}
	return rows[1]
}

func wantClass(t *testing.T, err error, want commit.Class) {
	t.Helper()
	if err == nil || commit.ClassOf(err) != want {
		t.Fatalf("got %v, want an error of class %s", err, want)
	}
}

func testFirstCommit(t *testing.T, s Stores) {
	tn := Own(t, s, Part(0), "a", 1)
	c := CommitOf(tn, "k", -1, 100)
	mustPrepare(t, s, c)
	r := restore(t, s, tn, "k")
	if !r.Checkpoint.Revision.IsZero() || r.Prepared == nil {
		t.Fatalf("after the first prepare: %+v, want no current revision and a prepared commit", r)
	}
	if diff := cmp.Diff(c.Outputs, r.Prepared.Outputs); diff != "" {
		t.Errorf("prepared outputs (-want +got):\n%s", diff)
	}
	if err := promote(t, s, c)[0]; err != nil {
		t.Fatalf("promote: %v", err)
	}
	r = restore(t, s, tn, "k")
	if diff := cmp.Diff(c.Next, r.Checkpoint); diff != "" || r.Prepared != nil {
		t.Errorf("after the promotion (-want +got):\n%s prepared: %v", diff, r.Prepared)
	}
}

func testFold(t *testing.T, s Stores) {
	tn := Own(t, s, Part(0), "a", 1)
	first, second := CommitOf(tn, "k", -1, 100), CommitOf(tn, "k", 100, 103)
	mustPrepare(t, s, first)
	mustPrepare(t, s, second)
	r := restore(t, s, tn, "k")
	if diff := cmp.Diff(first.Next, r.Checkpoint); diff != "" {
		t.Errorf("current after the fold (-want +got):\n%s", diff)
	}
	if r.Prepared == nil || r.Prepared.ID != second.ID || r.Prepared.Base != Rev(100) {
		t.Errorf("prepared after the fold: %+v, want the second commit", r.Prepared)
	}
}

func testAlready(t *testing.T, s Stores) {
	tn := Own(t, s, Part(0), "a", 1)
	c := CommitOf(tn, "k", -1, 100)
	mustPrepare(t, s, c)
	mustPrepare(t, s, c)
	mustPrepare(t, s, CommitOf(tn, "k", 100, 101))
	mustPrepare(t, s, CommitOf(tn, "k", 100, 101))
}

func testCurrent(t *testing.T, s Stores) {
	tn := Own(t, s, Part(0), "a", 1)
	c := CommitOf(tn, "k", -1, 100)
	mustPrepare(t, s, c)
	promote(t, s, c)
	if v := prepare(t, s, c)[0]; v.Err != nil || !v.Current {
		t.Errorf("the same commit after its promotion: %+v, want current", v)
	}
}

func testConflict(t *testing.T, s Stores) {
	tn := Own(t, s, Part(0), "a", 1)
	err := prepare(t, s, CommitOf(tn, "k", 90, 100))[0].Err
	wantClass(t, err, commit.Conflict)
	var conflict *commit.ConflictError
	if !errors.As(err, &conflict) || !conflict.Actual.IsZero() {
		t.Errorf("conflict over a missing row: %v, want actual none", err)
	}
	c := CommitOf(tn, "k", -1, 100)
	mustPrepare(t, s, c)
	promote(t, s, c)
	err = prepare(t, s, CommitOf(tn, "k", 90, 101))[0].Err
	if !errors.As(err, &conflict) || conflict.Actual != Rev(100) {
		t.Errorf("conflict: %v, want actual 1.100", err)
	}
	wantClass(t, prepare(t, s, CommitOf(tn, "k", -1, 101))[0].Err, commit.Conflict)
	if got := restore(t, s, tn, "k"); got.Prepared != nil || got.Checkpoint.Revision != Rev(100) {
		t.Errorf("a refused commit changed the row: %+v", got)
	}
}

func testBusy(t *testing.T, s Stores) {
	tn := Own(t, s, Part(0), "a", 1)
	mustPrepare(t, s, CommitOf(tn, "k", -1, 100))
	err := prepare(t, s, CommitOf(tn, "k", -1, 101))[0].Err
	var busy *commit.BusyError
	if !errors.As(err, &busy) || busy.Prepared != Rev(100) {
		t.Errorf("over another prepared commit: %v, want busy with 1.100", err)
	}
}

func testFenced(t *testing.T, s Stores) {
	a := Own(t, s, Part(0), "a", 1)
	c := CommitOf(a, "k", -1, 100)
	mustPrepare(t, s, c)
	b := Own(t, s, Part(0), "b", 2)

	for _, v := range prepare(t, s, CommitOf(a, "k", 100, 101), CommitOf(a, "new", -1, 102)) {
		wantClass(t, v.Err, commit.Fenced)
		if want := fmt.Sprintf("owner's epoch is %d", b.Epoch); !strings.Contains(v.Err.Error(), want) {
			t.Errorf("the refusal %q does not say that the %s", v.Err, want)
		}
	}
	wantClass(t, promote(t, s, c)[0], commit.Fenced)
	errs, err := s.SaveFrontier(t.Context(), []commit.FrontierWrite{{Tenure: a, Frontier: stream.Frontier{Next: Rev(200)}, LedgerFloor: 99}})
	if err != nil {
		t.Fatal(err)
	}
	wantClass(t, errs[0], commit.Fenced)
	errs, err = s.Quarantine(t.Context(), []commit.Quarantined{{Tenure: a, Key: "k", Revision: Rev(100), Class: "permanent"}})
	if err != nil {
		t.Fatal(err)
	}
	wantClass(t, errs[0], commit.Fenced)
	wantClass(t, s.Recovered(t.Context(), a, nil), commit.Fenced)
	wantClass(t, s.Release(t.Context(), a), commit.Fenced)
	holds, err := s.Holds(t.Context(), []*commit.Tenure{a, b})
	if diff := cmp.Diff([]bool{false, true}, holds); err != nil || diff != "" {
		t.Errorf("holds: %v (-want +got):\n%s", err, diff)
	}

	r := restore(t, s, b, "k")
	if r.Prepared == nil || r.Prepared.ID != c.ID || r.Quarantined {
		t.Errorf("the zombie's writes left traces: %+v", r)
	}
	if r := restore(t, s, b, "new"); !r.Checkpoint.Revision.IsZero() || r.Prepared != nil {
		t.Errorf("the zombie's insert landed: %+v", r)
	}
	starts, err := s.Start(t.Context(), []*commit.Tenure{b})
	if err != nil || starts[0].Frontier.Next != Rev(100) || starts[0].LedgerFloor != 10 || starts[0].Prepared != 1 {
		t.Errorf("start of the new owner: %+v, %v", starts, err)
	}
}

func testNonce(t *testing.T, s Stores) {
	Own(t, s, Part(0), "a", 1)
	twin := tenure(Part(0), 1, 9) // the same epoch number from a database restored to an earlier time
	wantClass(t, prepare(t, s, CommitOf(twin, "k", -1, 100))[0].Err, commit.Fenced)
	errs, err := s.SaveFrontier(t.Context(), []commit.FrontierWrite{{Tenure: twin, Frontier: stream.Frontier{Next: Rev(101)}}})
	if err != nil {
		t.Fatal(err)
	}
	wantClass(t, errs[0], commit.Fenced)
}

func testBatch(t *testing.T, s Stores) {
	a, other := Own(t, s, Part(0), "a", 1), Own(t, s, Part(1), "a", 1)
	gone := Own(t, s, Part(2), "a", 1)
	Own(t, s, Part(2), "b", 2)
	c := CommitOf(a, "promoted", -1, 90)
	mustPrepare(t, s, c)
	promote(t, s, c)
	mustPrepare(t, s, CommitOf(a, "folded", -1, 91), CommitOf(a, "busy", -1, 92))

	got := prepare(
		t, s, CommitOf(other, "k", -1, 100), CommitOf(gone, "k", -1, 100), CommitOf(a, "k", -1, 100), c, CommitOf(a, "folded", 91, 101),
		CommitOf(a, "busy", -1, 102), CommitOf(a, "conflict", 50, 103), CommitOf(other, "folded", -1, 91),
	)
	var classes []string
	for _, v := range got {
		switch {
		case v.Current:
			classes = append(classes, "current")
		case v.Err == nil:
			classes = append(classes, "prepared")
		default:
			classes = append(classes, commit.ClassOf(v.Err).String())
		}
	}
	want := []string{"prepared", "fenced", "prepared", "current", "prepared", "busy", "conflict", "prepared"}
	if diff := cmp.Diff(want, classes); diff != "" {
		t.Errorf("verdicts (-want +got):\n%s", diff)
	}
}

func testPromote(t *testing.T, s Stores) {
	tn := Own(t, s, Part(0), "a", 1)
	first, second := CommitOf(tn, "k", -1, 100), CommitOf(tn, "k", 100, 101)
	mustPrepare(t, s, first)
	mustPrepare(t, s, second)
	if err := promote(t, s, first)[0]; err != nil {
		t.Errorf("promotion of a commit that was folded in: %v", err)
	}
	if r := restore(t, s, tn, "k"); r.Prepared == nil || r.Prepared.ID != second.ID {
		t.Errorf("the late promotion took the wrong commit along: %+v", r)
	}
	for range 2 {
		if err := promote(t, s, second)[0]; err != nil {
			t.Errorf("promote: %v", err)
		}
	}
	wantClass(t, promote(t, s, CommitOf(tn, "k", 101, 102))[0], commit.Conflict)
	wantClass(t, promote(t, s, CommitOf(tn, "nobody", -1, 102))[0], commit.Conflict)
}

func persist(t *testing.T, s commit.Store, cs ...commit.Commit) []error {
	t.Helper()
	var batch []commit.Persist
	for _, c := range cs {
		batch = append(batch, commit.Persist{Tenure: c.Tenure, Key: c.Key, Base: c.Base, Next: c.Next, ID: c.ID})
	}
	errs, err := s.Persist(t.Context(), batch)
	if err != nil || len(errs) != len(cs) {
		t.Fatalf("persist: %v, %d verdicts for %d", err, len(errs), len(cs))
	}
	return errs
}

func testPersist(t *testing.T, s Stores) {
	tn := Own(t, s, Part(0), "a", 1)
	first := CommitOf(tn, "k", -1, 100)
	for range 2 { // a lost answer brings the same again
		if errs := persist(t, s, first, CommitOf(tn, "other", -1, 101)); errs[0] != nil || errs[1] != nil {
			t.Fatalf("first persists: %v", errs)
		}
	}
	if errs := persist(t, s, CommitOf(tn, "k", 100, 130)); errs[0] != nil {
		t.Fatalf("over the last persisted one: %v", errs)
	}
	want := CommitOf(tn, "k", 100, 130).Next
	if r := restore(t, s, tn, "k"); r.Prepared != nil || cmp.Diff(want, r.Checkpoint) != "" {
		t.Errorf("restored (-want +got):\n%s", cmp.Diff(want, r.Checkpoint))
	}
	for _, c := range []struct {
		of     commit.Commit
		actual stream.Revision
	}{
		{CommitOf(tn, "k", 100, 140), Rev(130)},
		{CommitOf(tn, "k", -1, 140), Rev(130)},
		{CommitOf(tn, "k", 150, 160), Rev(130)},
		{CommitOf(tn, "never seen", 100, 140), stream.Revision{}},
	} {
		var conflict *commit.ConflictError
		if errs := persist(t, s, c.of); !errors.As(errs[0], &conflict) || conflict.Actual != c.actual {
			t.Errorf("persist of %q over %s: %v, want a conflict with %s", c.of.Key, c.of.Base, errs[0], c.actual)
		}
	}
	// The other mode goes on from it (H9).
	mustPrepare(t, s, CommitOf(tn, "k", 130, 150))
}

func testPersistRefused(t *testing.T, s Stores) {
	a := Own(t, s, Part(0), "a", 1)
	mustPrepare(t, s, CommitOf(a, "busy", -1, 100))
	var busy *commit.BusyError
	if errs := persist(t, s, CommitOf(a, "busy", -1, 101)); !errors.As(errs[0], &busy) || busy.Prepared != Rev(100) {
		t.Errorf("persist where a commit is prepared: %v, want busy at %s", errs[0], Rev(100))
	}
	b := Own(t, s, Part(0), "b", 2)
	wantClass(t, persist(t, s, CommitOf(a, "k", -1, 102))[0], commit.Fenced)
	if r := restore(t, s, b, "k"); !r.Checkpoint.Revision.IsZero() {
		t.Errorf("a former owner's persist landed: %+v", r)
	}
}

func testFrontier(t *testing.T, s Stores) {
	tn := Own(t, s, Part(0), "a", 1)
	save := func(offset, floor int64) {
		t.Helper()
		errs, err := s.SaveFrontier(t.Context(), []commit.FrontierWrite{{
			Tenure: tn, Frontier: stream.Frontier{Next: Rev(offset), LeaderEpoch: 6}, LedgerFloor: floor,
		}})
		if err != nil || errs[0] != nil {
			t.Fatalf("save frontier %d: %v %v", offset, errs, err)
		}
	}
	save(150, 20)
	save(140, 15)
	save(140, 30)
	got, err := s.Start(t.Context(), []*commit.Tenure{tn})
	want := []commit.Start{{Frontier: stream.Frontier{Next: Rev(150), LeaderEpoch: 6}, LedgerFloor: 30}}
	if err != nil || !cmp.Equal(want, got, ignoreFormers()) {
		t.Errorf("start: %+v, %v, want %+v", got, err, want)
	}
}

func ignoreFormers() cmp.Option {
	return cmp.FilterPath(func(p cmp.Path) bool { return p.Last().String() == ".Formers" }, cmp.Ignore())
}

func testPrepared(t *testing.T, s Stores) {
	tn, other := Own(t, s, Part(0), "a", 1), Own(t, s, Part(1), "a", 1)
	want := map[stream.Key]commit.ID{}
	for i := range int64(7) {
		c := CommitOf(tn, stream.Key(fmt.Sprintf("k%d", 9-i)), -1, 100+i)
		mustPrepare(t, s, c)
		want[c.Key] = c.ID
	}
	done := CommitOf(tn, "k5a", -1, 120)
	mustPrepare(t, s, done, CommitOf(other, "k5b", -1, 121))
	promote(t, s, done)

	b := Own(t, s, Part(0), "b", 2)
	got, after := map[stream.Key]commit.ID{}, stream.Key("")
	for {
		page, err := s.Prepared(t.Context(), b, after, 3)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range page {
			if c.Key <= after || c.Tenure != b {
				t.Errorf("page after %q holds %q of tenure %v", after, c.Key, c.Tenure)
			}
			after, got[c.Key] = c.Key, c.ID
			again := commit.NewCommit(b, c.Key, c.Base, commit.Plan{Next: c.Next, Outputs: c.Outputs})
			if again.ID != c.ID {
				t.Errorf("%q came back with other bytes: id %s, of its content %s", c.Key, c.ID, again.ID)
			}
		}
		if len(page) < 3 {
			break
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("prepared commits (-want +got):\n%s", diff)
	}
}

func testQuarantine(t *testing.T, s Stores) {
	tn := Own(t, s, Part(0), "a", 1)
	c := CommitOf(tn, "k", -1, 100)
	mustPrepare(t, s, c)
	q := commit.Quarantined{
		Tenure: tn, Key: "k", Revision: Rev(100), Class: "permanent", Reason: "too large",
		Record: stream.Record{Partition: Part(0), Offset: 100, Key: []byte("k"), Value: []byte("v")},
	}
	for range 2 {
		errs, err := s.Quarantine(t.Context(), []commit.Quarantined{q})
		if err != nil || errs[0] != nil {
			t.Fatalf("quarantine: %v %v", errs, err)
		}
	}
	if r := restore(t, s, tn, "k"); !r.Quarantined || r.Prepared != nil {
		t.Errorf("restore of a quarantined key: %+v, want it marked and its poison commit moved away", r)
	}
	page, err := s.Prepared(t.Context(), tn, "", 10)
	if err != nil || len(page) != 0 {
		t.Errorf("the poison prepared row is listed for publication: %v %v", page, err)
	}
}

// RunFull proves that a full quarantine leaves no poison prepared commit behind; newStore gives an empty store
// with room for one observation a partition.
func RunFull(t *testing.T, newStore func(t *testing.T) Stores) {
	t.Run("H10/a full quarantine clears the poison commit", func(t *testing.T) { testQuarantineFull(t, newStore(t)) })
}

func testQuarantineFull(t *testing.T, s Stores) {
	tn := Own(t, s, Part(0), "a", 1)
	c := CommitOf(tn, "k", -1, 100)
	mustPrepare(t, s, c)
	promote(t, s, c)
	mustPrepare(t, s, CommitOf(tn, "k", 100, 101), CommitOf(tn, "other", -1, 102))
	of := func(key stream.Key, offset int64) commit.Quarantined {
		return commit.Quarantined{
			Tenure: tn, Key: key, Revision: Rev(offset), Class: "permanent", Reason: "too large",
			Record: stream.Record{Partition: Part(0), Offset: offset, Key: []byte(key), Value: []byte("v")},
		}
	}
	errs, err := s.Quarantine(t.Context(), []commit.Quarantined{of("first", 90)})
	if err != nil || errs[0] != nil {
		t.Fatalf("the first observation: %v %v", errs, err)
	}
	for range 2 { // a lost answer brings the same again
		errs, err = s.Quarantine(t.Context(), []commit.Quarantined{of("k", 101)})
		if err != nil || !errors.Is(errs[0], commit.ErrQuarantineFull) {
			t.Fatalf("without room: %v %v, want ErrQuarantineFull", errs, err)
		}
		if r := restore(t, s, tn, "k"); r.Quarantined || r.Prepared != nil || r.Checkpoint.Revision != Rev(100) {
			t.Fatalf("after a refusal: %+v, want the checkpoint alone", r)
		}
	}
	page, err := s.Prepared(t.Context(), tn, "", 10)
	if err != nil || len(page) != 1 || page[0].Key != "other" {
		t.Errorf("prepared commits: %v %v, want the other key's alone", page, err)
	}
	// An observation that was published keeps what stands prepared for it.
	q := of("other", 102)
	q.Published = true
	if errs, err = s.Quarantine(t.Context(), []commit.Quarantined{q}); err != nil || !errors.Is(errs[0], commit.ErrQuarantineFull) {
		t.Fatalf("published, without room: %v %v", errs, err)
	}
	if r := restore(t, s, tn, "other"); r.Prepared == nil {
		t.Error("the prepared commit of a published observation is gone")
	}
}

func testAcquireRace(t *testing.T, s Stores) {
	rows, err := s.Epochs(t.Context(), "g", []stream.Partition{Part(0)})
	if err != nil {
		t.Fatal(err)
	}
	const racers = 8
	won := make([]bool, racers)
	var wg sync.WaitGroup
	for i := range racers {
		wg.Go(func() {
			w, err := s.Acquire(context.Background(), []commit.Claim{claim(rows[0], fmt.Sprint("p", i), byte(i+1))})
			if err != nil {
				t.Errorf("racer %d: %v", i, err)
				return
			}
			won[i] = w[0]
		})
	}
	wg.Wait()
	winners := 0
	for _, w := range won {
		if w {
			winners++
		}
	}
	if winners != 1 {
		t.Errorf("%d of %d racers won epoch 1, want one", winners, racers)
	}
}

func testFormers(t *testing.T, s Stores) {
	a := Own(t, s, Part(0), "a", 1)
	b := Own(t, s, Part(0), "b", 2) // a did not release
	c := Own(t, s, Part(0), "c", 3) // b died before its recovery ended
	starts, err := s.Start(t.Context(), []*commit.Tenure{c})
	want := []commit.Former{{Instance: "a", Lanes: 3, Epoch: a.Epoch}, {Instance: "b", Lanes: 3, Epoch: b.Epoch}}
	if diff := cmp.Diff(want, starts[0].Formers); err != nil || diff != "" {
		t.Fatalf("unreleased formers: %v (-want +got):\n%s", err, diff)
	}
	if err := s.Recovered(t.Context(), c, starts[0].Formers); err != nil {
		t.Fatal(err)
	}
	if err := s.Release(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	d := Own(t, s, Part(0), "d", 4)
	starts, err = s.Start(t.Context(), []*commit.Tenure{d})
	if err != nil || len(starts[0].Formers) != 0 {
		t.Errorf("after a recovery and a release: %v, %v, want no former", starts[0].Formers, err)
	}
}

func testFirstFrontier(t *testing.T, s Stores) {
	rows, err := s.Epochs(t.Context(), "g", []stream.Partition{Part(0)})
	if err != nil || rows[0].HasFrontier || rows[0].Epoch != 0 || rows[0].TopicGeneration != 1 {
		t.Fatalf("a partition never owned: %+v, %v", rows, err)
	}
	Own(t, s, Part(0), "a", 1)
	rows, err = s.Epochs(t.Context(), "g", []stream.Partition{Part(0)})
	if err != nil || !rows[0].HasFrontier || rows[0].Epoch != 1 || rows[0].Partitions != 4 || rows[0].TopicID != [16]byte{1} {
		t.Fatalf("after the first acquisition: %+v, %v", rows, err)
	}
	second := claim(rows[0], "b", 2)
	second.First = stream.Frontier{Next: Rev(500), LeaderEpoch: 9}
	if won, err := s.Acquire(t.Context(), []commit.Claim{second}); err != nil || !won[0] {
		t.Fatalf("acquire: %v %v", won, err)
	}
	starts, err := s.Start(t.Context(), []*commit.Tenure{tenure(Part(0), 2, 2)})
	if err != nil || starts[0].Frontier != (stream.Frontier{Next: Rev(100), LeaderEpoch: 5}) || starts[0].LedgerFloor != 10 {
		t.Errorf("start: %+v, %v, want the first owner's frontier", starts, err)
	}
}

func testPublishMode(t *testing.T, s Stores) {
	Own(t, s, Part(0), "a", 1)
	rows, err := s.Epochs(t.Context(), "g", []stream.Partition{Part(0)})
	if err != nil || rows[0].PublishMode != commit.Transactional {
		t.Fatalf("the row of a claim that names no mode: %+v, %v, want transactional", rows, err)
	}
	other := claim(rows[0], "b", 2)
	other.PublishMode = commit.Idempotent
	// Refused or lost, as the store likes: the row stays.
	if won, err := s.Acquire(t.Context(), []commit.Claim{other}); err == nil && won[0] {
		t.Error("a claim of mode idempotent moved a row of mode transactional")
	}
	after, err := s.Epochs(t.Context(), "g", []stream.Partition{Part(0)})
	if diff := cmp.Diff(rows, after); err != nil || diff != "" {
		t.Errorf("the refused claim left traces: %v (-before +after):\n%s", err, diff)
	}
}

func testBytes(t *testing.T, s Stores) {
	tn := Own(t, s, Part(0), "a", 1)
	key := stream.Key("\x00\xff'; drop table checkpoint; --\n\u00e9")
	c := commit.NewCommit(tn, key, stream.Revision{}, commit.Plan{
		Next: commit.Checkpoint{Revision: Rev(100), Segment: 1, State: []byte{0, 0xff, 0}},
		Outputs: []commit.Output{{Topic: "out", Key: []byte{0xff, 0}, Value: []byte{}, Headers: []stream.Header{
			{Key: "h", Value: []byte{0xff, 0}},
		}}},
	})
	mustPrepare(t, s, c)
	page, err := s.Prepared(t.Context(), tn, "", 10)
	if err != nil || len(page) != 1 || page[0].Key != key || page[0].ID != c.ID {
		t.Fatalf("prepared: %+v, %v", page, err)
	}
	if again := commit.NewCommit(tn, key, stream.Revision{}, commit.Plan{Next: page[0].Next, Outputs: page[0].Outputs}); again.ID != c.ID {
		t.Errorf("the bytes changed on the way: %+v", page[0])
	}
}
