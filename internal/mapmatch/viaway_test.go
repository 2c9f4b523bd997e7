package mapmatch

import (
	"testing"

	"milepost/internal/roadnet"
	"milepost/internal/roadnet/roadnettest"
)

// dogleg is a street that is crossed in a dogleg: whoever comes from A may not go on to D over BC. There is a long way round.
const dogleg = "A(0,0)-B(200,0); B-C(300,0); C-D(300,200); X(200,200)-B; C-Y(500,0); no_left_turn w1 w2 w3"

// over is a drive over the dogleg that begins at a place, with observations on the way of the restriction's middle.
func over(first fix) []fix {
	return []fix{first, {x: 180, at: 8}, {x: 225, at: 14}, {x: 250, at: 17}, {x: 275, at: 20}, {x: 300, y: 40, at: 26}, {x: 300, y: 90, at: 31}, {x: 300, y: 140, at: 36}, {x: 300, y: 180, at: 40}}
}

// M28: a turn ban over several ways holds although the vehicle was seen on the middle one, where one layer ends and the next begins;
// the turn that was clearly made is matched, and marked. Without the first way it is free.
func TestM28_BanOverWaysAcrossLayers(t *testing.T) {
	for _, c := range []struct {
		name, text string
		want       roadnet.Turn
	}{
		{"banned", dogleg, roadnet.TurnBanned},
		{"no ban", dogleg[:len(dogleg)-len("; no_left_turn w1 w2 w3")], roadnet.TurnFree},
		{"a ban for those from X", dogleg[:len(dogleg)-len("no_left_turn w1 w2 w3")] + "no_left_turn w4 w2 w3", roadnet.TurnFree},
	} {
		m := roadnettest.Parse(t, c.text)
		d := run(t, m, over(fix{x: 100}))
		d.is(c.name+": route", d.route(), "AB BC CD")
		for _, s := range d.track.Legs[0] {
			if m.NodeName(s.Key.To) == "D" && s.FromM == 0 {
				d.is(c.name+": the turn", s.Entered, c.want)
			}
		}
	}
}

// M28: the ban also has its price, so that of two ways as good the free one is taken.
func TestM28_BanOverWaysDecides(t *testing.T) {
	// Over B and C, or over B and E, both 400 m: the observations lie on the common part only.
	text := "A(0,0)-B(200,0); B-C(300,0); C-F(400,60)-G(600,60); B-E(204,-60); E-H(380,-20)-G"
	free := run(t, roadnettest.Parse(t, text), []fix{{x: 100}, {x: 180, at: 6}, {x: 230, at: 10}, {x: 600, y: 60, at: 45}})
	banned := run(t, roadnettest.Parse(t, text+"; no_left_turn w1 w2 w3"), []fix{{x: 100}, {x: 180, at: 6}, {x: 230, at: 10}, {x: 600, y: 60, at: 45}})
	free.is("route without the ban", free.route(), "AB BC CF FG")
	cost := func(d *drive) int32 {
		mt, err := New(d.m.Graph, DefaultConfig())
		if err != nil {
			t.Fatal(err)
		}
		if err := mt.decode(d.states[len(d.states)-1]); err != nil {
			t.Fatal(err)
		}
		return mt.w.newest().inc
	}
	if a, b := cost(free), cost(banned); b <= a {
		t.Errorf("the last move costs %d with the ban and %d without it, want more", b, a)
	}
}

// A5, M43, M44: a state of the version before is read: it goes on as if nothing were known of the way, and what it is written as is new.
func TestStateOfTheVersionBefore(t *testing.T) {
	m := roadnettest.Parse(t, dogleg)
	mt, err := New(m.Graph, DefaultConfig())
	if err != nil {
		t.Fatal(err)
	}
	fixes := over(fix{x: 100})
	var state []byte
	for _, f := range fixes[:5] { // the last one is on the middle way
		if state, _, err = mt.Push(state, observation(m, f)); err != nil {
			t.Fatal(err)
		}
	}
	if err := mt.decode(state); err != nil {
		t.Fatal(err)
	}
	newest := mt.w.newest().c[0]
	if newest.at == roadnet.State(newest.edge) {
		t.Fatal("the newest state remembers nothing: this proves nothing")
	}
	old := asPrevious(t, mt, state, previousVersion)
	if len(old) >= len(state) {
		t.Errorf("the state of the version before has %d bytes, this one's %d", len(old), len(state))
	}
	for name, want := range map[string]roadnet.Turn{"old": roadnet.TurnFree, "new": roadnet.TurnBanned} {
		s := map[string][]byte{"old": old, "new": state}[name]
		var track Track
		for _, f := range fixes[5:] {
			next, r, err := mt.Push(s, observation(m, f))
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if next[0] != stateVersion {
				t.Errorf("%s: written as version %d", name, next[0])
			}
			track.Apply(r)
			s = next
		}
		r, err := mt.Flush(s)
		if err != nil {
			t.Fatal(err)
		}
		track.Apply(r)
		found := false
		for _, s := range track.Paths()[0] {
			if m.NodeName(s.Key.To) == "D" && s.FromM == 0 {
				found = true
				if s.Entered != want {
					t.Errorf("%s: turn %v, want %v", name, s.Entered, want)
				}
			}
		}
		if !found {
			t.Errorf("%s: nothing was driven to D", name)
		}
	}
	for _, version := range []byte{0, stateVersion + 1} {
		if err := mt.decode(sealed(append([]byte{version}, state[1:len(state)-crcSize]...))); err == nil {
			t.Errorf("version %d is read", version)
		}
	}
}
