package solve

import (
	"fmt"
	"testing"
	"time"

	"milepost/internal/partition"
	"milepost/internal/stream"
)

// A9: an attempt after a time-out goes to a partition that another replica reads; first attempts keep away from a replica that is
// silent, for a while; one that answers is trusted again; a lost record makes nobody suspect.
func TestRoutes(t *testing.T) {
	now := time.Unix(1000, 0)
	r := newRoutes(6, 10*time.Second)
	key := stream.Key("v1")
	home := r.first(key, now)
	if got := r.other(key, sent{home, now}, 1, now); got == home {
		t.Errorf("nobody is known: the second attempt goes to %d again", got)
	}
	reader := func(by int32) string { return r.vias[by].reader }
	for by := range int32(6) {
		r.answered(by, []string{"a", "b"}[by%2], now)
	}
	mine, others := reader(home), map[int32]bool{}
	for attempt := range 10 {
		by := r.other(key, sent{home, now}, attempt+1, now)
		if reader(by) == mine {
			t.Errorf("attempt %d goes to %s again", attempt+1, mine)
		}
		others[by] = true
	}
	if len(others) < 2 {
		t.Errorf("all attempts go by %v: the load is not spread", others)
	}
	// The partition was answered after the job went out: a record was lost, no more.
	r.timedOut(sent{home, now.Add(-time.Second)}, now)
	if r.first(key, now) != home {
		t.Error("a lost record makes the replica suspect")
	}
	later := now.Add(3 * time.Second)
	r.timedOut(sent{home, now.Add(time.Millisecond)}, later)
	for i := range 50 {
		if by := r.first(stream.Key(fmt.Sprint(i)), later); reader(by) == mine {
			t.Fatalf("a first attempt goes to %s, which is silent", mine)
		}
	}
	if r.first(key, later.Add(10*time.Second)) != home {
		t.Error("it is suspected for ever")
	}
	r.answered((home+2)%6, mine, later)
	if other := (home + 2) % 6; r.suspected(other, later) || !r.suspected(home, later) {
		t.Error("the replica answers: its other partitions are trusted, the silent one may have another reader")
	}
	// It has: nobody told us that the partition moved to a replica that hangs. Who is thought to read it is lively elsewhere.
	if by := r.other(key, sent{home, now.Add(2 * time.Second)}, 1, later); by != (home+2)%6 {
		t.Errorf("the second attempt goes by %d, want the partition that was answered since", by)
	}
	r.answered(home, mine, later)
	if r.first(key, later) != home {
		t.Error("it answers and is not trusted")
	}
}

// What is remembered of replicas and jobs is bounded, however many come and go.
func TestRoutesAreBounded(t *testing.T) {
	now := time.Unix(1000, 0)
	r := newRoutes(4, time.Second)
	for i := range 10_000 {
		r.answered(int32(i%4), fmt.Sprint(i), now)
	}
	if n := len(r.replicas); n > 4*4+65 {
		t.Errorf("%d replicas are remembered", n)
	}
	r.answered(-1, "x", now)
	r.answered(99, "x", now)
	o := outstanding{jobs: map[partition.JobID]sent{}}
	for i := range 3 * maxOutstanding {
		o.note(partition.JobID{byte(i), byte(i >> 8), byte(i >> 16)}, sent{at: now})
	}
	if len(o.jobs) > maxOutstanding {
		t.Errorf("%d jobs are remembered", len(o.jobs))
	}
}
