package committest

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"milepost/internal/commit"
	"milepost/internal/stream"
)

// Operators is what RunOperations puts to the test.
type Operators interface {
	Stores
	commit.Operations
	// Ask writes a request as the operator's command does, and gives its number.
	Ask(group string, r commit.Request) int64
	// Answered gives a request's answer, nil while it waits.
	Answered(id int64) *commit.Answer
}

// RunOperations puts every implementation of commit.Operations through the same suite; newStore gives an empty one.
func RunOperations(t *testing.T, newStore func(t *testing.T) Operators) {
	for _, c := range []struct {
		name string
		test func(t *testing.T, s Operators)
	}{
		{"H10d/requests wait for their partition's owner", testRequests},
		{"H10/a row leaves in the statement that makes its revision current", testReleased},
		{"H10b/a discard leaves tombstones until frontier and floor are past", testDiscarded},
		{"H16/a seek goes forward and once", testSeek},
		{"P29/lost observations are passed over with a mark", testLose},
		{"I13/an older epoch executes nothing", testOperationsFenced},
	} {
		t.Run(c.name, func(t *testing.T) { c.test(t, newStore(t)) })
	}
}

func setAside(t *testing.T, s commit.Store, tn *commit.Tenure, key stream.Key, offsets ...int64) {
	t.Helper()
	var batch []commit.Quarantined
	for _, o := range offsets {
		batch = append(batch, commit.Quarantined{
			Tenure: tn, Key: key, Revision: Rev(o), Class: "permanent", Reason: "too large",
			Record: stream.Record{Partition: tn.Partition, Offset: o, Key: []byte(key), Value: fmt.Appendf(nil, "v%d", o), Headers: []stream.Header{}},
		})
	}
	errs, err := s.Quarantine(t.Context(), batch)
	for _, e := range errs {
		if e != nil {
			err = e
		}
	}
	if err != nil {
		t.Fatalf("quarantine: %v", err)
	}
}

func asides(t *testing.T, s Operators, tn *commit.Tenure, key stream.Key, after stream.Revision, limit int) []int64 {
	t.Helper()
	rows, err := s.Asides(t.Context(), tn, key, after, limit)
	if err != nil {
		t.Fatalf("asides: %v", err)
	}
	var offsets []int64
	for _, r := range rows {
		if r.Record.Offset != r.Revision.Offset || string(r.Record.Value) != fmt.Sprintf("v%d", r.Record.Offset) {
			t.Errorf("row %s has the record of offset %d, value %q", r.Revision, r.Record.Offset, r.Record.Value)
		}
		offsets = append(offsets, r.Revision.Offset)
	}
	return offsets
}

func testRequests(t *testing.T, s Operators) {
	tn := Own(t, s, Part(0), "a", 1)
	first := s.Ask("g", commit.Request{Partition: Part(0), Kind: commit.RequestRelease, Key: "k\xff"})
	second := s.Ask("g", commit.Request{Partition: Part(0), Kind: commit.RequestSeek, Offset: 7})
	s.Ask("g", commit.Request{Partition: Part(1), Kind: commit.RequestDiscard, Key: "k"})
	s.Ask("another", commit.Request{Partition: Part(0), Kind: commit.RequestDiscard, Key: "k"})
	want := []commit.Request{
		{ID: first, Partition: Part(0), Kind: commit.RequestRelease, Key: "k\xff"},
		{ID: second, Partition: Part(0), Kind: commit.RequestSeek, Offset: 7},
	}
	got, err := s.Requests(t.Context(), "g", []stream.Partition{Part(0)}, 10)
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Fatalf("requests: %v (-want +got):\n%s", err, diff)
	}
	for _, outcome := range []string{"1 released", "again"} { // an answer that was lost is sent again
		if err := s.Answer(t.Context(), tn, commit.Answer{Request: first, Failed: true, Outcome: outcome}); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(&commit.Answer{Request: first, Failed: true, Outcome: "1 released"}, s.Answered(first)); diff != "" {
		t.Errorf("answer (-want +got):\n%s", diff)
	}
	if got, err := s.Requests(t.Context(), "g", []stream.Partition{Part(0)}, 10); err != nil || len(got) != 1 || got[0].ID != second {
		t.Errorf("requests after the answer: %+v, %v", got, err)
	}
}

func testReleased(t *testing.T, s Operators) {
	tn := Own(t, s, Part(0), "a", 1)
	setAside(t, s, tn, "k", 100, 101, 102)
	setAside(t, s, tn, "other", 103)
	if diff := cmp.Diff([]int64{100, 101}, asides(t, s, tn, "k", stream.Revision{}, 2)); diff != "" {
		t.Errorf("first page (-want +got):\n%s", diff)
	}
	c := CommitOf(tn, "k", -1, 100)
	mustPrepare(t, s, c)
	page, err := s.Prepared(t.Context(), tn, "", 10)
	if err != nil || len(page) != 1 || !page[0].Released {
		t.Errorf("prepared commits: %+v, %v: want one that says it was released", page, err)
	}
	if diff := cmp.Diff([]int64{100, 101, 102}, asides(t, s, tn, "k", stream.Revision{}, 10)); diff != "" {
		t.Errorf("while it stands prepared (-want +got):\n%s", diff)
	}
	for range 2 { // a promotion whose answer was lost is sent again
		if errs := promote(t, s, c); errs[0] != nil {
			t.Fatal(errs[0])
		}
	}
	if diff := cmp.Diff([]int64{101, 102}, asides(t, s, tn, "k", stream.Revision{}, 10)); diff != "" {
		t.Errorf("once it is current (-want +got):\n%s", diff)
	}
	if r := restore(t, s, tn, "k"); !r.Quarantined || r.Checkpoint.Revision != Rev(100) {
		t.Errorf("restored: %+v", r)
	}
	if r := restore(t, s, tn, "other"); !r.Quarantined {
		t.Error("the other key left quarantine too")
	}
}

