package publish

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kmsg"

	"milepost/internal/commit"
	"milepost/internal/stream"
)

// A11, P25: a batch over two partitions is visible once, entered in the ledger with where it landed, and the group's offset
// follows the saved frontier with its metadata.
func TestPublish(t *testing.T) {
	t.Parallel()
	onBrokers(t, func(r *rig) {
		t := r.t
		p := r.publisher("a")
		t0, t1 := r.tenure(0, 3), r.tenure(1, 4)
		t0.SavedFrontier.Store(17)
		batch := append(r.commits(t0, 5, 3), r.commits(t1, 9, 2)...)
		out := r.mustPublish(p, 0, batch)
		want := map[stream.Partition]int64{t0.Partition: 0, t1.Partition: 0}
		if d := cmp.Diff(want, out.Positions); d != "" {
			t.Fatalf("positions (-want +got):\n%s", d)
		}
		r.wantOnce(r.topics.Matched(), batch)
		landed := map[string]commit.Landing{}
		for _, rec := range r.records(r.topics.Matched()) {
			landed[string(rec.Key)] = commit.Landing{Topic: rec.Topic, Partition: rec.Partition, Offset: rec.Offset}
		}
		got, end := r.entries(p, 0, 0)
		if end != 2 { // the record and its marker
			t.Errorf("the ledger ends at %d, want 2", end)
		}
		var entries []commit.Entry
		for i := range 3 {
			entries = append(entries, commit.EntryOf(&batch[i], []commit.Landing{landed[string(batch[i].Key)]}))
		}
		if d := cmp.Diff(entries, got); d != "" {
			t.Fatalf("ledger entries (-want +got):\n%s", d)
		}
		offsets, err := kadm.NewClient(r.admin).FetchOffsets(kadm.RequireStable(r.ctx()), r.group)
		if err != nil {
			t.Fatal(err)
		}
		o, _ := offsets.Lookup(r.raw, 0)
		if o.At != 17 || o.Metadata != "milepost" {
			t.Errorf("committed offset is %d with metadata %q, want 17 with milepost", o.At, o.Metadata)
		}
	})
}

// steps records what a publisher does, in order.
type steps struct {
	mu  sync.Mutex
	did []string
}

func (s *steps) note(step string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := len(s.did); n > 0 && s.did[n-1] == step {
		return
	}
	s.did = append(s.did, step)
}

func (s *steps) key(k kmsg.Key) {
	if slices.Contains([]kmsg.Key{kmsg.InitProducerID, kmsg.Produce, kmsg.TxnOffsetCommit, kmsg.EndTxn}, k) {
		s.note(k.Name())
	}
}

func (s *steps) take() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	did := s.did
	s.did = nil
	return did
}

// H1, H2, X1, X3: lane, epochs, generation, send, offsets, end; the same when it is tried again after a fence, and epochs are
// not asked again while the lane lives.
func TestOrder(t *testing.T) {
	t.Parallel()
	onBrokers(t, func(r *rig) {
		t := r.t
		s := &steps{}
		p := r.publisher("a")
		ten := r.tenure(0, 1)
		r.net.note, r.owners.note = s.key, s.note
		r.who.mu.Lock()
		r.who.note = s.note
		r.who.mu.Unlock()
		send := []string{"generation", "Produce", "TxnOffsetCommit", "EndTxn"}
		first := append([]string{"InitProducerID", "epochs"}, send...)

		r.mustPublish(p, 0, r.commits(ten, 0, 2))
		if d := cmp.Diff(first, s.take()); d != "" {
			t.Fatalf("first transaction of a lane (-want +got):\n%s", d)
		}
		r.mustPublish(p, 0, r.commits(ten, 2, 2))
		if d := cmp.Diff(send, s.take()); d != "" {
			t.Fatalf("second transaction (-want +got):\n%s", d)
		}
		if err := r.publisher("b").InitFormers(r.ctx(), r.raw, []commit.Former{{Instance: "a", Lanes: 3}}); err != nil {
			t.Fatal(err)
		}
		s.take()
		r.mustPublish(p, 0, r.commits(ten, 4, 2))
		fenced := append([]string{"generation", "Produce"}, first...)
		if d := cmp.Diff(fenced, s.take()); d != "" {
			t.Fatalf("after a fence (-want +got):\n%s", d)
		}
		other := r.tenure(1, 1)
		s.take()
		r.mustPublish(p, 0, r.commits(other, 0, 1))
		if d := cmp.Diff(append([]string{"epochs"}, send...), s.take()); d != "" {
			t.Fatalf("a tenure that the lane does not know (-want +got):\n%s", d)
		}
	})
}

// H1, F5: a zombie that passed every check before publishes nothing once the acquirer has swapped the epoch and initialised
// its lanes: its lane is fenced, and the next one reads the newer epoch.
func TestZombie(t *testing.T) {
	t.Parallel()
	zombie(t, func(r *rig) func(...commit.Former) error {
		b := r.publisher("b")
		return func(f ...commit.Former) error { return b.InitFormers(r.ctx(), r.raw, f) }
	})
}

