package mapmatch

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"milepost/internal/roadnet/roadnettest"
)

// town is a grid of streets, every third one-way, with a ring road and a turn ban.
func town(tb testing.TB) *roadnettest.Map {
	tb.Helper()
	const n, step = 8, 120
	var b strings.Builder
	node := func(x, y int) string {
		return fmt.Sprintf("n%d_%d(%d,%d)", x, y, x*step+(x*y*7)%23, y*step+(x*5+y*3)%19)
	}
	for y := range n {
		mark := "-"
		if y%3 == 1 {
			mark = ">"
		}
		var row, column []string
		for x := range n {
			row, column = append(row, node(x, y)), append(column, node(y, x))
		}
		fmt.Fprintf(&b, "r%d: %s\n", y, strings.Join(row, mark))
		fmt.Fprintf(&b, "c%d: %s\n", y, strings.Join(column, "-"))
	}
	b.WriteString("ring: n0_0-w(-150,400)-n0_7-q(400,1100)-n7_7 highway=primary\n")
	b.WriteString("no_left_turn r2 n3_2 c3\n")
	return roadnettest.Parse(tb, b.String())
}

// wander makes a drive through the town: legal or not, with noise, stops, wild points, pauses, repeated times and excursions.
func wander(m *roadnettest.Map, seed uint64, n int) []Observation {
	r := rand.New(rand.NewPCG(seed, 1))
	var out []Observation
	x, y, at := r.Float64()*800, r.Float64()*800, 0.0
	x -= math.Mod(x, 120)
	dx, dy := 0.0, 1.0
	noise := 2 + 8*r.Float64()
	pace := []float64{1, 1, 5, 15, 40}[r.IntN(5)]
	given := r.IntN(3) > 0
	stop := 0
	for range n {
		at += pace * (0.8 + 0.4*r.Float64())
		speed := 12.0
		switch {
		case stop > 0:
			stop--
			speed = 0
		case r.IntN(15) == 0:
			stop = r.IntN(40)
		case r.IntN(60) == 0:
			at += 400
		case r.IntN(25) == 0:
			dx, dy = -dy, dx
		case r.IntN(70) == 0:
			dx, dy = -dx, -dy
		}
		x, y = x+dx*speed*pace, y+dy*speed*pace
		if x < -200 || x > 1000 || y < -200 || y > 1200 {
			dx, dy = -dx, -dy
		}
		f := fix{x: x + r.NormFloat64()*noise, y: y + r.NormFloat64()*noise, at: at}
		if given {
			f.acc, f.speed, f.dir = noise, speed+0.01, math.Mod(math.Atan2(dx, dy)*180/math.Pi+360, 360)
		}
		switch r.IntN(50) {
		case 0:
			f.x += 500
		case 1:
			f.at -= 2 * pace
		}
		out = append(out, observation(m, f))
	}
	return out
}

// impatient is the default configuration, or one that forces finality all the time.
func impatient(seed uint64) Config {
	cfg := DefaultConfig()
	if seed%2 == 1 {
		cfg.Layers, cfg.Window = 3, 20*time.Second
	}
	return cfg
}

// I9, M18, F2: over random drives every observation that got a place is final exactly once, in order; paths are connected after every
// step; what a consumer puts together ends at the provisional place and begins at the last final one.
func TestFinalsPartitionTheDrive(t *testing.T) {
	m := town(t)
	for seed := range uint64(200) {
		all := wander(m, seed, 300)
		d := pushWith(t, m.Graph, impatient(seed), all)
		placed := make(map[int64]int)
		for _, p := range d.track.Points {
			placed[p.Seq]++
		}
		for _, r := range d.results[:len(all)] {
			switch got := placed[r.Seq]; {
			case r.Disposition == OffRoad || r.Disposition == Regressed:
				if got != 0 {
					t.Errorf("seed %d: observation %d has disposition %d and a final place", seed, r.Seq, r.Disposition)
				}
			case r.Disposition != Outlier && got != 1 || got > 1:
				t.Errorf("seed %d: observation %d is final %d times", seed, r.Seq, got)
			}
		}
		if t.Failed() {
			return
		}
	}
}

