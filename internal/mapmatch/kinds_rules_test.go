package mapmatch

import (
	"fmt"
	"math"
	"testing"

	"milepost/internal/roadnet"
	"milepost/internal/roadnet/roadnettest"
)

// contraflow is a map that may be driven against its one-way streets.
func contraflow(t *testing.T, text string) *roadnettest.Map {
	t.Helper()
	return roadnettest.ParseFor(t, roadnet.ImportOptions{Contraflow: true}, text)
}

func (d *drive) flagged(of func(Span) bool) (m float64) {
	for _, p := range d.track.Paths() {
		for _, s := range p {
			if of(s) {
				m += s.ToM - s.FromM
			}
		}
	}
	return math.Round(m)
}

func against(s Span) bool { return s.Contraflow }

// M27: driven the wrong way on a one-way street, over several points, it is matched so and marked; with headings too.
func TestM27_Contraflow(t *testing.T) {
	m := contraflow(t, "A(0,0)>B(500,0)")
	for _, speed := range []float64{0, 10} {
		var fixes []fix
		for i, x := range []float64{400, 300, 200, 100} {
			fixes = append(fixes, fix{x: x, at: 10 * float64(i), speed: speed, dir: 270})
		}
		d := run(t, m, fixes)
		d.is("matched", d.count(Matched), 4)
		d.is("route", d.route(), "BA")
		d.is("against", d.flagged(against), 300.0)
		d.is("breaks", len(d.breaks()), 0)
	}
}

// M27: coming from a two-way street, into a one-way street against its direction; the legal way round would be far.
func TestM27_ContraflowWithinADrive(t *testing.T) {
	m := contraflow(t, "A(0,0)-B(400,0); C(800,0)>B; C-D(1200,0)")
	var fixes []fix
	for i := range 21 {
		fixes = append(fixes, fix{x: 100 + 50*float64(i), at: 5 * float64(i)})
	}
	d := run(t, m, fixes)
	d.draw(27)
	d.is("route", d.route(), "AB BC CD")
	d.is("against", d.flagged(against), 400.0)
}

// M27: noise, and standing, never make a vehicle drive against a one-way street; nor does a map without such edges.
func TestM27_NoiseIsNoContraflow(t *testing.T) {
	m := contraflow(t, "A(0,0)>B(900,0)")
	fixes := []fix{{x: 100, at: 0}, {x: 85, at: 1}, {x: 90, at: 2}, {x: 112, at: 3}, {x: 130, at: 4}, {x: 118, at: 5}, {x: 160, at: 7}, {x: 220, at: 12}}
	d := run(t, m, fixes)
	d.is("against", d.flagged(against), 0.0)
	d.is("route", d.route(), "AB")
	d = run(t, roadnettest.Parse(t, "A(0,0)>B(500,0)"), []fix{{x: 400, at: 0}, {x: 300, at: 10}, {x: 200, at: 20}, {x: 100, at: 30}})
	d.is("against", d.flagged(against), 0.0)
}

// M28: a ban over a way in between is no wall.
func TestM28_BanOverAWay(t *testing.T) {
	m := roadnettest.Parse(t, "a: W(-300,0)-J(0,0); b: J-K(0,100); c: K-E(300,100); K-N(0,400); J-S(0,-300); no_right_turn a b c")
	d := run(t, m, []fix{{x: -200, at: 0}, {x: -100, at: 8}, {y: 50, at: 20}, {x: 100, y: 100, at: 32}, {x: 200, y: 100, at: 40}, {x: 260, y: 100, at: 46}})
	d.is("route", d.route(), "WJ JK KE")
}

// M28: an only_ rule whose members are gone closes nothing.
func TestM28_BrokenRule(t *testing.T) {
	m := roadnettest.Parse(t, "W(-300,0)-J(0,0)-E(300,0); J-N(0,300); X(5000,0)-Y(5100,0); only_straight_on w1 J w3")
	d := run(t, m, []fix{{x: -200, at: 0}, {x: -40, at: 16}, {y: 40, at: 24}, {y: 200, at: 40}})
	d.is("route", d.route(), "WJ JN")
	d.is("banned", d.flagged(func(s Span) bool { return s.Entered == roadnet.TurnBanned }), 0.0)
}