func testDiscarded(t *testing.T, s Operators) {
	tn := Own(t, s, Part(0), "a", 1)
	setAside(t, s, tn, "k", 100, 104)
	setAside(t, s, tn, "other", 103)
	mustPrepare(t, s, CommitOf(tn, "k", -1, 100)) // a release that could not be published
	want := commit.Discarded{Rows: 2, Until: Rev(104)}
	got, err := s.Discard(t.Context(), tn, "k", 40)
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Fatalf("discard: %v (-want +got):\n%s", err, diff)
	}
	want.Rows = 0 // an answer that was lost: the same again
	if got, err := s.Discard(t.Context(), tn, "k", 40); err != nil || got != want {
		t.Errorf("discard again: %+v, %v", got, err)
	}
	r := restore(t, s, tn, "k")
	if r.Quarantined || r.Prepared != nil || r.Discarded != Rev(104) {
		t.Errorf("restored: %+v", r)
	}
	for _, step := range []struct {
		frontier, floor int64
		gone            bool
	}{{104, 39, false}, {105, 39, false}, {105, 40, true}} {
		errs, err := s.SaveFrontier(t.Context(), []commit.FrontierWrite{{
			Tenure: tn, Frontier: stream.Frontier{Next: Rev(step.frontier)}, LedgerFloor: step.floor,
		}})
		if err != nil || errs[0] != nil {
			t.Fatal(err, errs)
		}
		if err := s.Sweep(t.Context(), tn); err != nil {
			t.Fatal(err)
		}
		if r := restore(t, s, tn, "k"); r.Discarded.IsZero() != step.gone {
			t.Errorf("frontier %d, floor %d: restored %+v, want tombstones gone: %t", step.frontier, step.floor, r, step.gone)
		}
	}
	if r := restore(t, s, tn, "other"); !r.Quarantined {
		t.Error("the sweep took what nobody discarded")
	}
}

func testSeek(t *testing.T, s Operators) {
	tn := Own(t, s, Part(0), "a", 1)
	id := s.Ask("g", commit.Request{Partition: Part(0), Kind: commit.RequestSeek, Offset: 150})
	if moved, err := s.Seek(t.Context(), tn, id, Rev(100), "at the frontier"); err != nil || moved {
		t.Errorf("a seek to the frontier moved %t, %v", moved, err)
	}
	if moved, err := s.Seek(t.Context(), tn, id, Rev(150), "moved"); err != nil || !moved {
		t.Fatalf("the seek moved %t, %v", moved, err)
	}
	if a := s.Answered(id); a == nil || a.Failed || a.Outcome != "moved" {
		t.Errorf("answer: %+v", a)
	}
	if moved, err := s.Seek(t.Context(), tn, id, Rev(180), "again"); err != nil || moved {
		t.Errorf("a request that is done moved the frontier: %t, %v", moved, err)
	}
	starts, err := s.Start(t.Context(), []*commit.Tenure{tn})
	if err != nil || starts[0].Frontier != (stream.Frontier{Next: Rev(150), LeaderEpoch: -1}) {
		t.Errorf("start: %+v, %v", starts, err)
	}
}

func testLose(t *testing.T, s Operators) {
	tn := Own(t, s, Part(0), "a", 1)
	for _, step := range []struct {
		to    int64
		moved bool
	}{{100, false}, {130, true}, {120, false}} {
		if moved, err := s.Lose(t.Context(), tn, Rev(step.to), "data_loss"); err != nil || moved != step.moved {
			t.Errorf("lose up to %d: moved %t, %v", step.to, moved, err)
		}
	}
	starts, err := s.Start(t.Context(), []*commit.Tenure{tn})
	if err != nil {
		t.Fatal(err)
	}
	want := commit.Start{
		Frontier: stream.Frontier{Next: Rev(130), LeaderEpoch: -1}, LedgerFloor: 10, Anew: commit.Anew{Before: Rev(130), Reason: "data_loss"},
	}
	if diff := cmp.Diff(want, starts[0], ignoreFormers()); diff != "" {
		t.Errorf("start (-want +got):\n%s", diff)
	}
}

func testOperationsFenced(t *testing.T, s Operators) {
	zombie := Own(t, s, Part(0), "a", 1)
	setAside(t, s, zombie, "k", 100)
	id := s.Ask("g", commit.Request{Partition: Part(0), Kind: commit.RequestSeek, Offset: 150})
	tn := Own(t, s, Part(0), "b", 2)
	_, discardErr := s.Discard(t.Context(), zombie, "k", 0)
	_, loseErr := s.Lose(t.Context(), zombie, Rev(150), "data_loss")
	_, seekErr := s.Seek(t.Context(), zombie, id, Rev(150), "")
	for what, err := range map[string]error{
		"answer": s.Answer(t.Context(), zombie, commit.Answer{Request: id}), "discard": discardErr, "seek": seekErr, "lose": loseErr,
		"sweep": s.Sweep(t.Context(), zombie),
	} {
		if err == nil {
			t.Errorf("%s of an older epoch passed", what)
			continue
		}
		wantClass(t, err, commit.Fenced)
	}
	if s.Answered(id) != nil {
		t.Error("the zombie answered the request")
	}
	if r := restore(t, s, tn, "k"); !r.Quarantined || !r.Discarded.IsZero() {
		t.Errorf("the zombie discarded: %+v", r)
	}
}