// H7, P32: nor does an owner that an operator's command has fenced, once that has returned; nobody has acquired the partition yet.
func TestZombieOfAnOperator(t *testing.T) {
	t.Parallel()
	zombie(t, func(r *rig) func(...commit.Former) error {
		return func(f ...commit.Former) error { return InitFormers(r.ctx(), r.admin, r.group, r.raw, f) }
	})
}

func zombie(t *testing.T, stopper func(*rig) func(...commit.Former) error) {
	t.Helper()
	onBrokers(t, func(r *rig) {
		t := r.t
		a, stop := r.publisher("a"), stopper(r)
		old, kept := r.tenure(0, 1), r.tenure(1, 1)
		before := append(r.commits(old, 0, 1), r.commits(kept, 0, 1)...)
		r.mustPublish(a, 0, before)

		r.owners.take(old) // the epoch is swapped ...
		if err := stop(commit.Former{Instance: "a", Lanes: a.Lanes()}); err != nil {
			t.Fatal(err)
		}
		lost, still := r.commits(old, 1, 2), r.commits(kept, 1, 2)
		out, err := a.Publish(r.ctx(), 0, append(slices.Clone(lost), still...))
		if err != nil {
			t.Fatal(err)
		}
		for i := range lost {
			if err := out.Failed[i]; err == nil || commit.ClassOf(err) != commit.Fenced {
				t.Errorf("commit %d of the lost partition: %v, want fenced", i, err)
			}
		}
		if len(out.Failed) != len(lost) || len(out.Positions) != 1 {
			t.Errorf("failed %v, positions %v: want the kept partition published", out.Failed, out.Positions)
		}
		if old.Err() == nil || kept.Err() != nil {
			t.Errorf("tenures: lost one %v, kept one %v", old.Err(), kept.Err())
		}
		r.wantOnce(r.topics.Matched(), before, still)
	})
}

// P7, KIP-447: a stale generation is refused, nothing of it is seen, and the same bytes go out under the next one.
func TestStaleGeneration(t *testing.T) {
	t.Parallel()
	onBrokers(t, func(r *rig) {
		t := r.t
		p := r.publisher("a")
		ten := r.tenure(0, 1)
		batch := r.commits(ten, 0, 3)
		member, generation := r.who.Generation()
		r.who.see(func() (string, int32) { return member, generation + 7 })

		done := make(chan commit.Published, 1)
		go func() {
			out, err := p.Publish(r.ctx(), 0, batch)
			if err != nil {
				t.Error(err)
			}
			done <- out
		}()
		r.who.until(t, 4) // refused, and waiting for a change
		if ids := r.ids(r.topics.Matched()); len(ids) != 0 {
			t.Errorf("visible under a refused generation: %v", ids)
		}
		r.who.see(nil)
		if out := <-done; len(out.Failed) != 0 {
			t.Fatalf("failed: %v", out.Failed)
		}
		r.wantOnce(r.topics.Matched(), batch)
	})
}

// P7: after a refusal a callback that changes nothing starts the order again (Notify), and a tenure that the callback
// ended comes back fenced.
func TestNotifyEndsTheWait(t *testing.T) {
	t.Parallel()
	onBrokers(t, func(r *rig) {
		t := r.t
		p := r.publisher("a")
		ten := r.tenure(0, 1)
		member, generation := r.who.Generation()
		r.who.see(func() (string, int32) { return member, generation + 7 })
		done := make(chan commit.Published, 1)
		go func() {
			out, err := p.Publish(r.ctx(), 0, r.commits(ten, 0, 1))
			if err != nil {
				t.Error(err)
			}
			done <- out
		}()
		r.who.until(t, 2)
		asks := r.owners.asks()
		p.Notify()
		eventually(t, func() bool { return r.owners.asks() > asks })
		ten.Lose(errors.New("revoked"))
		out := <-done
		if err := out.Failed[0]; err == nil || commit.ClassOf(err) != commit.Fenced {
			t.Fatalf("got %v, want fenced", err)
		}
		r.wantOnce(r.topics.Matched())
	})
}

// H1: a tenure that began under another member id is lost at once, and nothing of it is sent.
func TestAnotherMemberID(t *testing.T) {
	t.Parallel()
	onBrokers(t, func(r *rig) {
		t := r.t
		p := r.publisher("a")
		r.who.see(func() (string, int32) { return "an earlier member", 1 })
		ten := r.tenure(0, 1)
		r.who.see(nil)
		sent := false
		r.net.note = func(k kmsg.Key) { sent = sent || k == kmsg.Produce || k == kmsg.TxnOffsetCommit }
		out, err := p.Publish(r.ctx(), 0, r.commits(ten, 0, 1))
		if err != nil {
			t.Fatal(err)
		}
		if err := out.Failed[0]; err == nil || commit.ClassOf(err) != commit.Fenced || ten.Err() == nil || sent {
			t.Fatalf("failed %v, tenure %v, sent %v: want fenced, lost, not sent", err, ten.Err(), sent)
		}
	})
}

