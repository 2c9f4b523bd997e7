package consumer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kgo"

	"milepost/internal/commit"
	"milepost/internal/partition"
	"milepost/internal/stream"
)

// handWorker makes a worker of a session that has a client but runs nothing.
func handWorker(t *testing.T, r *rig, frontier int64) *worker {
	t.Helper()
	cfg := DefaultConfig()
	cfg.Group, cfg.Topic, cfg.LedgerTopic, cfg.Instance = groupName, rawTopic, ledgerTopic, "hand"
	cfg.Client = r.options()
	c := &Consumer{cfg: cfg, log: slog.New(slog.DiscardHandler)}
	s := &session{c: c, client: r.client, admin: r.admin}
	tn := commit.NewTenure(commit.Ownership{Group: groupName, Partition: part(0), TopicGeneration: 1, Epoch: 1, MemberID: "m"})
	return newWorker(s, tn, commit.Start{Frontier: stream.Frontier{Next: stream.Revision{Generation: 1, Offset: frontier}, LeaderEpoch: -1}})
}

func fetched(offsets ...int64) []*kgo.Record {
	rs := make([]*kgo.Record, len(offsets))
	for i, o := range offsets {
		rs[i] = &kgo.Record{Topic: rawTopic, Offset: o, Key: []byte("k"), Value: fmt.Appendf(nil, "%d", o)}
	}
	return rs
}

// arrived empties the mailbox and gives the offsets that were handed over.
func arrived(w *worker) []int64 {
	var out []int64
	for _, in := range w.mail.take() {
		for _, r := range in.(partition.Arrived).Records {
			out = append(out, r.Offset)
		}
	}
	return out
}

// P10, P14, P15, A14: only the expected offset is admitted. A gap where two fetches meet is sought once and then believed; gaps
// inside a fetch are the fetch's own word; older records are dropped.
func TestOffer(t *testing.T) {
	bubble(t, 1, func(r *rig) {
		t := r.t
		w := handWorker(t, r, 100)
		for _, step := range []struct {
			name   string
			sought bool // a seek is done before
			in     []int64
			seek   bool
			want   []int64
			next   int64
		}{
			{"a gap at the start is not believed", false, []int64{105, 106}, true, nil, 100},
			{"nothing is taken until the seek is done", false, []int64{107}, false, nil, 100},
			{"after the seek the right one", true, []int64{100, 101}, false, []int64{100, 101}, 102},
			{"older ones are dropped", false, []int64{99, 100, 101, 102}, false, []int64{102}, 103},
			{"all old", false, []int64{5, 6}, false, nil, 103},
			{"a gap inside a fetch is proven by it", false, []int64{103, 110}, false, []int64{103, 110}, 111},
			{"a gap between two is not", false, []int64{120}, true, nil, 111},
			{"shown again after the seek it is", true, []int64{120, 121}, false, []int64{120, 121}, 122},
			{"but only there", false, []int64{130}, true, nil, 122},
		} {
			if step.sought {
				w.sought()
			}
			seek := w.offer(fetched(step.in...))
			if next, _ := w.position(); seek != step.seek || next != step.next {
				t.Errorf("%s: seek %t, next %d, want %t, %d", step.name, seek, next, step.seek, step.next)
			}
			if diff := cmp.Diff(step.want, arrived(w)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", step.name, diff)
			}
		}
	})
}

// P28: a worker that does not take its records has its fetch paused, and resumed at half; the machine's pause is another.
func TestInboxPauses(t *testing.T) {
	bubble(t, 1, func(r *rig) {
		t := r.t
		w := handWorker(t, r, 0)
		w.s.c.cfg.InboxRecords = 4
		paused := func() bool {
			return slices.Contains(r.client.PauseFetchPartitions(nil)[rawTopic], 0)
		}
		w.offer(fetched(0, 1, 2))
		if paused() {
			t.Error("paused below the bound")
		}
		w.offer(fetched(3, 4))
		if !paused() {
			t.Error("not paused at the bound")
		}
		w.setPause(pauseMachine, true)
		w.took(3)
		if !paused() {
			t.Error("resumed although the machine wants the pause")
		}
		w.setPause(pauseMachine, false)
		if paused() {
			t.Error("not resumed when no reason is left")
		}
		w.tenure.Lose(errLost)
		w.setPause(pauseMachine, true)
		if paused() {
			t.Error("a tenure that is over paused what may be another's")
		}
	})
}