// M29: a link for buses alone is a bus's way, and none for a car, which goes round.
func TestM29_VehicleClass(t *testing.T) {
	text := "A(0,0)-B(200,0)-C(400,0); bus: C-D(600,0) access=no psv=yes; D-E(800,0)-F(1000,0); C-P(400,-150)-Q(600,-150)-D"
	m := roadnettest.ParseFor(t, roadnet.ImportOptions{Vehicles: roadnet.SetOf(roadnet.Car, roadnet.Bus)}, text)
	fixes := []fix{{x: 50, at: 0}, {x: 200, at: 15}, {x: 380, at: 30}, {x: 620, at: 60}, {x: 800, at: 75}, {x: 950, at: 88}}
	for v, want := range map[roadnet.Vehicle]string{roadnet.Bus: "AB BC CD DE EF", roadnet.Car: "AB BC CP PQ QD DE EF"} {
		cfg := DefaultConfig()
		cfg.Vehicle = v
		var all []Observation
		for _, f := range fixes {
			all = append(all, observation(m, f))
		}
		d := pushWith(t, m.Graph, cfg, all)
		d.m = m
		if v == roadnet.Bus {
			d.draw(29)
		}
		d.is(fmt.Sprintf("route of a %v", v), d.route(), want)
	}
	cfg := DefaultConfig()
	cfg.Vehicle = roadnet.Foot
	if _, err := New(m.Graph, cfg); err == nil {
		t.Error("a matcher for a class that the map has no roads for")
	}
}

// M30: a private yard behind a gate is driven into, at a price, and marked; a bollard is closed.
func TestM30_PrivateYard(t *testing.T) {
	m := roadnettest.Parse(t, "A(-300,0)-J(0,0)-B(300,0); yard: J-G(0,20)-Y(0,300) highway=service access=private; G barrier=gate")
	d := run(t, m, []fix{
		{x: -200, at: 0},
		{x: -60, at: 12},
		{y: 60, at: 22},
		{y: 110, at: 30},
		{y: 160, at: 38},
		{y: 210, at: 46},
		{y: 260, at: 54},
	})
	d.draw(30)
	d.is("breaks", len(d.breaks()), 0)
	d.is("private", d.flagged(func(s Span) bool { return s.Private }), 260.0)
	m = roadnettest.Parse(t, "A(-300,0)-J(0,0)-B(300,0); J-G(0,20)-Y(0,300); B-Q(300,300)-Y; G barrier=bollard")
	d = run(t, m, []fix{{x: -200, at: 0}, {x: -60, at: 12}, {x: 200, at: 34}, {x: 300, y: 200, at: 60}, {x: 100, y: 300, at: 90}, {y: 200, at: 110}})
	d.is("route", d.route(), "AJ JB BQ QY YG")
}

// M33: points on a shore road 60 m from a ferry's line are on the road.
func TestM33_FerryBesideTheShore(t *testing.T) {
	m := roadnettest.Parse(t, "A(0,0)-B(2000,0); ferry: A-F(0,60)-G(2000,60) route=ferry motor_vehicle=yes")
	var fixes []fix
	for i := range 15 {
		fixes = append(fixes, fix{x: 100 + 100*float64(i), y: 12, at: 8 * float64(i), acc: 30})
	}
	d := run(t, m, fixes)
	d.draw(33)
	d.is("route", d.route(), "AB")
}

// M35: a trip does not begin on an island that is a little nearer than the network.
func TestM35_Island(t *testing.T) {
	m := roadnettest.Parse(t, "A(0,0)-B(900,0)-C(1800,0)-D(2700,0); I(100,18)-J(140,18)-K(180,18)-L(220,18)")
	d := run(t, m, []fix{{x: 120, y: 11.5, at: 0}, {x: 170, y: 11.5, at: 5}, {x: 300, y: 2, at: 18}, {x: 400, y: 1, at: 28}})
	d.draw(35)
	d.is("route", d.route(), "AB")
	d.is("breaks", len(d.breaks()), 0)
	if got := d.results[0].Provisional.Key.Way; got != m.Way("w1") {
		t.Errorf("begins on way %d", got)
	}
}

// M35: nor on a piece that only turn bans cut off.
func TestM35_IslandOfBans(t *testing.T) {
	m := roadnettest.Parse(t, "A(0,0)-B(900,0)-C(1800,0)-D(2700,0); i: P(300,18)>Q(600,18); q: Q>R(900,18)>B; no_straight_on i Q q")
	d := run(t, m, []fix{{x: 450, y: 11, at: 0}})
	if got := d.results[0].Provisional.Key.Way; got != m.Way("w1") {
		t.Errorf("begins on way %d", got)
	}
}