// H16: an empty member id or a generation below 1 would be accepted unchecked, so it is never sent.
func TestNotInTheGroup(t *testing.T) {
	t.Parallel()
	onBrokers(t, func(r *rig) {
		t := r.t
		for i, as := range []func() (string, int32){
			func() (string, int32) { return "", -1 },
			func() (string, int32) { m, _ := r.member.GroupMetadata(); return m, 0 },
		} {
			p := r.publisher(fmt.Sprintf("p%d", i))
			ten := r.tenure(int32(i), 1)
			sent := false
			r.net.mu.Lock()
			r.net.note = func(k kmsg.Key) { sent = sent || k == kmsg.Produce || k == kmsg.TxnOffsetCommit }
			r.net.mu.Unlock()
			r.who.see(as)
			batch := r.commits(ten, 0, 1)
			done := make(chan error, 1)
			go func() {
				_, err := p.Publish(r.ctx(), 0, batch)
				done <- err
			}()
			r.who.until(t, 5)
			r.net.mu.Lock()
			if sent {
				t.Errorf("case %d: sent without a member id or generation", i)
			}
			r.net.note = nil
			r.net.mu.Unlock()
			r.who.see(nil)
			if err := <-done; err != nil {
				t.Fatal(err)
			}
		}
	})
}

// P20, H11: an end whose answer is lost is decided by the ledger: published once whether or not it had taken effect.
func TestUnknownEnd(t *testing.T) {
	t.Parallel()
	for name, what := range map[string]cutting{"before": loseRequest, "after": loseAnswer} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onBrokers(t, func(r *rig) {
				t := r.t
				p := r.publisher("a")
				r.mustPublish(p, 0, r.commits(r.tenure(3, 1), 0, 1))
				t0, t1 := r.tenure(0, 1), r.tenure(1, 1)
				batch := append(r.commits(t0, 0, 2), r.commits(t1, 0, 2)...)
				inits := 0
				r.net.mu.Lock()
				r.net.note = func(k kmsg.Key) {
					if k == kmsg.InitProducerID {
						inits++
					}
				}
				r.net.mu.Unlock()
				// franz-go itself asks again over a new connection; every answer is lost, as when the broker is cut off.
				ends := 0
				r.net.mu.Lock()
				r.net.cut = func(k kmsg.Key) cutting {
					if k != kmsg.EndTxn {
						return pass
					}
					if ends++; ends > 1 {
						return loseRequest
					}
					return what
				}
				r.net.mu.Unlock()
				done := make(chan commit.Published, 1)
				go func() {
					out, err := p.Publish(r.ctx(), 0, batch)
					if err != nil {
						t.Error(err)
					}
					done <- out
				}()
				eventually(t, func() bool { r.net.mu.Lock(); defer r.net.mu.Unlock(); return inits > 0 })
				r.net.mu.Lock()
				r.net.cut = nil
				r.net.mu.Unlock()
				out := <-done
				if len(out.Failed) != 0 || len(out.Positions) != 2 {
					t.Fatalf("failed %v, positions %v", out.Failed, out.Positions)
				}
				got := map[string]int{}
				for _, id := range r.ids(r.topics.Matched()) {
					got[id]++
				}
				if len(got) != 5 {
					t.Errorf("%d different outputs visible, want 5", len(got))
				}
				for id, n := range got {
					if n != 1 {
						t.Errorf("%s visible %d times", id, n)
					}
				}
				entries, _ := r.entries(p, 0, out.Positions[t0.Partition])
				if len(entries) != 2 {
					t.Errorf("%d entries at the position given, want 2", len(entries))
				}
			})
		})
	}
}

// X6: a call whose context ends leaves no transaction open for readers to wait on, and what it had sent is not visible.
func TestBrokenOff(t *testing.T) {
	t.Parallel()
	onBrokers(t, func(r *rig) {
		t := r.t
		p := r.publisher("a")
		ten := r.tenure(0, 1)
		ctx, cancel := context.WithCancel(r.ctx())
		r.net.mu.Lock()
		r.net.cut = func(k kmsg.Key) cutting {
			if k != kmsg.TxnOffsetCommit {
				return pass
			}
			cancel()
			return loseRequest
		}
		r.net.mu.Unlock()
		_, err := p.Publish(ctx, 0, r.commits(ten, 0, 2))
		if !errors.Is(err, context.Canceled) {
			t.Fatalf("got %v, want canceled", err)
		}
		r.net.mu.Lock()
		r.net.cut = nil
		r.net.mu.Unlock()
		// ids reads to the end: it would hang on an open transaction until the broker's scan.
		r.wantOnce(r.topics.Matched())
		batch := r.commits(ten, 0, 2)
		r.mustPublish(p, 0, batch)
		r.wantOnce(r.topics.Matched(), batch)
	})
}
