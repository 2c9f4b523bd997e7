package consumer

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kadm"
	"go.uber.org/goleak"

	"milepost/internal/commit"
	"milepost/internal/stream"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A2, A14, A15: records flow from the first offset; a graceful stop drains, saves the frontier, commits the group's
// offset, releases the partitions and returns nil.
func TestGracefulStop(t *testing.T) {
	onProtocols(t, 2, func(r *rig) {
		t := r.t
		r.produce(0, numbered("a", 0, 50)...)
		r.produce(1, numbered("b", 0, 30)...)
		p := r.start("one")
		r.eventually("all outputs", func() bool { return len(r.broker.Values()) == 80 })
		if err := p.Ready(); err != nil {
			t.Errorf("Ready() = %v, want nil", err)
		}
		if err := p.stop(); err != nil {
			t.Fatalf("Run = %v, want nil", err)
		}
		if diff := cmp.Diff(numbered("a", 0, 50), r.values("a")); diff != "" {
			t.Errorf("outputs of a (-want +got):\n%s", diff)
		}
		for n, want := range map[int32]int64{0: 50, 1: 30} {
			if got := r.frontier(n); got != want {
				t.Errorf("frontier of %d = %d, want %d", n, got, want)
			}
			if !r.released(n) {
				t.Errorf("partition %d is not released", n)
			}
			if got := r.groupOffset(n); got != want {
				t.Errorf("group offset of %d = %d, want %d", n, got, want)
			}
		}
		for key, row := range r.store.Checkpoints(groupName, part(0)) {
			if row.Prepared != nil {
				t.Errorf("key %s was left prepared", key)
			}
		}
	})
}

// P10, P30, A2: a restart goes on exactly at the frontier, also when the group's offsets are gone.
func TestRestartAtFrontier(t *testing.T) {
	onProtocols(t, 1, func(r *rig) {
		t := r.t
		r.produce(0, numbered("a", 0, 20)...)
		p := r.start("one")
		r.eventually("outputs", func() bool { return len(r.broker.Values()) == 20 })
		if err := p.stop(); err != nil {
			t.Fatal(err)
		}
		if _, err := r.admin.DeleteGroups(t.Context(), groupName); err != nil {
			t.Fatal(err)
		}
		r.produce(0, numbered("a", 20, 20)...)
		// Latest would lose everything produced meanwhile, if the policy were asked.
		p = r.start("two", func(c *Config, _ *Deps) { c.Start = StartLatest })
		r.eventually("outputs", func() bool { return len(r.broker.Values()) == 40 })
		if diff := cmp.Diff(numbered("a", 0, 40), r.values("a")); diff != "" {
			t.Errorf("outputs (-want +got):\n%s", diff)
		}
		if got := p.formers.names(); len(got) != 0 {
			t.Errorf("lanes initialised = %v, want none: the former owner had released", got)
		}
		if err := p.stop(); err != nil {
			t.Fatal(err)
		}
		if got, want := r.epoch(0), stream.Epoch(2); got != want {
			t.Errorf("epoch = %d, want %d", got, want)
		}
	})
}

// Design 3, H7: a first start goes on at the group's committed offset; without one at earliest or latest.
func TestFirstStart(t *testing.T) {
	for _, tc := range []struct {
		name      string
		policy    StartPolicy
		committed int64
		want      int64
	}{
		{"earliest", StartEarliest, -1, 0},
		{"latest", StartLatest, -1, 10},
		{"committed", StartEarliest, 4, 4},
		{"committed beats latest", StartLatest, 4, 4},
	} {
		t.Run(tc.name, func(t *testing.T) {
			onProtocols(t, 1, func(r *rig) {
				t := r.t
				r.produce(0, numbered("a", 0, 10)...)
				if tc.committed >= 0 {
					var os kadm.Offsets
					os.AddOffset(rawTopic, 0, tc.committed, -1)
					if err := r.admin.CommitAllOffsets(t.Context(), groupName, os); err != nil {
						t.Fatal(err)
					}
				}
				p := r.start("one", func(c *Config, _ *Deps) { c.Start = tc.policy })
				r.eventually("running", p.running(1))
				_, start, _ := r.store.Owner(groupName, part(0))
				// Written by the acquisition itself, before any record.
				if got := start.Frontier.Next; got != (stream.Revision{Generation: 1, Offset: tc.want}) && got.Offset < tc.want {
					t.Errorf("frontier = %v, want offset %d", got, tc.want)
				}
				r.produce(0, "a=10")
				want := numbered("a", int(tc.want), 11-int(tc.want))
				r.eventually("outputs", func() bool { return len(r.values("a")) == len(want) })
				if diff := cmp.Diff(want, r.values("a")); diff != "" {
					t.Errorf("outputs (-want +got):\n%s", diff)
				}
				if err := p.stop(); err != nil {
					t.Fatal(err)
				}
			})
		})
	}
}

