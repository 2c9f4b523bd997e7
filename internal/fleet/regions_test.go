package fleet_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"

	"milepost/internal/fleet"
	"milepost/internal/fleet/catalog"
	"milepost/internal/mapmatch"
	"milepost/internal/partition"
	"milepost/internal/roadnet"
	"milepost/internal/roadnet/roadnettest"
	"milepost/internal/wire"
)

// A road of 27 km; the cells' border is 10.5 km from its start: u0w3 is west of it, u0w9 east.
const longRoad = `A(0,0)-B(9000,0)-C(18000,0)-D(27000,0)`

// regional is a drive on several graphs, with pools of its own.
type regional struct {
	*drive
	pools *fleet.Pools
}

func newRegional(t *testing.T) *regional {
	t.Helper()
	r := &regional{drive: newDrive(t, config())}
	r.m = roadnettest.Parse(t, longRoad)
	r.pools = startPools(t, time.Hour)
	return r
}

func startPools(t *testing.T, linger time.Duration) *fleet.Pools {
	t.Helper()
	p, err := fleet.NewPools(fleet.PoolsConfig{Solvers: 1, Queue: 16, Linger: linger, Matcher: mapmatch.DefaultConfig()})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	var done sync.WaitGroup
	done.Go(func() {
		if err := p.Run(ctx); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() { stop(); done.Wait() })
	return p
}

// rule brings a catalog into force, with a graph for each of its regions.
func (r *regional) rule(text string, graphs ...*roadnet.Graph) {
	r.t.Helper()
	r.w = regionWorkload(r.t, text, graphs)
	if err := r.pools.Use(graphs, time.Now()); err != nil {
		r.t.Fatal(err)
	}
}

func regionWorkload(t *testing.T, text string, graphs []*roadnet.Graph) *fleet.Workload {
	t.Helper()
	c, err := catalog.Parse("test.toml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	var maps []fleet.Map
	for _, g := range graphs {
		maps = append(maps, fleet.MapOf(g))
	}
	a, err := fleet.NewAtlas(c, maps)
	if err != nil {
		t.Fatal(err)
	}
	w, err := fleet.New(config(), a)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// solve sends a request to its pool and waits.
func solve(t *testing.T, p *fleet.Pools, request []byte) (partition.Decision, error) {
	t.Helper()
	type answer struct {
		d   partition.Decision
		err error
	}
	got := make(chan answer, 1)
	if !p.Submit(request, func(d partition.Decision, err error) { got <- answer{d, err} }) {
		t.Fatal("the pool is full")
	}
	a := <-got
	return a.d, a.err
}

// at drives to a place and gives the region that was asked for, empty where the workload decided by itself.
func (r *regional) at(s, x, y float64) (fleet.Event, string) {
	r.t.Helper()
	o := r.observe(s, x, y)
	opening := r.w.Open(r.key, o)
	if opening.Local != nil {
		return r.commit(o, *opening.Local), ""
	}
	d, err := solve(r.t, r.pools, opening.Request)
	if err != nil {
		r.t.Fatal(err)
	}
	return r.commit(o, d), opening.Region
}

// pin is where the checkpoint says that the vehicle is served.
func (r *regional) pin() string {
	r.t.Helper()
	s := r.key.Checkpoint.State
	m := &wire.VehicleState{}
	if err := proto.Unmarshal(s[1:len(s)-4], m); err != nil {
		r.t.Fatal(err)
	}
	return fmt.Sprintf("%s@%d on %.2x", m.GetRegion(), m.GetCatalogVersion(), m.GetGraph())
}

func region(id, coverage, overlap string) string {
	return fmt.Sprintf("[[region]]\nid = %q\ngraph = \"g\"\ncoverage = [%s]\noverlap = [%s]\nfreshness_budget = \"2s\"\n", id, coverage, overlap)
}

const (
	westCell = `"u0w3"`
	eastCell = `"u0w9"`
)

// A7: a pin is kept in coverage and overlap; where it ends the cell's owner serves, on its own graph: the stretch behind is final, the next
// begins at its last place, and a consumer of the events alone knows the whole way.
func TestDriveOverTheBorder(t *testing.T) {
	r := newRegional(t)
	west, east := r.m.Graph, roadnettest.Parse(t, longRoad+"; X(0,500)-Y(900,500)").Graph
	r.rule("version = 3\n"+region("west", westCell, eastCell)+region("east", eastCell, ""), west, east)

	// Eastward: the overlap keeps it on the west's graph.
	for i := range 30 {
		if e, region := r.at(10*float64(i), 9000+150*float64(i), 3); e.Reset != nil || region != "west" {
			t.Fatalf("step %d: region %q, event %+v", i, region, e)
		}
	}
	// Another vehicle comes from the east: the border moves it.
	r.key = partition.KeyState{Epoch: 7}
	var track fleet.Track
	resets := 0
	for i := range 30 {
		x := 13000 - 150*float64(i)
		e, region := r.at(1000+10*float64(i), x, 3)
		track.Apply(&e)
		if want := map[bool]string{true: "east", false: "west"}[x > 10488]; region != want {
			t.Fatalf("at %v m: region %q, want %q", x, region, want)
		}
		if e.Reset == nil {
			continue
		}
		resets++
		if reasonOf(e) != fleet.ResetGraphChange || e.Closed == nil || e.Closed.Segment != 1 || e.Retracted != nil || e.Disposition != fleet.Matched {
			t.Errorf("the move: %+v", e)
		}
		if e.Seq == nil || *e.Seq != 1 || len(e.Path) == 0 {
			t.Errorf("the new stretch does not begin at the last place: seq %v, path %v", e.Seq, e.Path)
		}
	}
	if resets != 1 {
		t.Errorf("%d resets, want one", resets)
	}
	d := r.m
	want := []mapmatch.Pair{{Way: d.Way("w1"), From: d.Node("C"), To: d.Node("B")}, {Way: d.Way("w1"), From: d.Node("B"), To: d.Node("A")}}
	// The border is between B and C: that pair is driven in either segment.
	if diff := cmp.Diff(append(want[:1:1], want...), track.Pairs()); diff != "" {
		t.Errorf("driven pairs: %s", diff)
	}
}

// A7, L6: an unserved place is a terminal that keeps pin, trip and watermark; a key without a pin takes the catalog's first region for it;
// a lost state's reset rides on it.
func TestUnservedCell(t *testing.T) {
	r := newRegional(t)
	r.rule("version = 3\n"+region("east", eastCell, "")+region("west", westCell, ""), r.m.Graph, r.m.Graph)
	e, _ := r.at(0, 0, 60_000)
	if e.Disposition != fleet.TerminalUnsupported || e.Reset != nil {
		t.Errorf("never seen: %+v", e)
	}
	first := r.pin()
	if hash := r.m.Graph.Hash(); first != fmt.Sprintf("east@3 on %.2x", hash[:]) {
		t.Errorf("pin of a key without one: %s", first)
	}
	for i := range 5 {
		r.at(10+10*float64(i), 100+150*float64(i), 3)
	}
	pinned := r.pin()
	if e, region := r.at(60, 700, 60_000); e.Disposition != fleet.TerminalUnsupported || e.Reset != nil || region != "" || r.pin() != pinned {
		t.Errorf("off: %+v, region %q, pin %s, was %s", e, region, r.pin(), pinned)
	}
	if e, _ := r.at(70, 1000, 3); e.Disposition != fleet.Matched || e.Segment != 1 || *e.Seq != 5 {
		t.Errorf("back: %+v", e)
	}
	r.key.Checkpoint.State = []byte("garbage")
	if e, _ := r.at(80, 700, 60_000); reasonOf(e) != fleet.ResetStateLost || e.Disposition != fleet.TerminalUnsupported {
		t.Errorf("lost: %+v", e)
	}
}

// A7: two regions on one graph: the border ends no segment.
func TestBorderOnOneGraph(t *testing.T) {
	r := newRegional(t)
	r.rule("version = 3\n"+region("west", westCell, "")+region("east", eastCell, ""), r.m.Graph, r.m.Graph)
	regions := map[string]int{}
	for i := range 30 {
		e, region := r.at(10*float64(i), 9000+150*float64(i), 3)
		regions[region]++
		if e.Reset != nil || *e.Seq != int64(i) {
			t.Fatalf("step %d: %+v", i, e)
		}
	}
	if regions["west"] != 10 || regions["east"] != 20 {
		t.Errorf("observations by region: %v", regions)
	}
}

// A7, A11, M44: a new catalog version with another graph moves a vehicle at its next job; the old graph stays at hand for its open stretch.
// Where it is gone the stretch is retracted. The same graph under a new version changes nothing.
func TestRollOver(t *testing.T) {
	for name, linger := range map[string]time.Duration{"old graph at hand": time.Hour, "old graph gone": 0} {
		t.Run(name, func(t *testing.T) {
			r := newRegional(t)
			r.pools = startPools(t, linger)
			old, next := r.m.Graph, roadnettest.Parse(t, longRoad+"; X(0,500)-Y(900,500)").Graph
			all := region("all-of-it", westCell+","+eastCell, "")
			r.rule("version = 1\n"+all, old)
			var track fleet.Track
			drive := func(from, to int) (last fleet.Event) {
				for i := from; i < to; i++ {
					last, _ = r.at(10*float64(i), 100+150*float64(i), 3)
					track.Apply(&last)
				}
				return last
			}
			drive(0, 10)
			r.rule("version = 2\n"+all, old)
			if e := drive(10, 11); e.Reset != nil {
				t.Errorf("a new version on the same graph: %+v", e.Reset)
			}
			r.rule("version = 3\n"+all, next)
			if linger == 0 {
				for r.pools.Graphs() > 1 {
					time.Sleep(time.Millisecond)
				}
			}
			e := drive(11, 12)
			if reasonOf(e) != fleet.ResetGraphChange || e.Disposition != fleet.Matched || *e.Seq != 1 {
				t.Errorf("the move: %+v", e)
			}
			if kept := linger > 0; (e.Closed != nil) != kept || (e.Retracted == nil) != kept {
				t.Errorf("closed %+v, retracted %+v", e.Closed, e.Retracted)
			}
			if e := drive(12, 40); e.Reset != nil || e.Segment != 2 {
				t.Errorf("afterwards: %+v", e)
			}
			if hash := next.Hash(); r.pin() != fmt.Sprintf("all-of-it@3 on %.2x", hash[:]) {
				t.Errorf("pin %s", r.pin())
			}
		})
	}
}

// A11: a gap goes before the change of the graph that it meets: the stretch is closed, nothing is begun at its last place.
func TestGapBeforeGraphChange(t *testing.T) {
	r := newRegional(t)
	next := roadnettest.Parse(t, longRoad+"; X(0,500)-Y(900,500)").Graph
	all := region("r", westCell+","+eastCell, "")
	r.rule("version = 1\n"+all, r.m.Graph)
	for i := range 5 {
		r.at(10*float64(i), 100+150*float64(i), 3)
	}
	r.rule("version = 2\n"+all, next)
	e, _ := r.at(1000, 5000, 3)
	if reasonOf(e) != fleet.ResetGap || e.Closed == nil || *e.Seq != 0 {
		t.Errorf("got %+v", e)
	}
}

// A7: a checkpoint of the codec before regions is read, not lost: without a pin it goes on on its graph.
func TestStateWithoutPin(t *testing.T) {
	d := newDrive(t, config())
	d.along(0, 100, 5)
	s := d.key.Checkpoint.State
	m := &wire.VehicleState{}
	if err := proto.Unmarshal(s[1:len(s)-4], m); err != nil {
		t.Fatal(err)
	}
	m.Region, m.CatalogVersion = "", 0
	d.key.Checkpoint.State = sealed(t, s[0], m)
	if e := d.at(50, 850, 3); e.Reset != nil || *e.Seq != 5 {
		t.Errorf("on one map: %+v", e)
	}
	d.key.Checkpoint.State = sealed(t, s[0], m)
	d.w = regionWorkload(t, "version = 9\n"+region("r", westCell, ""), []*roadnet.Graph{d.m.Graph})
	if e := d.at(60, 1000, 3); e.Reset != nil {
		t.Errorf("with a catalog: %+v", e)
	}
}

// A7, B3: requests go to the pool of their graph; one for a graph that is not there is answered, and is nobody's fault; a pool that is out of
// force ends when nothing needs it any more, and comes back when it is needed again.
func TestPools(t *testing.T) {
	a, b := roadnettest.Parse(t, longRoad).Graph, roadnettest.Parse(t, longRoad+"; X(0,500)-Y(900,500)").Graph
	p := startPools(t, 0)
	d := newDrive(t, config())
	d.m = roadnettest.Parse(t, longRoad)
	on := func(g *roadnet.Graph) []byte {
		d.w = workload(t, config(), fleet.MapOf(g))
		return d.w.Open(d.key, d.observe(float64(d.offset), 100, 3)).Request
	}
	if _, err := solve(t, p, on(a)); !errors.Is(err, fleet.ErrNoGraph) {
		t.Errorf("without a graph: %v", err)
	}
	if _, err := solve(t, p, []byte("\xff")); err == nil {
		t.Error("no request at all: no error")
	}
	use := func(graphs ...*roadnet.Graph) {
		t.Helper()
		if err := p.Use(graphs, time.Now()); err != nil {
			t.Fatal(err)
		}
		for want := len(graphs); p.Graphs() != want; {
			time.Sleep(time.Millisecond)
		}
	}
	for range 3 {
		use(a)
		if _, err := solve(t, p, on(a)); err != nil {
			t.Error(err)
		}
		use(a, b)
		for _, g := range []*roadnet.Graph{a, b} {
			if _, err := solve(t, p, on(g)); err != nil {
				t.Error(err)
			}
		}
		use(b)
		if _, err := solve(t, p, on(a)); !errors.Is(err, fleet.ErrNoGraph) {
			t.Errorf("out of force: %v", err)
		}
		if p.Graph(a.Hash()) != nil || p.Graph(b.Hash()) != b {
			t.Error("the graphs at hand are not those in force")
		}
	}
}

// sealed encodes a state as the codec does.
func sealed(t *testing.T, version byte, m *wire.VehicleState) []byte {
	t.Helper()
	b, err := proto.MarshalOptions{Deterministic: true}.MarshalAppend([]byte{version}, m)
	if err != nil {
		t.Fatal(err)
	}
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)))
}
