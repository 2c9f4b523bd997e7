package commit_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"milepost/internal/commit"
	"milepost/internal/stream"
)

func someOutputs() []commit.Output {
	return []commit.Output{
		{Topic: "out", Key: []byte("k"), Value: []byte{0, 0xff}, Headers: []stream.Header{
			{Key: stream.HeaderID, Value: []byte("raw/1/0/5/0")}, {Key: stream.HeaderEpoch, Value: []byte("3")},
		}},
		{Topic: "other", Value: []byte("v"), Headers: []stream.Header{}},
	}
}

// I7, F21: outputs come back from their row byte for byte, with the observations that they are of, and the same outputs are the same bytes.
func TestOutputsRoundTrip(t *testing.T) {
	b, err := commit.EncodeOutputs(&commit.Commit{Outputs: someOutputs(), Earlier: []int64{3, 5}})
	if err != nil {
		t.Fatal(err)
	}
	got, earlier, err := commit.DecodeOutputs(b)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(someOutputs(), got); diff != "" {
		t.Errorf("outputs (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]int64{3, 5}, earlier); diff != "" {
		t.Errorf("earlier observations (-want +got):\n%s", diff)
	}
	again, err := commit.EncodeOutputs(&commit.Commit{Outputs: got, Earlier: earlier})
	if err != nil || string(again) != string(b) {
		t.Errorf("encoding again gave other bytes (%v)", err)
	}
}

// H6: a ledger entry names base, revisions, segment, digest and landing.
func TestEntriesRoundTrip(t *testing.T) {
	want := []commit.Entry{
		{
			Group: "g", Topic: "raw", TopicGeneration: 2, Epoch: 7, Key: "k\xff", Base: stream.Revision{Generation: 2, Offset: 4},
			Offsets: []int64{5, 9}, Segment: 3, Digest: commit.OutputsDigest(someOutputs()),
			Landed: []commit.Landing{{Topic: "out", Partition: 1, Offset: 99}},
		},
		{Group: "g", Topic: "raw", TopicGeneration: 2, Epoch: 7, Key: "", Offsets: []int64{6}, DeadLetter: true},
	}
	b, err := commit.EncodeEntries(want)
	if err != nil {
		t.Fatal(err)
	}
	got, err := commit.DecodeEntries(b)
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("entries: %v (-want +got):\n%s", err, diff)
	}
}

// C1: the epoch header does not change a commit's digest, anything else does.
func TestDigest(t *testing.T) {
	a, b := someOutputs(), someOutputs()
	b[0].Headers[1].Value = []byte("4")
	if commit.OutputsDigest(a) != commit.OutputsDigest(b) {
		t.Error("another epoch gives another digest")
	}
	for name, change := range map[string]func([]commit.Output){
		"topic":  func(o []commit.Output) { o[0].Topic = "x" },
		"key":    func(o []commit.Output) { o[0].Key = []byte("x") },
		"value":  func(o []commit.Output) { o[0].Value = []byte("x") },
		"header": func(o []commit.Output) { o[0].Headers[0].Value = []byte("x") },
		"border": func(o []commit.Output) { o[0].Topic, o[0].Key = "outk", nil },
	} {
		c := someOutputs()
		change(c)
		if commit.OutputsDigest(a) == commit.OutputsDigest(c) {
			t.Errorf("another %s gives the same digest", name)
		}
	}
}

// A12: every class of error, wrapped as callers wrap it.
func TestClassOf(t *testing.T) {
	for want, err := range map[commit.Class]error{
		commit.Conflict:  &commit.ConflictError{Key: "k"},
		commit.Busy:      &commit.BusyError{Key: "k"},
		commit.Fenced:    &commit.FencedError{Held: 3, Owner: 4},
		commit.Permanent: commit.ErrPermanent,
		commit.Poison:    &commit.PoisonError{Reason: "undecodable"},
		commit.Canceled:  context.Canceled,
		commit.Transient: errors.New("connection reset"),
	} {
		if got := commit.ClassOf(fmt.Errorf("write the row: %w", err)); got != want {
			t.Errorf("ClassOf(%v) = %s, want %s", err, got, want)
		}
	}
	if got := commit.ClassOf(context.DeadlineExceeded); got != commit.Transient {
		t.Errorf("a deadline is %s, want transient", got)
	}
}