// P5, P7, A15: a second process takes over some partitions; the first drains and releases them; nothing is lost or
// repeated, and the partitions that stay are not acquired again.
func TestCooperativeHandover(t *testing.T) {
	onProtocols(t, 4, func(r *rig) {
		t := r.t
		p1 := r.start("one")
		r.eventually("one has all", p1.running(4))
		stopProducing := make(chan struct{})
		produced := make(chan int)
		go func() {
			n := 0
			for ; ; n++ {
				select {
				case <-stopProducing:
					produced <- n
					return
				case <-time.After(3 * time.Millisecond):
				}
				for q := range int32(4) {
					r.produce(q, numbered("k"+string('0'+q), n, 1)...)
				}
			}
		}()
		p2 := r.start("two")
		r.eventually("two has its half", p2.running(2))
		r.eventually("one keeps its half", p1.running(2))
		time.Sleep(time.Second)
		close(stopProducing)
		n := <-produced
		r.eventually("all outputs", func() bool { return len(r.broker.Values()) >= 4*n })
		for q := range int32(4) {
			key := "k" + string('0'+q)
			if diff := cmp.Diff(numbered(key, 0, n), r.values(key)); diff != "" {
				t.Errorf("outputs of %s (-want +got):\n%s", key, diff)
			}
		}
		for _, st := range p1.Status() {
			if st.Epoch != 1 {
				t.Errorf("partition %d stayed and has epoch %d, want 1", st.Partition.Number, st.Epoch)
			}
		}
		for _, st := range p2.Status() {
			if st.Epoch != 2 {
				t.Errorf("partition %d moved and has epoch %d, want 2", st.Partition.Number, st.Epoch)
			}
		}
		if got := p2.formers.names(); len(got) != 0 {
			t.Errorf("lanes initialised = %v, want none: the former owner had released", got)
		}
		for _, p := range []*process{p1, p2} {
			if err := p.stop(); err != nil {
				t.Error(err)
			}
		}
	})
}

// P8: the row's epoch is raised by hand under a live worker: it acquires again as a new tenure and nothing is lost.
func TestFencedByHand(t *testing.T) {
	onProtocols(t, 1, func(r *rig) {
		t := r.t
		r.produce(0, numbered("a", 0, 10)...)
		p := r.start("one")
		r.eventually("outputs", func() bool { return len(r.values("a")) == 10 })
		r.steal(0)
		r.produce(0, numbered("a", 10, 10)...)
		r.eventually("outputs", func() bool { return len(r.values("a")) >= 20 })
		if diff := cmp.Diff(numbered("a", 0, 20), r.values("a")); diff != "" {
			t.Errorf("outputs (-want +got):\n%s", diff)
		}
		if got, want := r.epoch(0), stream.Epoch(3); got != want {
			t.Errorf("epoch = %d, want %d", got, want)
		}
		// The thief never released: its lanes were initialised before the first record.
		if got, want := p.formers.names(), []string{"raw.thief.1"}; !slices.Equal(got, want) {
			t.Errorf("lanes initialised = %v, want %v", got, want)
		}
		if err := p.stop(); err != nil {
			t.Error(err)
		}
	})
}

// P31: a topic that was deleted and made again is refused by name of the remedy, and no row is touched.
func TestRefusesRecreatedTopic(t *testing.T) {
	onProtocols(t, 1, func(r *rig) {
		t := r.t
		r.produce(0, numbered("a", 0, 5)...)
		p := r.start("one")
		r.eventually("outputs", func() bool { return len(r.values("a")) == 5 })
		if err := p.stop(); err != nil {
			t.Fatal(err)
		}
		if _, err := r.admin.DeleteTopics(t.Context(), rawTopic); err != nil {
			t.Fatal(err)
		}
		if _, err := r.admin.CreateTopics(t.Context(), 1, 1, nil, rawTopic); err != nil {
			t.Fatal(err)
		}
		before, _, _ := r.store.Owner(groupName, part(0))
		p = r.start("two")
		err := <-p.done
		if _, refused := errors.AsType[*commit.RefusedError](err); !refused {
			t.Fatalf("Run = %v, want a RefusedError", err)
		}
		if after, _, _ := r.store.Owner(groupName, part(0)); after != before {
			t.Errorf("row = %+v, want it untouched: %+v", after, before)
		}
		if got, want := r.frontier(0), int64(5); got != want {
			t.Errorf("frontier = %d, want %d", got, want)
		}
	})
}
