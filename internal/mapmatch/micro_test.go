package mapmatch

import (
	"bytes"
	"fmt"
	"math"
	"testing"
	"time"

	"milepost/internal/roadnet"
	"milepost/internal/roadnet/roadnettest"
)

// fix is an observation on a micro-map: metres and seconds.
type fix struct {
	x, y, at        float64
	acc, speed, dir float64 // 0: not given (dir 0 with a speed is north)
}

// drive is what came of a trace.
type drive struct {
	t       *testing.T
	m       *roadnettest.Map
	all     []Observation
	results []Result
	track   Track
	states  [][]byte
}

func epoch() time.Time { return time.Date(2026, 3, 1, 8, 0, 0, 0, time.UTC) }

func observation(m *roadnettest.Map, f fix) Observation {
	o := Observation{Time: epoch().Add(time.Duration(f.at * float64(time.Second))), Point: m.Point(f.x, f.y), AccuracyM: math.NaN(), SpeedMPS: math.NaN(), Heading: math.NaN()}
	if f.acc != 0 {
		o.AccuracyM = f.acc
	}
	if f.speed != 0 {
		o.SpeedMPS, o.Heading = f.speed, f.dir
	}
	return o
}

// run matches fixes over a map and checks on the way what holds for every trace.
func run(t *testing.T, m *roadnettest.Map, fixes []fix) *drive {
	t.Helper()
	var all []Observation
	for _, f := range fixes {
		all = append(all, observation(m, f))
	}
	d := push(t, m.Graph, all)
	d.m = m
	return d
}

func push(t *testing.T, g *roadnet.Graph, all []Observation) *drive {
	t.Helper()
	return pushWith(t, g, DefaultConfig(), all)
}

func pushWith(t *testing.T, g *roadnet.Graph, cfg Config, all []Observation) *drive {
	t.Helper()
	mt, err := New(g, cfg)
	if err != nil {
		t.Fatal(err)
	}
	d := &drive{t: t, all: all}
	var state []byte
	for i, o := range all {
		next, r, err := mt.Push(state, o)
		if err != nil {
			t.Fatalf("push %d: %v", i, err)
		}
		d.add(r)
		state = bytes.Clone(next)
		d.states = append(d.states, state)
	}
	r, err := mt.Flush(state)
	if err != nil {
		t.Fatal(err)
	}
	open := lengthOf(d.track.Open())
	finals := len(d.track.Legs[len(d.track.Legs)-1])
	d.add(r)
	// What Flush makes final is what was provisional (invariant 3).
	var flushed float64
	for _, s := range d.track.Legs[len(d.track.Legs)-1][finals:] {
		flushed += s.ToM - s.FromM
	}
	if math.Abs(open-flushed) > 0.011 {
		t.Errorf("provisional path of %.2f m became %.2f m final", open, flushed)
	}
	return d
}

func (d *drive) add(r Result) {
	d.t.Helper()
	d.results = append(d.results, r)
	d.track.Apply(r)
	for _, p := range d.track.Paths() {
		if err := connected(p); err != nil {
			d.t.Errorf("after observation %d: %v", r.Seq, err)
		}
	}
	for i := 1; i < len(d.track.Points); i++ {
		a, b := d.track.Points[i-1], d.track.Points[i]
		if a.Seq >= b.Seq || !a.Time.Before(b.Time) {
			d.t.Fatalf("final points %d and %d are out of order", a.Seq, b.Seq)
		}
	}
	if r.Provisional != nil && r.Provisional.Seq != r.Seq {
		d.t.Errorf("observation %d has the provisional place of %d", r.Seq, r.Provisional.Seq)
	}
}

// connected checks that each span begins where the one before ends, in place and not before it in time.
func connected(path []Span) error {
	for i, s := range path {
		if s.FromM > s.ToM || s.FromM == s.ToM && s.Entered == roadnet.TurnFree || len(s.Nodes) < 2 || len(s.Geometry) < 2 || s.End.Before(s.Start) {
			return fmt.Errorf("span %d is malformed: %+v", i, s)
		}
		if i == 0 {
			continue
		}
		p := path[i-1]
		a, b := p.Geometry[len(p.Geometry)-1], s.Geometry[0]
		if d := metres(a, b); d > 0.05 {
			return fmt.Errorf("span %d begins %.2f m from the end of the one before: %+v then %+v", i, d, p, s)
		}
		if s.Start.Before(p.End) {
			return fmt.Errorf("span %d begins at %v, before the one before ended at %v", i, s.Start, p.End)
		}
	}
	return nil
}

func metres(a, b roadnet.Point) float64 {
	dx := (a.Lon - b.Lon) * math.Cos(a.Lat*math.Pi/180) * 111195
	return math.Hypot(dx, (a.Lat-b.Lat)*111195)
}

func lengthOf(path []Span) (m float64) {
	for _, s := range path {
		m += s.ToM - s.FromM
	}
	return m
}

// length is the length in metres of all that was driven.
func (d *drive) length() (m float64) {
	for _, p := range d.track.Paths() {
		m += lengthOf(p)
	}
	return m
}

// route names the roads driven, "AB" for the pair from A to B, in order.
func (d *drive) route() string {
	d.t.Helper()
	out := ""
	for i, p := range d.track.Paths() {
		if i > 0 {
			out += " | "
		}
		for j, pair := range AppendPairs(nil, p) {
			if j > 0 {
				out += " "
			}
			out += d.m.NodeName(pair.From) + d.m.NodeName(pair.To)
		}
	}
	return out
}

func (d *drive) uturns() (n int) {
	for _, p := range d.track.Paths() {
		for _, s := range p {
			if s.Entered == roadnet.TurnU {
				n++
			}
		}
	}
	return n
}

func (d *drive) count(want Disposition) (n int) {
	for _, r := range d.results[:len(d.results)-1] {
		if r.Disposition == want {
			n++
		}
	}
	return n
}

func (d *drive) breaks() (out []Break) {
	for _, r := range d.results {
		if r.Break != NoBreak {
			out = append(out, r.Break)
		}
	}
	return out
}

func (d *drive) is(what string, got, want any) {
	d.t.Helper()
	if got != want {
		d.t.Errorf("%s: got %v, want %v", what, got, want)
	}
}
