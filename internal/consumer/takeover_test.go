package consumer

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"milepost/internal/commit"
	"milepost/internal/stream"
)

// exact checks that a key's outputs are exactly its observations, each once and in order.
func (r *rig) exact(key string, n int) {
	r.t.Helper()
	if diff := cmp.Diff(numbered(key, 0, n), r.values(key)); diff != "" {
		r.t.Errorf("outputs of %s (-want +got):\n%s", key, diff)
	}
}

// P13, P11, P15: partitions go and come back a hundred times with work in flight; every record is done once.
func TestAssignRevokeCycles(t *testing.T) {
	onProtocols(t, 2, func(r *rig) {
		t := r.t
		p := r.start("one")
		r.eventually("running", p.running(2))
		n := 0
		for range 100 {
			// Another member takes one partition and leaves at once, doing nothing.
			other := r.idler()
			for q := range int32(2) {
				r.produce(q, numbered("k"+string('0'+q), n, 5)...)
			}
			n += 5
			r.eventually("a partition has moved", p.running(1))
			other.Close()
			r.eventually("both are back", p.running(2))
		}
		r.eventually("all outputs", func() bool { return len(r.broker.Values()) >= 2*n })
		r.exact("k0", n)
		r.exact("k1", n)
		if err := p.stop(); err != nil {
			t.Error(err)
		}
	})
}

// H1: the group forgets the member without its noticing; franz-go joins again under another member id, without OnPartitionsLost.
// The tenures of the old id end, and the partitions are acquired as new ones.
func TestSilentRejoinEndsTenures(t *testing.T) {
	bubble(t, 2, func(r *rig) {
		t := r.t
		var lost atomic.Int32
		p := r.start("one", func(_ *Config, d *Deps) {
			d.Observer.Ended = func(_ stream.Partition, _ stream.Epoch, released bool, cause error, _ commitReport) {
				if cause != nil && !released && strings.Contains(cause.Error(), "another member id") {
					lost.Add(1)
				}
			}
		})
		r.eventually("running", p.running(2))
		r.produce(0, numbered("a", 0, 10)...)
		r.eventually("outputs", func() bool { return len(r.values("a")) == 10 })
		member, _ := p.deps.Membership.Generation()

		// The next heartbeat says "rebalance", and before the member joins again the group has thrown it out.
		r.cluster.ControlKey(int16(kmsg.Heartbeat), func(req kmsg.Request) (kmsg.Response, error, bool) {
			resp := req.ResponseKind().(*kmsg.HeartbeatResponse)
			resp.ErrorCode = kerr.RebalanceInProgress.Code
			return resp, nil, true
		})
		r.cluster.ControlKey(int16(kmsg.JoinGroup), func(req kmsg.Request) (kmsg.Response, error, bool) {
			resp := req.ResponseKind().(*kmsg.JoinGroupResponse)
			resp.ErrorCode = kerr.UnknownMemberID.Code
			return resp, nil, true
		})
		leave := kmsg.NewPtrLeaveGroupRequest()
		leave.Group = groupName
		leave.MemberID = member
		gone := kmsg.NewLeaveGroupRequestMember()
		gone.MemberID = member
		leave.Members = append(leave.Members, gone)
		r.eventually("another member id", func() bool {
			now, _ := p.deps.Membership.Generation()
			if now == member {
				return false
			}
			_, err := leave.RequestWith(t.Context(), r.client)
			return err == nil
		})
		r.produce(0, numbered("a", 10, 10)...)
		r.eventually("outputs under the new id", func() bool { return len(r.values("a")) >= 20 })
		r.exact("a", 20)
		if got, want := lost.Load(), int32(2); got != want {
			t.Errorf("%d tenures ended for the member id, want %d", got, want)
		}
		if got, want := r.epoch(0), stream.Epoch(2); got != want {
			t.Errorf("epoch = %d, want %d", got, want)
		}
		if err := p.stop(); err != nil {
			t.Error(err)
		}
	})
}