// M42: the consumer's view joins up: its provisional path leads from the last final place to the provisional one.
func TestProvisionalJoinsFinal(t *testing.T) {
	m := town(t)
	revised := 0
	for seed := range uint64(200) {
		mt, err := New(m.Graph, impatient(seed))
		if err != nil {
			t.Fatal(err)
		}
		var track Track
		var state []byte
		for _, o := range wander(m, seed, 300) {
			next, r, err := mt.Push(state, o)
			if err != nil {
				t.Fatal(err)
			}
			state = next
			track.Apply(r)
			if r.Provisional == nil {
				continue
			}
			if r.Supersedes < r.Seq {
				revised++
			}
			open := track.Open()
			if len(open) == 0 {
				continue
			}
			end := open[len(open)-1]
			if d := metres(end.Geometry[len(end.Geometry)-1], r.Provisional.Snapped); d > 0.05 {
				t.Fatalf("seed %d, observation %d: the path ends %.2f m from the place", seed, r.Seq, d)
			}
			if n := len(track.Points); n > 0 && track.Points[n-1].Seq >= 0 && sameLeg(&track) {
				if d := metres(open[0].Geometry[0], track.Points[n-1].Snapped); d > 0.05 {
					t.Fatalf("seed %d, observation %d: the path begins %.2f m from the last final place", seed, r.Seq, d)
				}
			}
		}
	}
	if revised == 0 {
		t.Error("no provisional place was ever corrected: the test proves nothing")
	}
}

// sameLeg says whether the last leg already has final spans, so that its open path has to join them.
func sameLeg(t *Track) bool { return len(t.Legs[len(t.Legs)-1]) > 0 }

// M43, I16: handing the state to a fresh matcher at any observation changes no byte of what follows, and a matcher's scratch memory has
// no influence.
func TestM43_EverySplitIsEqual(t *testing.T) {
	m := town(t)
	used, err := New(m.Graph, DefaultConfig())
	if err != nil {
		t.Fatal(err)
	}
	for seed := range uint64(20) {
		var state []byte
		var results []Result
		all := wander(m, 100+seed, 80)
		for i, o := range all {
			before := bytes.Clone(state)
			next, r, err := used.Push(state, o)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(before, state) {
				t.Fatalf("seed %d: push %d changed the state that it was given", seed, i)
			}
			fresh, err := New(m.Graph, DefaultConfig())
			if err != nil {
				t.Fatal(err)
			}
			next2, r2, err := fresh.Push(before, o)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(next, next2) {
				t.Fatalf("seed %d: push %d makes another state in a fresh matcher", seed, i)
			}
			if diff := cmp.Diff(r, r2); diff != "" {
				t.Fatalf("seed %d: push %d differs in a fresh matcher: %s", seed, i, diff)
			}
			state = next
			results = append(results, r)
		}
		if seed == 0 {
			d := push(t, m.Graph, all)
			d.m = m
			d.draw(43)
		}
		again := rerun(t, used, all)
		if diff := cmp.Diff(results, again); diff != "" {
			t.Fatalf("seed %d: the second run differs: %s", seed, diff)
		}
	}
}

func rerun(t *testing.T, m *Matcher, all []Observation) (out []Result) {
	t.Helper()
	var state []byte
	for _, o := range all {
		next, r, err := m.Push(state, o)
		if err != nil {
			t.Fatal(err)
		}
		state = next
		out = append(out, r)
	}
	return out
}

// F1: two roads without a link; when finality was forced on one of them, nothing later comes from the other.
func TestF1_ForcedFinalityPinsTheRoad(t *testing.T) {
	m := roadnettest.Parse(t, "A(0,0)-B(9000,0); C(0,22)-D(9000,22)")
	var fixes []fix
	for i := range 100 {
		fixes = append(fixes, fix{x: 20 * float64(i), y: 10 + math.Min(float64(i)/15, 3), at: float64(i)})
	}
	d := run(t, m, fixes)
	for i, p := range d.track.Paths() {
		for _, s := range p {
			if s.Key.Way != p[0].Key.Way {
				t.Errorf("leg %d is on both roads", i)
			}
		}
	}
}

