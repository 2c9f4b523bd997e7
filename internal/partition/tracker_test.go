package partition

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"milepost/internal/stream"
)

// A14, I3, I4, P11, P12: the tracker agrees with a naive model over any order of deliveries and completions, with gaps.
func TestTrackerAgreesWithItsModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		begin := rapid.Int64Range(0, 1000).Draw(t, "frontier")
		var released []int64
		tr := newTracker(stream.Frontier{Next: stream.Revision{Generation: 1, Offset: begin}, LeaderEpoch: -1}, func(o int64) { released = append(released, o) })
		next := begin
		marks := map[int64]mark{} // of all delivered
		var order []int64
		last, passedDead := begin, 0
		t.Repeat(map[string]func(*rapid.T){
			"deliver": func(t *rapid.T) {
				next += rapid.SampledFrom([]int64{0, 0, 0, 1, 7, 100_000}).Draw(t, "gap")
				tr.deliver(next, int32(next%5), time.Unix(next, 0))
				marks[next] = inHand
				order = append(order, next)
				next++
			},
			"mark": func(t *rapid.T) {
				if len(order) == 0 {
					t.Skip("nothing delivered")
				}
				o := rapid.SampledFrom(order).Draw(t, "offset")
				to := rapid.SampledFrom([]mark{inHand, isSpilled, isDone, isDeadLetter}).Draw(t, "mark")
				if marks[o] >= isDone {
					return // done stays done: the machine never marks it again
				}
				tr.set(o, to)
				marks[o] = to
			},
			"": func(t *rapid.T) {
				want, epoch, dead := next, int32(-1), 0
				for _, o := range order {
					if marks[o] < isDone {
						want = o
						break
					}
					epoch = int32(o % 5)
					if marks[o] == isDeadLetter {
						dead++
					}
				}
				if len(order) == 0 {
					want = begin
				}
				if tr.frontier != want || tr.epoch != epoch {
					t.Fatalf("frontier %d epoch %d, want %d %d", tr.frontier, tr.epoch, want, epoch)
				}
				if tr.frontier < last {
					t.Fatalf("frontier went from %d to %d", last, tr.frontier)
				}
				if len(released) != dead || dead < passedDead {
					t.Fatalf("%d dead letters were released, want %d", len(released), dead)
				}
				last, passedDead = tr.frontier, dead
				checkLooks(t, &tr, marks, order)
			},
		})
	})
}

func checkLooks(t *rapid.T, tr *tracker, marks map[int64]mark, order []int64) {
	oldest := time.Time{}
	for _, o := range order {
		want := marks[o]
		if o < tr.frontier {
			want = passed
		} else if oldest.IsZero() {
			oldest = time.Unix(o, 0).UTC()
		}
		if got := tr.look(o); got != want {
			t.Fatalf("offset %d is %d, want %d", o, got, want)
		}
	}
	if got := tr.look(tr.next); got != unseen {
		t.Fatalf("offset %d was never delivered and is %d", tr.next, got)
	}
	if got := tr.oldest(); !got.Equal(oldest) {
		t.Fatalf("oldest is %s, want %s", got, oldest)
	}
}

// The heap agrees with a sorted model when members move and leave from anywhere.
func TestHeapAgreesWithItsModel(t *testing.T) {
	type member struct{ value, place int }
	rapid.Check(t, func(t *rapid.T) {
		h := heap[*member]{less: func(a, b *member) bool { return a.value < b.value }, place: func(m *member) *int { return &m.place }}
		all := make([]*member, 20)
		for i := range all {
			all[i] = &member{place: -1}
		}
		t.Repeat(map[string]func(*rapid.T){
			"fix": func(t *rapid.T) {
				m := rapid.SampledFrom(all).Draw(t, "member")
				m.value = rapid.IntRange(0, 9).Draw(t, "value")
				h.fix(m)
			},
			"remove": func(t *rapid.T) { h.remove(rapid.SampledFrom(all).Draw(t, "member")) },
			"": func(t *rapid.T) {
				least, n := 10, 0
				for _, m := range all {
					if m.place >= 0 {
						least, n = min(least, m.value), n+1
						if h.members[m.place] != m {
							t.Fatalf("a member does not stand at its place")
						}
					}
				}
				top, ok := h.top()
				if ok != (n > 0) || ok && top.value != least || len(h.members) != n {
					t.Fatalf("top %v %t of %d, want %d of %d", top, ok, len(h.members), least, n)
				}
			},
		})
	})
}

// A queue gives back what was put in, in order, and its room.
func TestFifoKeepsOrderAndGivesRoomBack(t *testing.T) {
	var q fifo[int]
	in, out := 0, 0
	for range 1000 {
		for range 3 {
			q.push(in)
			in++
		}
		for range 3 {
			got, ok := q.pop()
			if !ok || got != out {
				t.Fatalf("popped %d %t, want %d", got, ok, out)
			}
			out++
		}
	}
	if _, ok := q.pop(); ok {
		t.Fatal("the queue is not empty")
	}
	if cap(q.members) > 1024 {
		t.Errorf("an empty queue holds room for %d", cap(q.members))
	}
}