// P1, P2, H1: a process is cut off from the broker beyond its session; another takes over and goes on; the first comes back
// and repeats nothing. Its lanes were initialised, for it had not released.
func TestZombieComesBack(t *testing.T) {
	onProtocols(t, 1, func(r *rig) {
		t := r.t
		zombie := r.start("zombie")
		r.eventually("running", zombie.running(1))
		r.produce(0, numbered("a", 0, 10)...)
		r.eventually("outputs", func() bool { return len(r.values("a")) == 10 })
		zombie.away.set(true)
		heir := r.start("heir")
		r.produce(0, numbered("a", 10, 10)...)
		r.eventually("the heir has it", heir.running(1))
		r.eventually("outputs", func() bool { return len(r.values("a")) >= 20 })
		zombie.away.set(false)
		r.produce(0, numbered("a", 20, 10)...)
		time.Sleep(time.Minute)
		r.eventually("outputs", func() bool { return len(r.values("a")) >= 30 })
		r.exact("a", 30)
		if !slices.Contains(heir.formers.names(), "raw.zombie.2") {
			t.Errorf("lanes initialised = %v, want the zombie's two", heir.formers.names())
		}
		for _, p := range []*process{zombie, heir} {
			if err := p.stop(); err != nil {
				t.Error(err)
			}
		}
	})
}

