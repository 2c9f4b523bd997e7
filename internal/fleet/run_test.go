package fleet_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"milepost/internal/commit"
	"milepost/internal/fleet"
	"milepost/internal/mapmatch"
	"milepost/internal/partition"
	"milepost/internal/roadnet"
	"milepost/internal/roadnet/roadnettest"
	"milepost/internal/stream"
)

// F21, I16, A11, L2: however a vehicle's waiting observations are parted into jobs, each one's output is the same, byte for byte, and so is
// the state wherever a commit ends: with trips that the solver keeps and without, over every kind of decision and reset.
func TestRunsAreIdentical(t *testing.T) {
	long := roadnettest.Parse(t, longRoad)
	other := roadnettest.Parse(t, longRoad+"; X(0,500)-Y(900,500)").Graph
	border := "version = 3\n" + region("west", westCell, "") + region("east", eastCell, "")
	straight := roadnettest.Parse(t, roads)
	for _, c := range []struct {
		name  string
		w     *fleet.Workload
		maps  []*roadnet.Graph
		drive []mapmatch.Observation
		kinds []string // that must be among the events
	}{
		{
			"one map", workload(t, config(), fleet.MapOf(straight.Graph)),
			[]*roadnet.Graph{straight.Graph},
			eventful(straight),
			[]string{fleet.Matched, fleet.Standing, fleet.OffRoad, fleet.Outlier, fleet.TerminalRegression, fleet.TerminalUnsupported, fleet.ResetGap, fleet.ResetTeleport, fleet.ResetOffRoad},
		},
		{
			"over a border", regionWorkload(t, border, []*roadnet.Graph{long.Graph, other}),
			[]*roadnet.Graph{long.Graph, other},
			toAndFro(long),
			[]string{fleet.Matched, fleet.ResetGraphChange},
		},
		{
			"over a border on one graph", regionWorkload(t, border, []*roadnet.Graph{long.Graph, long.Graph}),
			[]*roadnet.Graph{long.Graph},
			toAndFro(long),
			[]string{fleet.Matched},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			want := newCaughtUp(t, c.w, c.maps, c.drive, 1, false)
			if want.commits != len(c.drive) || len(want.outputs) != len(c.drive) {
				t.Fatalf("one by one: %d commits, %d outputs of %d observations", want.commits, len(want.outputs), len(c.drive))
			}
			for _, kind := range c.kinds {
				if want.kinds[kind] == 0 {
					t.Errorf("no observation is %s: the test shows nothing of it: %v", kind, want.kinds)
				}
			}
			for _, run := range []int{2, 3, 7, 16, 64} {
				for _, sticky := range []bool{false, true} {
					got := newCaughtUp(t, c.w, c.maps, c.drive, run, sticky)
					if got.commits >= want.commits*2/3 {
						t.Errorf("runs of %d: %d commits of %d observations: too few of several", run, got.commits, len(c.drive))
					}
					if sticky && got.short == 0 && run < 16 {
						t.Errorf("runs of %d: no request went without its trip", run)
					}
					if diff := cmp.Diff(want.outputs, got.outputs); diff != "" {
						t.Fatalf("runs of %d, sticky %t: outputs (-one by one +in runs):\n%.3000s", run, sticky, diff)
					}
					for offset, state := range got.states {
						if state != want.states[offset] {
							t.Fatalf("runs of %d, sticky %t: the state behind %d differs from the one by one", run, sticky, offset)
						}
					}
				}
			}
		})
	}
}

// caughtUp is what the partition machine made of a vehicle's backlog.
type caughtUp struct {
	t       *testing.T
	m       *partition.Machine
	pools   *fleet.Pools
	sticky  bool
	commits int
	short   int
	outputs []string
	states  map[int64]string
	kinds   map[string]int
}

func newCaughtUp(t *testing.T, w *fleet.Workload, maps []*roadnet.Graph, drive []mapmatch.Observation, run int, sticky bool) *caughtUp {
	t.Helper()
	c := &caughtUp{t: t, sticky: sticky, states: map[int64]string{}, kinds: map[string]int{}}
	var err error
	c.pools, err = fleet.NewPools(fleet.PoolsConfig{
		Solvers: 1, Queue: 16, Linger: time.Hour, Matcher: mapmatch.DefaultConfig(), Trips: fleet.NewTrips(1 << 20),
	})
	if err == nil {
		err = c.pools.Use(maps, epoch())
	}
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1) // capacity: the one answer of Run
	go func() { ended <- c.pools.Run(ctx) }()
	cfg := partition.DefaultConfig()
	cfg.Run, cfg.KeyQueue = run, len(drive)
	at := stream.Partition{Topic: "raw", Number: 3}
	c.m = partition.New(cfg, w, partition.Start{
		Tenure:   commit.NewTenure(commit.Ownership{Group: "g", Partition: at, TopicGeneration: 2, Epoch: 7}),
		Frontier: stream.Frontier{Next: stream.Revision{Generation: 2}},
	}, epoch())
	in := partition.Arrived{}
	for i, o := range drive {
		in.Records = append(in.Records, stream.Record{
			Partition: at, Offset: int64(2 * i), Timestamp: o.Time, Key: []byte("v1"), Value: fleet.AppendFix(nil, &fleet.Fix{Observation: o}),
		})
	}
	c.play(in)
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	return c
}