// H15i: a refetch reads exactly the wanted offsets, ascending, seeks over far gaps, and reports what the log no longer has.
func TestRefetch(t *testing.T) {
	bubble(t, 1, func(r *rig) {
		t := r.t
		var records []*kgo.Record
		for i := range 6000 {
			records = append(records, &kgo.Record{Topic: rawTopic, Key: []byte("a"), Value: fmt.Appendf(nil, "%d", i)})
		}
		if err := r.client.ProduceSync(t.Context(), records...).FirstErr(); err != nil {
			t.Fatal(err)
		}
		w := handWorker(t, r, 0)
		f := newRefetcher(w)
		defer f.close()
		for _, want := range [][]int64{{3, 4, 10}, {1, 5998}, {0}, {5999}} {
			in := f.fetch(t.Context(), slices.Clone(want))
			if in.Err != nil || !in.Refetched || len(in.Missing) != 0 {
				t.Fatalf("fetch(%v) = %+v", want, in)
			}
			var got []int64
			for _, rec := range in.Records {
				got = append(got, rec.Offset)
				if string(rec.Value) != fmt.Sprint(rec.Offset) {
					t.Errorf("offset %d has value %s", rec.Offset, rec.Value)
				}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("offsets (-want +got):\n%s", diff)
			}
		}
		if _, err := r.admin.DeleteRecords(t.Context(), r.offsets(0, 50)); err != nil {
			t.Fatal(err)
		}
		in := f.fetch(t.Context(), []int64{10, 60})
		if in.Err == nil || len(in.Missing) != 0 {
			t.Errorf("fetch below the log's start = %+v, want an error and nothing reported missing", in)
		}
		// And the client after an error begins anew.
		if in := f.fetch(t.Context(), []int64{60}); in.Err != nil || len(in.Records) != 1 {
			t.Errorf("fetch(60) = %+v", in)
		}
	})
}

// H15i: an offset that aborted or compacted away is shown missing by the next higher one.
func TestRefetchMissing(t *testing.T) {
	bubble(t, 1, func(r *rig) {
		t := r.t
		txn := r.newClient(kgo.TransactionalID("t"), kgo.DefaultProduceTopic(rawTopic))
		defer txn.Close()
		r.produce(0, "a=0")
		if err := txn.BeginTransaction(); err != nil {
			t.Fatal(err)
		}
		if err := txn.ProduceSync(t.Context(), &kgo.Record{Key: []byte("a"), Value: []byte("aborted")}).FirstErr(); err != nil {
			t.Fatal(err)
		}
		if err := txn.EndTransaction(t.Context(), kgo.TryAbort); err != nil {
			t.Fatal(err)
		}
		after := r.produce(0, "a=1")
		f := newRefetcher(handWorker(t, r, 0))
		defer f.close()
		in := f.fetch(t.Context(), []int64{0, 1, 2, after})
		if in.Err != nil || !slices.Equal(in.Missing, []int64{1, 2}) || len(in.Records) != 2 {
			t.Errorf("fetch = %+v, want the aborted record 1 and the marker 2 missing", in)
		}
	})
}

// P18: work that is pending without an answer of any kind, or a loop that stands still, is found; an idle worker, one that is
// answered (errors too) and one that recovers are not.
func TestWatchdog(t *testing.T) {
	bubble(t, 1, func(r *rig) {
		t := r.t
		const after = time.Minute
		now := time.Now()
		pending := &partition.View{OldestPending: now}
		for _, tc := range []struct {
			name  string
			state State
			view  *partition.View
			step  func(w *worker)
			stuck bool
		}{
			{"pending, no answer", StateRunning, pending, func(w *worker) { w.turn.Add(1) }, true},
			{"pending, answered", StateRunning, pending, func(w *worker) { w.turn.Add(1); w.progress.Add(1) }, false},
			{"idle", StateRunning, &partition.View{}, func(w *worker) { w.turn.Add(1) }, false},
			{"the loop stands still", StateRunning, &partition.View{}, func(*worker) {}, true},
			{"recovering", StateRecovering, pending, func(*worker) {}, false},
		} {
			w := handWorker(t, r, 0)
			w.state.Store(int32(tc.state))
			w.view.Store(tc.view)
			dog := watchdog{last: map[*worker]sighting{}}
			var err error
			for at := now; at.Before(now.Add(2 * after)); at = at.Add(after / 4) {
				err = errors.Join(err, dog.look([]*worker{w}, at, after))
				tc.step(w)
			}
			if got := errors.Is(err, ErrStuck); got != tc.stuck {
				t.Errorf("%s: stuck = %t, want %t", tc.name, got, tc.stuck)
			}
		}
	})
}

// A18: what comes while a batch is being written shares the next one, in order, and at most the limit.
func TestBatcherGathers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := make(chan struct{})
		var batches [][]int
		b := newBatcher(1, 3, func(items []int) {
			<-gate
			batches = append(batches, items)
		})
		for i := range 6 {
			b.add(i)
			synctest.Wait()
		}
		close(gate)
		b.wait()
		if diff := cmp.Diff([][]int{{0}, {1, 2, 3}, {4, 5}}, batches); diff != "" {
			t.Errorf("batches (-want +got):\n%s", diff)
		}
	})
}