// P29, F7, F16: a frontier that retention has overtaken stops its partition with both offsets named; the other one goes on.
func TestRetentionOvertakes(t *testing.T) {
	for _, live := range []bool{false, true} {
		name := map[bool]string{false: "while away", true: "while fetching"}[live]
		t.Run(name, func(t *testing.T) {
			onProtocols(t, 2, func(r *rig) {
				t := r.t
				p := r.start("one")
				r.eventually("running", p.running(2))
				r.produce(0, numbered("a", 0, 10)...)
				r.produce(1, numbered("b", 0, 10)...)
				r.eventually("outputs", func() bool { return len(r.broker.Values()) == 20 })
				var hold *kfake.FaultHandle
				if live {
					hold = r.cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Fetch}, Topic: rawTopic, Err: kerr.NotLeaderForPartition, Count: -1})
				} else if err := p.stop(); err != nil {
					t.Fatal(err)
				}
				time.Sleep(2 * time.Second) // a fetch that was on its way ends
				r.produce(0, numbered("a", 10, 10)...)
				at := r.offsets(0, 15)
				if _, err := r.admin.DeleteRecords(t.Context(), at); err != nil {
					t.Fatal(err)
				}
				if live {
					hold.Remove()
				} else {
					p = r.start("two")
				}
				r.produce(1, numbered("b", 10, 10)...)
				r.eventually("the partition has stopped", func() bool {
					st := p.Status()
					var outside *RangeError
					return len(st) == 2 && errors.As(st[0].Err, &outside) && outside.LogStart == 15 && outside.Frontier == 10
				})
				if !p.log.has("the log starts at offset 15, the frontier is 10") {
					t.Error("no log line names both offsets")
				}
				r.eventually("the other goes on", func() bool { return len(r.values("b")) == 20 })
				if got, want := len(r.values("a")), 10; got != want {
					t.Errorf("%d outputs of the stopped partition, want %d: nothing was skipped silently", got, want)
				}
				if p.Ready() == nil {
					t.Error("Ready() = nil, want the stopped partition named")
				}
				if err := p.stop(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// A15, P16: commits hang; a revocation returns within its bound, the partition stays unreleased, and its next owner initialises the
// lanes and repeats nothing.
func TestDrainBound(t *testing.T) {
	onProtocols(t, 1, func(r *rig) {
		t := r.t
		gate := make(chan struct{})
		r.broker.Gate = func(ctx context.Context, _ int, _ []commit.Commit) error {
			select {
			case <-gate:
				return nil
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
		p := r.start("one", func(c *Config, _ *Deps) { c.DrainGrace = 2 * time.Second })
		r.eventually("running", p.running(1))
		r.produce(0, numbered("a", 0, 5)...)
		r.eventually("prepared", func() bool {
			return r.store.Checkpoints(groupName, part(0))["a"].Prepared != nil
		})
		began := time.Now()
		err := p.stop()
		if took, most := time.Since(began), 8*time.Second; took > most {
			t.Errorf("the stop took %s, want at most %s", took, most)
		}
		if !errors.Is(err, ErrUnreleased) {
			t.Errorf("Run = %v, want the partition unreleased", err)
		}
		if r.released(0) {
			t.Error("the partition is released although a transaction is unknown")
		}
		close(gate)
		p = r.start("two")
		r.eventually("outputs", func() bool { return len(r.values("a")) >= 5 })
		r.exact("a", 5)
		if got, want := p.formers.names(), []string{"raw.one.2"}; !slices.Equal(got, want) {
			t.Errorf("lanes initialised = %v, want %v", got, want)
		}
		if err := p.stop(); err != nil {
			t.Error(err)
		}
	})
}

// A15: a fence met in a drain is reported as ownership lost, never as a clean end.
func TestFencedDuringDrain(t *testing.T) {
	onProtocols(t, 1, func(r *rig) {
		t := r.t
		p := r.start("one")
		r.eventually("running", p.running(1))
		r.produce(0, numbered("a", 0, 5)...)
		r.eventually("outputs", func() bool { return len(r.values("a")) == 5 })
		r.steal(0)
		err := p.stop()
		var fenced *commit.FencedError
		if !errors.As(err, &fenced) || fenced.Held != 1 || fenced.Partition != part(0) {
			t.Errorf("Run = %v, want a FencedError of partition 0 and epoch 1", err)
		}
		if r.released(0) {
			t.Error("the thief's row was released")
		}
	})
}

// A15, F27: database and broker away at the start and in the middle: the process says so, waits and goes on; nothing is lost.
func TestOutages(t *testing.T) {
	onProtocols(t, 1, func(r *rig) {
		t := r.t
		var down atomic.Bool
		down.Store(true)
		r.store.Fault = func(string, bool) error {
			if down.Load() {
				return errors.New("the database is away")
			}
			return nil
		}
		r.produce(0, numbered("a", 0, 10)...)
		p := r.start("one")
		r.eventually("it says so", func() bool { return p.log.has("the database is away") })
		if p.Ready() == nil {
			t.Error("Ready() = nil while the database is away")
		}
		down.Store(false)
		r.eventually("outputs", func() bool { return len(r.values("a")) == 10 })

		down.Store(true)
		r.produce(0, numbered("a", 10, 10)...)
		time.Sleep(30 * time.Second)
		down.Store(false)
		r.eventually("outputs", func() bool { return len(r.values("a")) >= 20 })

		p.away.set(true)
		r.produce(0, numbered("a", 20, 10)...)
		time.Sleep(30 * time.Second)
		p.away.set(false)
		r.eventually("outputs", func() bool { return len(r.values("a")) >= 30 })
		r.exact("a", 30)
		if err := p.stop(); err != nil {
			t.Error(err)
		}
	})
}

// H15a: what cannot be acquired for long makes the process leave the group, so that another may try, and join again.
func TestGivesUpAndJoinsAgain(t *testing.T) {
	onProtocols(t, 1, func(r *rig) {
		t := r.t
		var down atomic.Bool
		down.Store(true)
		r.store.Fault = func(string, bool) error {
			if down.Load() {
				return errors.New("the database is away")
			}
			return nil
		}
		p := r.start("one", func(c *Config, _ *Deps) { c.AcquireGiveUp = time.Minute })
		r.eventually("it left the group", func() bool { return p.log.has("left the group; joining again") })
		down.Store(false)
		r.produce(0, "a=0")
		r.eventually("outputs", func() bool { return len(r.values("a")) == 1 })
		if err := p.stop(); err != nil {
			t.Error(err)
		}
	})
}

// Acquisition, step 4: a row that another acquirer moved between proof and swap is read again, not failed.
func TestSwapRace(t *testing.T) {
	onProtocols(t, 1, func(r *rig) {
		t := r.t
		var once atomic.Bool
		r.store.Fault = func(op string, done bool) error {
			if op == "acquire" && !done && once.CompareAndSwap(false, true) {
				r.steal(0)
			}
			return nil
		}
		r.produce(0, "a=0")
		p := r.start("one")
		r.eventually("outputs", func() bool { return len(r.values("a")) == 1 })
		if got, want := r.epoch(0), stream.Epoch(2); got != want {
			t.Errorf("epoch = %d, want %d", got, want)
		}
		if err := p.stop(); err != nil {
			t.Error(err)
		}
	})
}

// Acquisition, step 3: when the group refuses the proof, nothing is swapped.
func TestProofRefused(t *testing.T) {
	for _, refusal := range []*kerr.Error{kerr.UnknownMemberID, kerr.IllegalGeneration} {
		t.Run(refusal.Message, func(t *testing.T) {
			bubble(t, 1, func(r *rig) {
				t := r.t
				handle := r.cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Heartbeat}, Group: groupName, Err: refusal, Count: 3})
				p := r.start("one")
				r.eventually("the proof was refused", func() bool { return handle.Hits() > 0 && p.log.has("the group refuses member") })
				r.produce(0, "a=0")
				r.eventually("outputs", func() bool { return len(r.values("a")) == 1 })
				if got, want := r.epoch(0), stream.Epoch(1); got != want {
					t.Errorf("epoch = %d, want %d: a refused proof swaps nothing", got, want)
				}
				if err := p.stop(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// P39, P33: the group's offset of a quiet partition follows the frontier without a transaction or a stop.
func TestIdleHint(t *testing.T) {
	onProtocols(t, 1, func(r *rig) {
		t := r.t
		p := r.start("one")
		r.produce(0, numbered("a", 0, 7)...)
		r.eventually("the group's offset", func() bool { return r.groupOffset(0) == 7 })
		// And after an outage in which the hint itself failed.
		r.produce(0, numbered("a", 7, 3)...)
		r.eventually("outputs", func() bool { return len(r.values("a")) == 10 })
		p.away.set(true)
		time.Sleep(4 * p.cfg.HintInterval)
		p.away.set(false)
		r.eventually("the group's offset", func() bool { return r.groupOffset(0) == 10 })
		if err := p.stop(); err != nil {
			t.Error(err)
		}
	})
}

// H2, G5: fenced while a transaction of its own is under way: the new tenure of the same process waits until that is settled,
// and what it published is not published again.
func TestSettlesOwnOlderTenure(t *testing.T) {
	onProtocols(t, 1, func(r *rig) {
		t := r.t
		gate := make(chan struct{})
		held := make(chan struct{}, 1)
		r.broker.Gate = func(context.Context, int, []commit.Commit) error {
			select {
			case held <- struct{}{}: // the first transaction: past its last check, not yet committed
				<-gate
			default:
			}
			return nil
		}
		p := r.start("one")
		r.eventually("running", p.running(1))
		r.produce(0, "a=0")
		r.eventually("a transaction is under way", func() bool { return len(held) == 1 })
		r.steal(0)
		r.eventually("fenced", func() bool { return p.log.has("fenced while assigned") })
		time.Sleep(20 * time.Second)
		close(gate)
		r.produce(0, "a=1")
		r.eventually("outputs", func() bool { return len(r.values("a")) >= 2 })
		r.exact("a", 2)
		if err := p.stop(); err != nil {
			t.Error(err)
		}
	})
}

// H1, H15b: between a silent join and the callback that says what this process still has, a due retry must not acquire: the
// new member id is current, but the assignment is the old one's.
func TestNoRetryBeforeCallback(t *testing.T) {
	bubble(t, 1, func(r *rig) {
		t := r.t
		var down atomic.Bool
		down.Store(true)
		r.store.Fault = func(string, bool) error {
			if down.Load() {
				return errors.New("the database is away")
			}
			return nil
		}
		p := r.start("one")
		r.eventually("acquisition fails", func() bool { return p.log.has("the database is away") })
		member, _ := p.deps.Membership.Generation()
		synced := make(chan struct{})
		r.cluster.ControlKey(int16(kmsg.Heartbeat), func(req kmsg.Request) (kmsg.Response, error, bool) {
			resp := req.ResponseKind().(*kmsg.HeartbeatResponse)
			resp.ErrorCode = kerr.RebalanceInProgress.Code
			return resp, nil, true
		})
		r.cluster.ControlKey(int16(kmsg.SyncGroup), func(kmsg.Request) (kmsg.Response, error, bool) {
			r.cluster.SleepControl(func() { <-synced })
			return nil, nil, false
		})
		r.evict(member)
		r.eventually("joined under another id", func() bool {
			now, generation := p.deps.Membership.Generation()
			return now != member && now != "" && generation > 1
		})
		down.Store(false)
		time.Sleep(8 * time.Second)
		if got := r.epoch(0); got != 0 {
			t.Errorf("epoch = %d, want 0: no callback has said that the partition is this member's", got)
		}
		close(synced)
		r.produce(0, "a=0")
		r.eventually("outputs", func() bool { return len(r.values("a")) == 1 })
		if err := p.stop(); err != nil {
			t.Error(err)
		}
	})
}