// play steps the machine and answers its effects at once.
func (c *caughtUp) play(in partition.Input) {
	c.t.Helper()
	for inputs := []partition.Input{in}; len(inputs) > 0; inputs = inputs[1:] {
		for _, e := range c.m.Step(epoch(), inputs[0]) {
			switch e := e.(type) {
			case partition.Restore:
				inputs = append(inputs, partition.Restored{Keys: e.Keys, Rows: []commit.Restored{{Key: e.Keys[0]}}})
			case partition.Dispatch:
				inputs = append(inputs, c.solve(e))
			case partition.Commit:
				c.commit(&e.Commit)
				inputs = append(inputs, partition.Committed{Key: e.Commit.Key, Revision: e.Commit.Revision, ID: e.Commit.ID, Position: int64(c.commits)})
			case partition.Warn:
				c.t.Fatalf("%s: %v", e.Message, e.Err)
			case partition.Stop:
				c.t.Fatal(e.Cause)
			default:
			}
		}
	}
}

func (c *caughtUp) solve(e partition.Dispatch) partition.Result {
	c.t.Helper()
	in := partition.Result{Job: e.Job, Key: e.Key, Revision: e.Revision}
	if c.sticky {
		in.Replica = "r1"
	}
	if e.Replica != "" {
		c.short++
	}
	var err error
	if in.Decision, err = solve(c.t, c.pools, e.Request); err != nil {
		c.t.Fatalf("solve %s: %v", e.Revision, err)
	}
	return in
}

func (c *caughtUp) commit(made *commit.Commit) {
	c.t.Helper()
	c.commits++
	c.states[made.Revision.Offset] = fmt.Sprintf("segment %d %x", made.Next.Segment, made.Next.State)
	if len(made.Outputs) != len(made.Offsets()) {
		c.t.Fatalf("commit of %v has %d outputs", made.Offsets(), len(made.Outputs))
	}
	for _, o := range made.Outputs {
		event, err := fleet.DecodeEvent(o.Value)
		if err != nil {
			c.t.Fatal(err)
		}
		c.kinds[event.Disposition]++
		c.kinds[reasonOf(event)]++
		c.outputs = append(c.outputs, fmt.Sprintf("%s %s %q %s", o.Topic, o.Key, o.Headers, o.Value))
	}
}

// eventful is a drive on which everything happens, at times several times in a row.
func eventful(m *roadnettest.Map) []mapmatch.Observation {
	var drive []mapmatch.Observation
	rng := rand.New(rand.NewPCG(21, 64))
	now, x := 0.0, 100.0
	see := func(s, x, y float64) {
		drive = append(drive, mapmatch.Observation{Time: seconds(s), Point: m.Point(x, y), AccuracyM: 5, SpeedMPS: math.NaN(), Heading: math.NaN()})
	}
	along := func(n int) {
		for range n {
			now, x = now+10, x+20+60*rng.Float64()
			see(now, x, 8*rng.Float64()-4)
		}
	}
	for range 4 {
		along(9)
		for range 3 { // the clock goes back
			see(now-30, x, 3)
		}
		along(2)
		for range 4 { // it stands
			now += 10
			see(now, x, 2)
		}
		along(5)
		now++
		see(now, x+1500, 3) // nobody is so fast
		along(7)
		for i := range 3 { // outside of the map
			now += 10
			see(now, x, 60_000+float64(i))
		}
		see(now-5, x, 60_000) // and back in time there
		along(6)
		now += 3000 // a gap
		along(4)
		for i := range 8 { // off the road
			now += 10
			see(now, x+40*float64(i), 700)
		}
		along(5)
		now += 60 // to the other road and back: too far for the time
		see(now, x, 30_000)
		now += 10
		see(now, x+50, 30_000)
		now += 60
		along(3)
	}
	return drive
}

// toAndFro drives over the border between the regions and back.
func toAndFro(m *roadnettest.Map) []mapmatch.Observation {
	var drive []mapmatch.Observation
	for i := range 60 {
		x := 9000 + 150*float64(i)
		if i > 30 {
			x = 9000 + 150*float64(60-i)
		}
		drive = append(drive, mapmatch.Observation{Time: seconds(10 * float64(i)), Point: m.Point(x, 3), AccuracyM: 5, SpeedMPS: math.NaN(), Heading: math.NaN()})
	}
	return drive
}
