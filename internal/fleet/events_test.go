package fleet_test

import (
	"slices"
	"testing"

	"milepost/internal/fleet"
	"milepost/internal/stream"
)

// F3, F11: every output is one event with its own observation's revision, in the event and in its header, and says in a word of
// the closed list what became of the observation: also one that is off the road, off the map, late, or beyond a gap.
func TestEveryEventSaysWhatBecameOfIt(t *testing.T) {
	d := newDrive(t, config())
	seen := map[string]int{}
	step := func(s, x, y float64) {
		o := d.observe(s, x, y)
		plan, err := d.w.Plan(d.key, o, d.decide(o))
		if err != nil {
			t.Fatal(err)
		}
		e, err := fleet.DecodeEvent(plan.Outputs[0].Value)
		if err != nil {
			t.Fatal(err)
		}
		want := o.Identity.Revision.String()
		i := slices.IndexFunc(plan.Outputs[0].Headers, func(h stream.Header) bool { return h.Key == "ce_revision" })
		if i < 0 || string(plan.Outputs[0].Headers[i].Value) != want || e.Revision != want {
			t.Errorf("at %v s: event %s, headers %v, want revision %s", s, e.Revision, plan.Outputs[0].Headers, want)
		}
		if !slices.Contains(fleet.Dispositions(), e.Disposition) {
			t.Errorf("at %v s: disposition %q is not in the list", s, e.Disposition)
		}
		seen[e.Disposition]++
		d.key.Checkpoint = plan.Next
	}
	for i := range 10 {
		step(10*float64(i), 100+150*float64(i), 3)
	}
	step(95, 1600, 900)   // between the roads
	step(90, 1600, 3)     // late
	step(110, 0, 300_000) // off the map
	step(9000, 5000, 3)   // after a gap
	step(9010, 5000.5, 3) // standing
	for _, want := range []string{fleet.Matched, fleet.TerminalRegression, fleet.TerminalUnsupported} {
		if seen[want] == 0 {
			t.Errorf("no event was %s: the test shows nothing of it (%v)", want, seen)
		}
	}
}

// F28: an event tells what has changed since the one before, so that its size does not grow with the trip or with the window.
func TestEventsDoNotGrow(t *testing.T) {
	d := newDrive(t, config())
	var early, late int
	const steps, part = 500, 50
	for i := range steps {
		o := d.observe(2*float64(i), 50+17*float64(i), 3)
		plan, err := d.w.Plan(d.key, o, d.decide(o))
		if err != nil {
			t.Fatal(err)
		}
		switch {
		case i >= part && i < 2*part:
			early += len(plan.Outputs[0].Value)
		case i >= steps-part:
			late += len(plan.Outputs[0].Value)
		}
		d.key.Checkpoint = plan.Next
	}
	if early == 0 || late > early*5/4 {
		t.Errorf("%d bytes an event early in the trip, %d late", early/part, late/part)
	}
	if early/part > 2000 {
		t.Errorf("%d bytes an event, want at most 2000", early/part)
	}
}
