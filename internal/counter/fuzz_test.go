package counter_test

import (
	"errors"
	"testing"
	"time"

	"milepost/internal/commit"
	"milepost/internal/counter"
	"milepost/internal/partition"
	"milepost/internal/stream"
)

// FuzzWorkload: a record and a state of any bytes give a plan, a poison or a permanent error; what was planned can be gone on from.
func FuzzWorkload(f *testing.F) {
	f.Add([]byte("k"), []byte("v"), []byte("7"), int64(1))
	f.Add([]byte("k"), []byte("refuse me"), []byte("9223372036854775807"), int64(1))
	f.Add([]byte("k"), []byte(nil), []byte("9223372036854775807"), int64(9223372036854775807))
	f.Add([]byte("\xff"), []byte("poison"), []byte("-1"), int64(-1))
	f.Add([]byte("a\x00b"), []byte("{"), []byte("00000000000000000000000000000000000001"), int64(0))
	f.Fuzz(func(t *testing.T, key, value, state []byte, segment int64) {
		w := workload(t, 0)
		r := &stream.Record{Partition: stream.Partition{Topic: "raw"}, Offset: 9, Timestamp: time.UnixMilli(1), Key: key, Value: value}
		o, err := w.Decode(r)
		id := stream.Identity{Partition: r.Partition, Revision: stream.Revision{Generation: 1, Offset: 9}}
		if err != nil {
			poison, ok := errors.AsType[*commit.PoisonError](err)
			if !ok {
				t.Fatalf("decode: %v", err)
			}
			w.DeadLetter(id, 1, r, poison)
			return
		}
		o.Identity = id
		k := partition.KeyState{Epoch: 1, Checkpoint: commit.Checkpoint{
			Revision: stream.Revision{Generation: 1, Offset: 8}, Segment: segment, State: state,
		}}
		for range 3 {
			p, err := w.Plan(k, o, partition.Decision{Kind: partition.Solved})
			if err != nil {
				if !errors.Is(err, commit.ErrPermanent) {
					t.Fatalf("plan: %v", err)
				}
				return
			}
			if p.Next.Segment < 1 && segment >= 0 && segment < 1<<62 {
				t.Fatalf("segment %d of %d", p.Next.Segment, segment)
			}
			if len(p.Outputs) != 1 {
				t.Fatalf("%d outputs", len(p.Outputs))
			}
			if p.Next.Segment == k.Checkpoint.Segment+1 && p.Reset == "" && k.Checkpoint.Segment > 0 {
				t.Fatal("a segment begins without a reset")
			}
			if counter.Tail(p.Next.State) == nil {
				t.Fatalf("the state %q that it made cannot be read", p.Next.State)
			}
			k.Checkpoint = p.Next
		}
	})
}