// M50, M49: a million points at a standstill keep the state's size, and the last pushes do as little as the first.
func TestM50_EndlessStandstill(t *testing.T) {
	n := 1_000_000
	if testing.Short() {
		n = 100_000
	}
	m := town(t)
	mt, err := New(m.Graph, DefaultConfig())
	if err != nil {
		t.Fatal(err)
	}
	var state []byte
	most, finals, pushed := 0, 0, int64(0)
	for i := range n {
		o := observation(m, fix{x: 2 + float64(i%5), y: 60 + float64(i%3), at: 0})
		o.Time = epoch().Add(time.Duration(i) * time.Second)
		next, r, err := mt.Push(state, o)
		if err != nil {
			t.Fatal(err)
		}
		state, pushed = next, r.Seq
		most = max(most, len(state))
		finals += len(r.FinalPoints)
		if len(r.FinalPath) > 1 {
			t.Fatalf("observation %d drove %d spans", i, len(r.FinalPath))
		}
	}
	d := run(t, m, []fix{{x: 2, y: 60, at: 0}, {x: 3, y: 61, at: 1}, {x: 4, y: 62, at: 2}, {x: 5, y: 60, at: 3}, {x: 6, y: 61, at: 4}})
	d.draw(50)
	if most > 2000 {
		t.Errorf("the state grew to %d bytes", most)
	}
	if waiting := int(pushed) + 1 - finals; waiting > maxSkips+2 {
		t.Errorf("%d observations wait for finality", waiting)
	}
}

// The state's bound of invariant 5 holds in the worst case: all layers, all candidates, all waiting positions.
func TestStateIsBounded(t *testing.T) {
	cfg := DefaultConfig()
	cfg.Candidates, cfg.BeamNats, cfg.Window = maxCands, 1000, time.Hour
	m := town(t)
	mt, err := New(m.Graph, cfg)
	if err != nil {
		t.Fatal(err)
	}
	most := 0
	for seed := range uint64(40) {
		var state []byte
		for _, o := range wander(m, seed, 400) {
			o.AccuracyM = 100
			next, _, err := mt.Push(state, o)
			if err != nil {
				t.Fatal(err)
			}
			state = next
			most = max(most, len(state))
		}
	}
	if most < 1000 || most > maxState {
		t.Errorf("the biggest state has %d bytes, want 1000 to %d", most, maxState)
	}
}

// M44, A5: a state of another graph, configuration or version, and any damaged one, is refused by its kind of error.
func TestM44_ForeignState(t *testing.T) {
	m := town(t)
	other := roadnettest.Parse(t, "A(0,0)-B(500,0)")
	mt, err := New(m.Graph, DefaultConfig())
	if err != nil {
		t.Fatal(err)
	}
	state, _, err := mt.Push(nil, observation(m, fix{x: 2, y: 60}))
	if err != nil {
		t.Fatal(err)
	}
	cfg := DefaultConfig()
	cfg.UTurnM++
	otherGraph, err := New(other.Graph, DefaultConfig())
	if err != nil {
		t.Fatal(err)
	}
	otherConfig, err := New(m.Graph, cfg)
	if err != nil {
		t.Fatal(err)
	}
	o := observation(m, fix{x: 2, y: 70, at: 5})
	for name, mt := range map[string]*Matcher{"graph": otherGraph, "configuration": otherConfig} {
		if _, _, err := mt.Push(state, o); !errors.Is(err, ErrForeignState) {
			t.Errorf("state of another %s: %v", name, err)
		}
		if _, err := mt.Flush(state); !errors.Is(err, ErrForeignState) {
			t.Errorf("flush of a state of another %s: %v", name, err)
		}
	}
	for i := range state {
		bad := bytes.Clone(state)
		bad[i] ^= 0x10
		if _, _, err := mt.Push(bad, o); !errors.Is(err, ErrForeignState) {
			t.Errorf("byte %d changed: %v", i, err)
		}
		if _, _, err := mt.Push(state[:i], o); !errors.Is(err, ErrForeignState) {
			t.Errorf("cut at %d: %v", i, err)
		}
	}
	if _, _, err := mt.Push(state, o); err != nil {
		t.Errorf("the state itself: %v", err)
	}
	d := push(t, m.Graph, []Observation{observation(m, fix{x: 2, y: 60}), o})
	d.m = m
	d.draw(44, fmt.Sprintf("the state after the first observation: %d bytes; with any of them changed it is refused", len(state)))
}