// M37: on a road of six lanes the outer lane is 11 m off the drawn line, whatever the accuracy says.
func TestM37_WideRoad(t *testing.T) {
	m := roadnettest.Parse(t, "A(0,0)>B(3000,0) highway=motorway lanes=6; C(0,24)-D(3000,24) highway=service")
	var fixes []fix
	for i := range 20 {
		fixes = append(fixes, fix{x: 100 + 30*float64(i), y: 11, at: float64(i), acc: 4})
	}
	d := run(t, m, fixes)
	d.draw(37)
	d.is("route", d.route(), "AB")
	if c := d.track.Points[10].Confidence; c < 0.9 {
		t.Errorf("confidence %g", c)
	}
}

// M38, F32: an accuracy that asks for more than is searched says so.
func TestM38_ClampedAccuracy(t *testing.T) {
	m := roadnettest.Parse(t, "A(0,0)-B(1000,0); C(0,250)-D(1000,250)")
	d := run(t, m, []fix{{x: 0, y: 5, at: 0, acc: 300}, {x: 100, y: 5, at: 10, acc: 5}, {x: 300, y: 120, at: 30, acc: 300}})
	d.draw(38)
	d.is("first", d.results[0].AccuracyClamped, true)
	d.is("second", d.results[1].AccuracyClamped, false)
	d.is("third", d.results[2].AccuracyClamped, true)
	d.is("third is", d.results[2].Disposition, OffRoad) // a road 120 m away is not searched for
}

// M41, F32: at a cusp the direction of the road is that at the place, headings count softly, and below 3 m/s not at all.
func TestM41_CuspAndHeadingNoise(t *testing.T) {
	m := roadnettest.Parse(t, "A(0,0)-V(300,300)-B(600,0)")
	d := run(t, m, []fix{
		{x: 100, y: 100, at: 0, speed: 10, dir: 45},
		{x: 290, y: 292, at: 27, speed: 10, dir: 45},
		{x: 310, y: 291, at: 30, speed: 10, dir: 135},
		{x: 500, y: 100, at: 57, speed: 10, dir: 135},
	})
	d.draw(41)
	d.is("route", d.route(), "AV VB")
	d.is("u-turns", d.uturns(), 0)
	for i, want := range []float64{45, 45, 135, 135} {
		if got := d.track.Points[i].Heading; math.Abs(got-want) > 1 {
			t.Errorf("point %d: the road leads to %g degrees, want %g", i, got, want)
		}
	}
	var fixes []fix
	for i := range 30 {
		fixes = append(fixes, fix{x: 100 + 0.7*float64(i), y: 100 + 0.7*float64(i), at: float64(i), speed: 1, dir: math.Mod(45+60*float64(i%3-1)+360, 360)})
	}
	d = run(t, m, fixes)
	d.is("u-turns", d.uturns(), 0)
	d.is("final points", len(d.track.Points), 30)
	// A heading right across the road costs, and loses nothing.
	d = run(t, m, []fix{{x: 100, y: 100, at: 0, speed: 10, dir: 135}, {x: 200, y: 200, at: 14, speed: 10, dir: 135}})
	d.is("matched", d.count(Matched), 2)
}

// M46: after a long stop, ten minutes of time do not make a jump of 900 m in 5 s possible.
func TestM46_JumpAfterAStop(t *testing.T) {
	m := roadnettest.Parse(t, "A(0,0)-B(5000,0)")
	var fixes []fix
	for i := range 61 {
		fixes = append(fixes, fix{x: 100 + float64(i%3), at: 10 * float64(i)})
	}
	fixes = append(fixes, fix{x: 1000, at: 605}, fix{x: 104, at: 610}, fix{x: 200, at: 620})
	d := run(t, m, fixes)
	d.draw(46)
	d.is("outliers", d.count(Outlier), 1)
	d.is("the jump", d.results[61].Disposition, Outlier)
	d.is("breaks", len(d.breaks()), 0)
}

// M47: what is absent is absent: no place, way or index stands for none.
func TestM47_NoSentinel(t *testing.T) {
	m := town(t)
	for seed := range uint64(40) {
		d := pushWith(t, m.Graph, impatient(seed), wander(m, seed, 150))
		if d.m = m; seed == 0 {
			d.draw(47)
		}
		points := d.track.Points
		for _, r := range d.results {
			if r.Provisional != nil {
				points = append(points, *r.Provisional)
			} else if r.Path != nil {
				t.Fatalf("seed %d, observation %d: a path to nowhere", seed, r.Seq)
			}
		}
		for _, p := range points {
			if e, ok := m.FindEdge(m.NodeName(p.Key.From), m.NodeName(p.Key.To)); !ok || p.OffsetM < 0 || p.OffsetM > float64(m.Graph.Edge(e).LengthCM)/100 || p.Seq < 0 {
				t.Fatalf("seed %d: %+v is no place", seed, p)
			}
		}
	}
}
