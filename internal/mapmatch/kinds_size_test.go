package mapmatch

import (
	"bytes"
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"milepost/internal/roadnet/roadnettest"
)

// M48: a matcher has no table of all pairs: what it needs grows with the edges alone, by a few bytes each.
func TestM48_NoBigTable(t *testing.T) {
	m := town(t)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	const n = 20
	for range n {
		mt, err := New(m.Graph, DefaultConfig())
		if err != nil {
			t.Fatal(err)
		}
		runtime.KeepAlive(mt)
	}
	runtime.ReadMemStats(&after)
	var fixes []fix
	for i := range 16 {
		fixes = append(fixes, fix{x: 2, y: 50 * float64(i), at: 5 * float64(i)})
	}
	run(t, m, fixes).draw(48, fmt.Sprintf("%d directed edges; a matcher takes at most 64 bytes for each, and 256 KB", m.Graph.Edges()))
	const fixed = 256 << 10 // the window and the tables of the logarithm
	if got, most := (after.TotalAlloc-before.TotalAlloc)/n, uint64(fixed+64*m.Graph.Edges()); got > most {
		t.Errorf("a matcher takes %d bytes over %d edges, want at most %d", got, m.Graph.Edges(), most)
	}
}

// M49: the work of a point does not grow with the trip: of 50,000 the last thousand take no longer than the first.
func TestM49_WorkIndependentOfTheTrip(t *testing.T) {
	m := roadnettest.Parse(t, "A(0,0)-B(500,0)-C(500,500)-D(0,500)-A; B-D; A-C")
	mt, err := New(m.Graph, DefaultConfig())
	if err != nil {
		t.Fatal(err)
	}
	around := func(i int) fix {
		along := float64(i*12%2000) / 500
		side, f := int(along), along-float64(int(along))
		f *= 500
		return fix{x: []float64{f, 500, 500 - f, 0}[side], y: []float64{0, f, 500, 500 - f}[side], at: float64(i)}
	}
	var first []fix
	for i := range 167 {
		first = append(first, around(i))
	}
	run(t, m, first).draw(49)
	const n = 50_000
	took := make([]time.Duration, 0, n)
	var state []byte
	for i := range n {
		o := observation(m, around(i))
		start := time.Now()
		if state, _, err = mt.Push(state, o); err != nil {
			t.Fatal(err)
		}
		took = append(took, time.Since(start))
	}
	median := func(d []time.Duration) time.Duration {
		d = slices.Clone(d)
		slices.Sort(d)
		return d[len(d)/2]
	}
	early, late := median(took[1000:2000]), median(took[n-1000:])
	if late > 3*early {
		t.Errorf("a point takes %v at first and %v at last", early, late)
	}
}

// In steady state an observation allocates nothing, whatever becomes of it, and PushInto says the same as Push.
func TestPushIntoAllocatesNothing(t *testing.T) {
	m := town(t)
	mt, err := New(m.Graph, DefaultConfig())
	if err != nil {
		t.Fatal(err)
	}
	var r Result
	var state, old []byte
	drive := func(seed uint64) {
		state = state[:0]
		for _, o := range wander(m, seed, 300) {
			from := state
			if len(from) == 0 {
				from = nil
			}
			next, err := mt.PushInto(old[:0], &r, from, o)
			if err != nil {
				t.Fatal(err)
			}
			old, state = state, next
		}
	}
	for seed := range uint64(30) { // grows the memory
		drive(seed)
	}
	var all [][]Observation
	for seed := range uint64(10) {
		all = append(all, wander(m, seed, 300))
	}
	got := testing.AllocsPerRun(5, func() {
		for _, trip := range all {
			state = state[:0]
			for _, o := range trip {
				from := state
				if len(from) == 0 {
					from = nil
				}
				next, err := mt.PushInto(old[:0], &r, from, o)
				if err != nil {
					t.Fatal(err)
				}
				old, state = state, next
			}
		}
	})
	if got > 0 {
		t.Errorf("%g allocations over %d observations", got, len(all)*300)
	}
	state = nil
	for i, o := range all[3] {
		next, want, err := mt.Push(state, o)
		if err != nil {
			t.Fatal(err)
		}
		into, err := mt.PushInto(nil, &r, state, o)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, r, cmpopts.EquateEmpty()); diff != "" || !bytes.Equal(next, into) {
			t.Fatalf("observation %d: %s", i, diff)
		}
		state = next
	}
}