// F21: the ledger names every observation of a commit, in order, and its id depends on each.
func TestEntryOfRun(t *testing.T) {
	tn := commit.NewTenure(commit.Ownership{Group: "g", Partition: stream.Partition{Topic: "raw"}, TopicGeneration: 1, Epoch: 3})
	plan := commit.Plan{Next: commit.Checkpoint{Revision: stream.Revision{Generation: 1, Offset: 9}, Segment: 1}, Outputs: someOutputs()}
	single := commit.NewCommit(tn, "k", stream.Revision{}, plan)
	plan.Earlier = []int64{4, 7}
	run := commit.NewCommit(tn, "k", stream.Revision{}, plan)
	if got := commit.EntryOf(&run, nil); !cmp.Equal(got.Offsets, []int64{4, 7, 9}) {
		t.Errorf("the entry names %v", got.Offsets)
	}
	if got := commit.EntryOf(&single, nil); !cmp.Equal(got.Offsets, []int64{9}) {
		t.Errorf("the entry of a single one names %v", got.Offsets)
	}
	plan.Earlier = []int64{5, 7}
	if other := commit.NewCommit(tn, "k", stream.Revision{}, plan); run.ID == single.ID || run.ID == other.ID {
		t.Error("commits of other observations have one id")
	}
}

func FuzzDecodeOutputs(f *testing.F) {
	b, err := commit.EncodeOutputs(&commit.Commit{Outputs: someOutputs(), Earlier: []int64{7}})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Fuzz(func(t *testing.T, b []byte) {
		outputs, earlier, err := commit.DecodeOutputs(b)
		if err != nil {
			if commit.ClassOf(err) != commit.Permanent {
				t.Fatalf("damaged outputs are %s, want permanent", commit.ClassOf(err))
			}
			return
		}
		if _, err := commit.EncodeOutputs(&commit.Commit{Outputs: outputs, Earlier: earlier}); err != nil {
			t.Fatalf("decoded outputs do not encode: %v", err)
		}
	})
}

func FuzzDecodeEntries(f *testing.F) {
	b, err := commit.EncodeEntries([]commit.Entry{{Group: "g", Key: "k", Offsets: []int64{1}}})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Fuzz(func(t *testing.T, b []byte) {
		entries, err := commit.DecodeEntries(b)
		if err != nil {
			return
		}
		if _, err := commit.EncodeEntries(entries); err != nil {
			t.Fatalf("decoded entries do not encode: %v", err)
		}
	})
}

// H10: a raw record comes back from its quarantine row as it was fetched, a null value and an empty one apart.
func TestRecordRoundTrip(t *testing.T) {
	for _, value := range [][]byte{nil, {}, {0, 0xff}} {
		want := stream.Record{
			Partition: stream.Partition{Topic: "raw", Number: 3}, Offset: 7, LeaderEpoch: 2, Timestamp: time.UnixMilli(1_700_000_000_123).UTC(),
			Key: []byte("k"), Value: value, Headers: []stream.Header{{Key: "content-type", Value: []byte("x")}},
		}
		b, err := commit.EncodeRecord(&want)
		if err != nil {
			t.Fatal(err)
		}
		got, err := commit.DecodeRecord(b)
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("record: %v (-want +got):\n%s", err, diff)
		}
	}
}

func FuzzDecodeRecord(f *testing.F) {
	b, err := commit.EncodeRecord(&stream.Record{Key: []byte("k"), Headers: []stream.Header{{Key: "h"}}})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := commit.DecodeRecord(b)
		if err != nil {
			if commit.ClassOf(err) != commit.Permanent {
				t.Fatalf("a damaged record is %s, want permanent", commit.ClassOf(err))
			}
			return
		}
		if _, err := commit.EncodeRecord(&r); err != nil {
			t.Fatalf("a decoded record does not encode: %v", err)
		}
	})
}