// A post never blocks or gets lost, whoever posts and whenever the worker takes.
func TestMailbox(t *testing.T) {
	m := newMailbox()
	const posters, each = 8, 500
	var wg sync.WaitGroup
	for p := range posters {
		wg.Go(func() {
			for i := range each {
				m.post(partition.Finished{Key: stream.Key(fmt.Sprint(p)), Err: fmt.Errorf("%d", i)})
			}
		})
	}
	next := map[stream.Key]int{}
	for got := 0; got < posters*each; {
		<-m.ready
		for _, in := range m.take() {
			f := in.(partition.Finished)
			if f.Err.Error() != fmt.Sprint(next[f.Key]) {
				t.Fatalf("poster %s: got %v, want %d", f.Key, f.Err, next[f.Key])
			}
			next[f.Key]++
			got++
		}
	}
	wg.Wait()
}

// A1: each limit is checked, and the message says which.
func TestConfigValidate(t *testing.T) {
	good := DefaultConfig()
	good.Group, good.Topic, good.LedgerTopic, good.Instance = "g", "t", "l", "i"
	if err := good.Validate(); err != nil {
		t.Fatalf("Validate() = %v, want nil", err)
	}
	for want, spoil := range map[string]func(*Config){
		"group":             func(c *Config) { c.Group = "" },
		"start":             func(c *Config) { c.Start = "newest" },
		"rebalance timeout": func(c *Config) { c.DrainGrace = c.RebalanceTimeout },
		"session timeout":   func(c *Config) { c.HeartbeatInterval = c.SessionTimeout },
		"inbox records":     func(c *Config) { c.InboxRecords = 1 },
		"partition":         func(c *Config) { c.Partition.Jobs = 0 },
	} {
		bad := good
		spoil(&bad)
		if err := bad.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Validate() = %v, want an error about %s", err, want)
		}
	}
}

// P31, P32, H12: what a row was written for is compared with what is there, each fact with its own remedy.
func TestRefuse(t *testing.T) {
	row := commit.OwnerRow{Partition: part(0), Epoch: 3, TopicID: [16]byte{1}, LedgerTopicID: [16]byte{2}, Partitions: 4}
	same := topicFacts{RawID: [16]byte{1}, LedgerID: [16]byte{2}, Partitions: 4}
	if err := refuse("g", row, same); err != nil {
		t.Errorf("refuse(same) = %v, want nil", err)
	}
	if err := refuse("g", commit.OwnerRow{Partition: part(0)}, same); err != nil {
		t.Errorf("refuse(never owned) = %v, want nil", err)
	}
	for want, facts := range map[string]topicFacts{
		"deleted and made again": {RawID: [16]byte{9}, LedgerID: [16]byte{2}, Partitions: 4},
		"partition reset --yes":  {RawID: [16]byte{1}, LedgerID: [16]byte{2}, Partitions: 6},
		"partition ledger --acc": {RawID: [16]byte{1}, LedgerID: [16]byte{9}, Partitions: 4},
	} {
		var refused *commit.RefusedError
		if err := refuse("g", row, facts); !errors.As(err, &refused) || !strings.Contains(err.Error(), want) {
			t.Errorf("refuse = %v, want a RefusedError about %q", err, want)
		}
	}
}

// A member that does not exist has no generation: lanes must not send an empty id (X7 of the publisher, H16).
func TestMembershipWithoutClient(t *testing.T) {
	var m Membership
	if id, generation := m.Generation(); id != "" || generation != -1 {
		t.Errorf("Generation() = %q, %d, want none", id, generation)
	}
}

// A9: a full solver loses no job, and a job that waits in line is not put there again by its resend.
func TestSolverWithoutRoom(t *testing.T) {
	bubble(t, 1, func(r *rig) {
		t := r.t
		tight := &tightSolver{room: 2}
		p := r.start("one", func(_ *Config, d *Deps) { d.Solver = tight })
		for i := range 30 {
			r.produce(0, fmt.Sprintf("k%d=v", i))
		}
		r.eventually("outputs", func() bool { return len(r.broker.Values()) == 30 })
		time.Sleep(15 * time.Second) // what stands in line twice would be given now
		if err := p.stop(); err != nil {
			t.Error(err)
		}
		if tight.refused == 0 {
			t.Error("the solver never was full: the test shows nothing")
		}
		// What is being solved when its resend comes is given twice, two at each of two deadlines; what waits in line is not.
		if got, most := tight.total(), 30+2*2; got > most {
			t.Errorf("%d jobs were given, want at most %d", got, most)
		}
		r.eventually("the solver has finished", func() bool { return tight.idle() })
	})
}

// tightSolver takes a few jobs at a time and needs half a second for each: the last ones wait beyond the machine's resend.
type tightSolver struct {
	mu      sync.Mutex
	room    int
	refused int
	given   int
}

func (s *tightSolver) total() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.given
}

func (s *tightSolver) idle() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.room == 2
}

func (s *tightSolver) Submit(job partition.Dispatch, done func(partition.Decision, error)) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.room == 0 {
		s.refused++
		return false
	}
	s.room--
	s.given++
	go func() {
		sleep(context.Background(), 500*time.Millisecond)
		s.mu.Lock()
		s.room++
		s.mu.Unlock()
		done(partition.Decision{Kind: partition.Solved, Answer: job.Request}, nil)
	}()
	return true
}
