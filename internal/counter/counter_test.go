package counter_test

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"milepost/internal/commit"
	"milepost/internal/counter"
	"milepost/internal/partition"
	"milepost/internal/stream"
)

func workload(t *testing.T, solve time.Duration) *counter.Workload {
	t.Helper()
	w, err := counter.New(counter.Config{Group: "g", Topic: "out", DeadLetterTopic: "dead", SolveTime: solve})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func record(offset int64, key, value string) *stream.Record {
	return &stream.Record{
		Partition: stream.Partition{Topic: "raw", Number: 3}, Offset: offset, Timestamp: time.UnixMilli(1000 + offset).UTC(), Key: []byte(key), Value: []byte(value),
	}
}

// observe decodes a record as the machine does: the identity is the machine's.
func observe(t *testing.T, w *counter.Workload, r *stream.Record) partition.Observation {
	t.Helper()
	o, err := w.Decode(r)
	if err != nil {
		t.Fatal(err)
	}
	o.Identity = stream.Identity{Partition: r.Partition, Revision: stream.Revision{Generation: 1, Offset: r.Offset}}
	return o
}

func plan(t *testing.T, w *counter.Workload, k partition.KeyState, r *stream.Record) (counter.Output, commit.Plan) {
	t.Helper()
	p, err := w.Plan(k, observe(t, w, r), partition.Decision{Kind: partition.Solved})
	if err != nil {
		t.Fatal(err)
	}
	var out counter.Output
	if err := json.Unmarshal(p.Outputs[0].Value, &out); err != nil {
		t.Fatal(err)
	}
	return out, p
}

// TestCounts: a key's records are numbered in order over its checkpoints, and each output names its record (K2, A12).
func TestCounts(t *testing.T) {
	w, k := workload(t, 0), partition.KeyState{Epoch: 7}
	for n, offset := range []int64{4, 9, 10} {
		out, p := plan(t, w, k, record(offset, "k", "anything"))
		want := counter.Output{Key: "k", N: int64(n) + 1, Segment: 1, Topic: "raw", Generation: 1, Partition: 3, Offset: offset}
		if diff := cmp.Diff(want, out); diff != "" {
			t.Errorf("offset %d (-want +got):\n%s", offset, diff)
		}
		if want := (stream.Revision{Generation: 1, Offset: offset}); p.Next.Revision != want || p.Reset != "" {
			t.Errorf("offset %d: next revision %s and reset %q, want %s and none", offset, p.Next.Revision, p.Reset, want)
		}
		k.Checkpoint = p.Next
	}
}

// TestBeginsAnew: a state that is lost, expired or void begins a segment whose first output says why (A5, A11, K3).
func TestBeginsAnew(t *testing.T) {
	w := workload(t, 0)
	_, first := plan(t, w, partition.KeyState{}, record(1, "k", ""))
	for reason, spoil := range map[string]func(*partition.KeyState){
		"state_lost": func(k *partition.KeyState) { k.Checkpoint.State = w.Diverged(k.Checkpoint.State) },
		"expired":    func(k *partition.KeyState) { k.Expired = true },
		"data_loss":  func(k *partition.KeyState) { k.Anew = "data_loss" },
	} {
		k := partition.KeyState{Checkpoint: first.Next}
		spoil(&k)
		out, p := plan(t, w, k, record(2, "k", ""))
		if out.N != 1 || out.Segment != 2 || out.Reset != reason || p.Reset != reason || p.Next.Segment != 2 {
			t.Errorf("%s: %+v, plan's reset %q, segment %d", reason, out, p.Reset, p.Next.Segment)
		}
	}
}

// TestTail: of a state that can be read a tail is kept, of any other nothing: that one is lost, not expired (A5).
func TestTail(t *testing.T) {
	for state, want := range map[string]bool{"1": true, "40": true, "0": false, "": false, "x": false} {
		if got := counter.Tail([]byte(state)); (got != nil) != want {
			t.Errorf("tail of %q: %q, want one: %v", state, got, want)
		}
	}
}

// TestSpecialValues: poison is a dead letter with the record's own bytes, what refuses is permanent, a key that is no text is poison (A3, P26).
func TestSpecialValues(t *testing.T) {
	w := workload(t, 0)
	for reason, r := range map[string]*stream.Record{counter.Poison: record(5, "k", "poison!"), "bad_key": record(5, "\x00\xff", "fine")} {
		_, err := w.Decode(r)
		p, ok := errors.AsType[*commit.PoisonError](err)
		if !ok || p.Reason != reason {
			t.Errorf("decode gives %v, want poison for %s", err, reason)
			continue
		}
		id := stream.Identity{Partition: r.Partition, Revision: stream.Revision{Generation: 1, Offset: r.Offset}}
		d := w.DeadLetter(id, 7, r, p)
		if d.Topic != "dead" || string(d.Key) != string(r.Key) || string(d.Value) != string(r.Value) {
			t.Errorf("dead letter %s %q %q, want the record's bytes", d.Topic, d.Key, d.Value)
		}
	}
	_, err := w.Plan(partition.KeyState{}, observe(t, w, record(5, "k", "refuse me")), partition.Decision{Kind: partition.Solved})
	if got := commit.ClassOf(err); got != commit.Permanent {
		t.Errorf("a record that refuses is of class %s, want %s", got, commit.Permanent)
	}
}

// TestOpening: without a solve time the workload decides itself, with one a solver is asked.
func TestOpening(t *testing.T) {
	for _, solve := range []time.Duration{0, time.Millisecond} {
		w := workload(t, solve)
		o := w.Open(partition.KeyState{}, observe(t, w, record(1, "k", "")))
		if local, asked := o.Local != nil, o.Request != nil; local != (solve == 0) || asked != (solve > 0) {
			t.Errorf("solve time %s: local %t, asked %t", solve, local, asked)
		}
	}
	if _, err := counter.New(counter.Config{}); err == nil {
		t.Error("an empty configuration is accepted")
	}
}
