package mapmatch

import (
	"math"
	"testing"
	"time"

	"milepost/internal/roadnet"
	"milepost/internal/roadnet/roadnettest"
)

// M1: two parallel roads without a link; noise between them is no switch.
func TestM01_NoSwitchBetweenParallelRoads(t *testing.T) {
	m := roadnettest.Parse(t, "A(0,0)-B(900,0); C(0,18)-D(900,18)")
	d := run(t, m, []fix{{x: 0, y: 4, at: 0}, {x: 60, y: 12, at: 5}, {x: 120, y: 5, at: 10}, {x: 180, y: 13, at: 15}})
	d.draw(1)
	d.is("route", d.route(), "AB")
	d.is("matched", d.count(Matched), 4)
}

// M2: beside a slip road that parts slowly the decision waits until it can be made; the wrong one never becomes final.
func TestM02_SlipRoadIsNotTaken(t *testing.T) {
	m := roadnettest.Parse(t, "A(0,0)>N1(300,0)>N(800,0) highway=motorway; N1>R(600,-40) highway=motorway_link")
	d := run(t, m, []fix{
		{x: 100, y: -4, at: 0},
		{x: 200, y: -6, at: 4},
		{x: 300, y: -5, at: 8},
		{x: 400, y: -8, at: 12},
		{x: 500, y: -9, at: 16},
		{x: 600, y: 0, at: 20},
		{x: 700, y: 0, at: 24},
	})
	d.draw(2)
	d.is("route", d.route(), "AN1 N1N")
	for _, s := range d.track.Legs[0] {
		if s.Key.Way != m.Way("w1") {
			t.Errorf("way %d became final", s.Key.Way)
		}
	}
}

// M3: the nearer road wins over the more important one, whichever it is.
func TestM03_EmissionBeforeClass(t *testing.T) {
	m := roadnettest.Parse(t, "A(0,0)-B(3000,0) highway=trunk; C(0,10)-D(3000,10) highway=track")
	d := run(t, m, []fix{{x: 0, y: 3, at: 0}, {x: 600, y: 3, at: 30}, {x: 1200, y: 3, at: 60}})
	d.draw(3)
	d.is("route", d.route(), "AB")
	m = roadnettest.Parse(t, "A(0,0)-B(3000,0) highway=trunk; C(0,10)-D(3000,10) highway=residential")
	d = run(t, m, []fix{{x: 0, y: 7, at: 0}, {x: 600, y: 7, at: 30}, {x: 1200, y: 7, at: 60}})
	d.is("route", d.route(), "CD")
}

// M4: a point a little behind is noise, not a U-turn.
func TestM04_NoInventedUTurn(t *testing.T) {
	m := roadnettest.Parse(t, "A(0,0)-B(500,0)")
	d := run(t, m, []fix{{x: 100, at: 0}, {x: 120, at: 1}, {x: 112, at: 2}, {x: 130, at: 3}})
	d.draw(4)
	d.is("route", d.route(), "AB")
	d.is("u-turns", d.uturns(), 0)
	d.is("length", math.Round(d.length()), 30.0)
	for i := 1; i < len(d.track.Points); i++ {
		if d.track.Points[i].OffsetM < d.track.Points[i-1].OffsetM {
			t.Errorf("point %d moves back", i)
		}
	}
}

// M5: the same on a one-way ring is no lap.
func TestM05_NoLapRoundTheBlock(t *testing.T) {
	m := roadnettest.Parse(t, "A(0,0)>B(60,0)>C(60,60)>D(0,60)>A")
	for _, back := range []float64{24, 18, 14} {
		d := run(t, m, []fix{{x: 30, at: 0}, {x: back, at: 1}})
		if back == 24 {
			d.draw(5)
		}
		d.is("length", d.length(), 0.0)
	}
}

// M6: a real U-turn in mid-block is drawn where it was made.
func TestM06_UTurnInMidBlock(t *testing.T) {
	m := roadnettest.Parse(t, "A(0,0)-B(1000,0)")
	d := run(t, m, []fix{{x: 0, at: 0}, {x: 200, at: 20}, {x: 400, at: 40}, {x: 200, at: 60}, {x: 0, at: 80}})
	d.draw(6)
	d.is("length", math.Round(d.length()), 800.0)
	d.is("u-turns", d.uturns(), 1)
	d.is("route", d.route(), "AB BA")
	d.is("matched", d.count(Matched), 5)
}

// M7 of the same trace: with headings it is matched too, and marked.
func TestM07_UTurnWithHeadings(t *testing.T) {
	m := roadnettest.Parse(t, "A(0,0)-B(1000,0)")
	d := run(t, m, []fix{
		{x: 0, at: 0, speed: 10, dir: 90},
		{x: 200, at: 20, speed: 10, dir: 90},
		{x: 400, at: 40, speed: 10, dir: 90},
		{x: 200, at: 60, speed: 10, dir: 270},
		{x: 0, at: 80, speed: 10, dir: 270},
	})
	d.draw(7)
	d.is("length", math.Round(d.length()), 800.0)
	d.is("u-turns", d.uturns(), 1)
}

// M7: a U-turn at the very place of an observation, which may already be final when the vehicle drives on, is told of once: in the middle
// of a road, and where it ends. The path to a last observation that already looks back tells of it, too.
func TestM07_UTurnAtAnObservation(t *testing.T) {
	m := roadnettest.Parse(t, "A(0,0)-B(1000,0)")
	for _, at := range []float64{400, 1000} {
		var fixes []fix
		for x := at - 300; x < at; x += 20 {
			fixes = append(fixes, fix{x: x, at: float64(len(fixes) * 2), speed: 10, dir: 90})
		}
		for x := at; x > at-300; x -= 20 {
			fixes = append(fixes, fix{x: x, at: float64(len(fixes) * 2), speed: 10, dir: 270})
		}
		for n := 17; n <= len(fixes); n++ {
			d := run(t, m, fixes[:n])
			d.is("u-turns", d.uturns(), 1)
			d.is("route", d.route(), "AB BA")
		}
	}
}

// M8: a short spur is not driven into and out of for one noisy point.
func TestM08_NoSpur(t *testing.T) {
	m := roadnettest.Parse(t, "A(0,0)-S(300,0)-B(600,0); S-T(300,25)")
	d := run(t, m, []fix{{x: 270, at: 0}, {x: 290, at: 2}, {x: 300, y: 11, at: 3}, {x: 312, at: 4}, {x: 340, at: 6}})
	d.draw(8)
	d.is("route", d.route(), "AS SB")
}

// M9: a vehicle that stands at a crossing drives nothing, whatever its receiver says.
func TestM09_StandingAtALight(t *testing.T) {
	m := roadnettest.Parse(t, "A(-300,0)-X(0,0)-B(300,0); C(0,-300)-X-D(0,300)")
	for _, speed := range []float64{0, 0.1} {
		for trial := range 20 {
			seed := uint32(trial + 1)
			var fixes []fix
			for i := range 60 {
				seed = seed*1664525 + 1013904223
				r, a := 8*math.Sqrt(float64(seed>>16&0xff)/255), float64(seed>>8&0xff)/255*2*math.Pi
				fixes = append(fixes, fix{x: r * math.Cos(a), y: r * math.Sin(a), at: float64(i), speed: speed, dir: 90})
			}
			d := run(t, m, fixes)
			if speed == 0 && trial == 0 {
				d.draw(9)
			}
			if got := d.length(); got >= 1 {
				t.Errorf("speed %g, trial %d: drove %.2f m", speed, trial, got)
			}
			d.is("final points", len(d.track.Points), 60)
		}
	}
}

// M15: one wild point is left out; the match goes on in one piece.
func TestM15_WildPoint(t *testing.T) {
	wild := fix{x: 130, y: 4000, at: 15}
	for name, text := range map[string]string{
		"no road there":   "A(0,0)-B(1000,0)",
		"a road there":    "A(0,0)-B(1000,0); C(0,4000)-D(1000,4000)",
		"a way there too": "A(0,0)-B(1000,0); C(0,4000)-D(1000,4000); A-C",
	} {
		t.Run(name, func(t *testing.T) {
			m := roadnettest.Parse(t, text)
			d := run(t, m, []fix{{x: 0, at: 0}, {x: 60, at: 5}, {x: 120, at: 10}, wild, {x: 180, at: 20}})
			if name == "a way there too" {
				d.draw(15)
			}
			d.is("matched", d.count(Matched), 4)
			d.is("outliers", d.count(Outlier), 1)
			d.is("breaks", len(d.breaks()), 0)
			d.is("length", math.Round(d.length()), 180.0)
			d.is("final points", len(d.track.Points), 4)
		})
	}
}

// M15: an outlier that looks plausible when it comes is left out when the next point shows what it was.
func TestM15_PlausibleOutlierIsTakenBack(t *testing.T) {
	m := roadnettest.Parse(t, "A(0,0)-E(1150,0)-B(2000,0); C(0,150)-F(1150,150)-D(2000,150); E-F")
	var fixes []fix
	for i := range 20 {
		f := fix{x: 1000 + 15*float64(i), at: float64(i)}
		if i == 10 {
			f.y = 150
		}
		fixes = append(fixes, f)
	}
	d := run(t, m, fixes)
	d.is("route", d.route(), "AE EB")
	d.is("length", math.Round(d.length()), 285.0)
	d.is("breaks", len(d.breaks()), 0)
	d.is("final points", len(d.track.Points), 20)
	d.is("the tenth", d.track.Points[10].Disposition, Outlier)
}

// M16 and M18: what no road connects is two legs with a reason, and no line between them.
func TestM16_IslandsBreak(t *testing.T) {
	m := roadnettest.Parse(t, "A(0,0)-B(500,0); C(5000,0)-D(5500,0)")
	d := run(t, m, []fix{{x: 0, at: 0}, {x: 200, at: 20}, {x: 400, at: 40}, {x: 5100, at: 140}, {x: 5300, at: 160}, {x: 5400, at: 180}})
	d.draw(16)
	d.is("route", d.route(), "AB | CD")
	d.is("breaks", len(d.breaks()), 1)
	d.is("break", d.breaks()[0], BreakJump)
	d.is("length", math.Round(d.length()), 700.0)
	d.is("final points", len(d.track.Points), 6)
}

// M16: a pause longer than the gap breaks too.
func TestM16_GapBreaks(t *testing.T) {
	m := roadnettest.Parse(t, "A(0,0)-B(5000,0)")
	d := run(t, m, []fix{{x: 0, at: 0}, {x: 200, at: 20}, {x: 400, at: 400}, {x: 600, at: 420}})
	d.is("break", d.breaks()[0], BreakGap)
	d.is("route", d.route(), "AB | AB")
	d.is("length", math.Round(d.length()), 400.0)
}

// M19: two equal points are a move of no length and no error.
func TestM19_IdenticalPoints(t *testing.T) {
	m := roadnettest.Parse(t, "A(-100,0)-B(100,0)")
	d := run(t, m, []fix{{at: 0}, {at: 1}})
	d.draw(19)
	d.is("length", d.length(), 0.0)
	d.is("final points", len(d.track.Points), 2)
	if d.results[1].Provisional == nil {
		t.Error("the second point has no place")
	}
}

// M20: of two points at one time the first is kept; the second leaves the state as it was.
func TestM20_EqualTimes(t *testing.T) {
	m := roadnettest.Parse(t, "A(-100,0)-B(1000,0)")
	d := run(t, m, []fix{{at: 5}, {x: 30, at: 5}})
	d.draw(20)
	d.is("second", d.results[1].Disposition, Regressed)
	d.is("state", string(d.states[1]), string(d.states[0]))
}

// M21: a late point is terminal and leaves the state as it was.
func TestM21_TimeGoesBack(t *testing.T) {
	m := roadnettest.Parse(t, "A(-100,0)-B(1000,0)")
	d := run(t, m, []fix{{x: 0, at: 10}, {x: 100, at: 20}, {x: 50, at: 15}, {x: 200, at: 30}})
	d.draw(21)
	d.is("regressed", d.count(Regressed), 1)
	d.is("matched", d.count(Matched), 3)
	d.is("state", string(d.states[2]), string(d.states[1]))
	d.is("length", math.Round(d.length()), 200.0)
}

// M22: absurd times (milliseconds read as seconds) neither panic nor stop the matcher.
func TestM22_AbsurdTimes(t *testing.T) {
	m := roadnettest.Parse(t, "A(-100,0)-B(1000,0)")
	for _, c := range []struct {
		at   int64 // Unix seconds of the second fix
		want Disposition
	}{{1615703474876, Outlier}, {math.MaxInt64, Outlier}, {math.MinInt64, Outlier}, {-62e9, Regressed}, {9e9, Matched}} {
		first, second := observation(m, fix{at: 0}), observation(m, fix{x: 60})
		second.Time = time.Unix(c.at, 0)
		d := push(t, m.Graph, []Observation{first, second, observation(m, fix{x: 120, at: 10})})
		if d.m = m; c.at == 1615703474876 {
			d.draw(22)
		}
		d.is("the absurd one", d.results[1].Disposition, c.want)
		want := Matched
		if c.want == Matched {
			want = Regressed // it came after a time that the vehicle itself gave: fleet's bounds are what keeps those out
		}
		d.is("the one after it", d.results[2].Disposition, want)
	}
}

// M23: a long first pause is no sign of an outlier.
func TestM23_FirstPauseIsLong(t *testing.T) {
	m := roadnettest.Parse(t, "A(-100,0)-B(2000,0)")
	d := run(t, m, []fix{{x: 0, at: 0}, {x: 900, at: 77}, {x: 940, at: 80}, {x: 965, at: 82}})
	d.draw(23)
	d.is("matched", d.count(Matched), 4)
	d.is("breaks", len(d.breaks()), 0)
}

// M24: swapped coordinates are far from every road: no place, no error.
func TestM24_Swapped(t *testing.T) {
	m := roadnettest.Parse(t, "A(-100,0)-B(2000,0)")
	for _, p := range []roadnet.Point{{Lon: m.Origin.Lat, Lat: m.Origin.Lon}, {Lon: 39.7, Lat: -75.6}} {
		o := observation(m, fix{})
		o.Point = p
		d := push(t, m.Graph, []Observation{o})
		if d.m = m; p.Lon == m.Origin.Lat {
			d.draw(24)
		}
		d.is("disposition", d.results[0].Disposition, OffRoad)
		d.is("final points", len(d.track.Points), 0)
	}
}

// M25: what is no place on Earth, and what is one without a road, never panics and leaves the stretch alone.
func TestM25_BadCoordinates(t *testing.T) {
	m := roadnettest.Parse(t, "A(-100,0)-B(2000,0)")
	nan, inf := math.NaN(), math.Inf(1)
	var all []Observation
	at := 0.0
	for _, p := range []roadnet.Point{
		{Lon: nan, Lat: 48},
		{Lon: 9, Lat: nan},
		{Lon: inf, Lat: 48},
		{Lon: 9, Lat: -inf},
		{Lon: 9, Lat: 91},
		{Lon: 181, Lat: 48},
		{},
		{Lon: 9, Lat: 89.9999},
		{Lon: 9, Lat: 90},
		{Lon: -180, Lat: -90},
	} {
		o := observation(m, fix{x: 3 * at, at: at})
		all = append(all, o)
		o.Point, o.Time = p, o.Time.Add(100)
		all = append(all, o)
		at += 5
	}
	for _, v := range []float64{nan, inf, -inf, -1, 0, 1e300, 5e-324} {
		o := observation(m, fix{x: 3 * at, at: at})
		o.AccuracyM, o.SpeedMPS, o.Heading = v, v, v
		all = append(all, o)
		at += 5
	}
	d := push(t, m.Graph, all)
	d.m = m
	d.draw(25)
	d.is("route", d.route(), "AB")
	d.is("length", math.Round(d.length()), 225.0) // the last one has a speed of 0: it stands
}

// M28: a banned turn that was clearly made is matched, and marked.
func TestM28_BannedTurn(t *testing.T) {
	m := roadnettest.Parse(t, "W(-300,0)-J(0,0)-E(300,0); J-N(0,300); no_left_turn w1 J w2")
	d := run(t, m, []fix{
		{x: -200, at: 0}, {x: -120, at: 8}, {x: -40, at: 16}, {y: 40, at: 24}, {y: 120, at: 32}, {y: 200, at: 40}, {y: 260, at: 46},
	})
	d.draw(28)
	d.is("route", d.route(), "WJ JN")
	banned := 0
	for _, s := range d.track.Legs[0] {
		if s.Entered == roadnet.TurnBanned {
			banned++
		}
	}
	d.is("banned turns", banned, 1)
}

// M31: away from the roads there is no fake path.
func TestM31_RoadNotInTheMap(t *testing.T) {
	m := roadnettest.Parse(t, "A(0,0)-B(1000,0); C(0,80)-D(1000,80) highway=construction")
	var fixes []fix
	for i := range 10 {
		fixes = append(fixes, fix{x: 50 * float64(i), y: 80, at: 5 * float64(i)})
	}
	d := run(t, m, fixes)
	d.draw(31)
	d.is("off road", d.count(OffRoad), 10)
	d.is("length", d.length(), 0.0)
}

// M32: leaving the network and coming back is two legs, without the way in between.
func TestM32_OffRoadAndBack(t *testing.T) {
	m := roadnettest.Parse(t, "A(0,0)-B(1000,0)")
	fixes := []fix{{x: 0, at: 0}, {x: 100, at: 10}, {x: 200, at: 20}}
	for i := range 8 {
		fixes = append(fixes, fix{x: 250 + 50*float64(i), y: 200, at: 30 + 10*float64(i)})
	}
	fixes = append(fixes, fix{x: 700, at: 120}, fix{x: 800, at: 130})
	d := run(t, m, fixes)
	d.draw(32)
	d.is("route", d.route(), "AB | AB")
	d.is("length", math.Round(d.length()), 300.0)
	d.is("break", d.breaks()[0], BreakOffRoad)
}

// M32: five seconds of drift away from a road, at one a second, are not leaving it.
func TestM32_DriftIsNotLeaving(t *testing.T) {
	m := roadnettest.Parse(t, "A(0,0)-B(1000,0)")
	var fixes []fix
	for i := range 40 {
		f := fix{x: 15 * float64(i), at: float64(i)}
		if i >= 15 && i < 25 {
			f.y = 45
		}
		fixes = append(fixes, f)
	}
	d := run(t, m, fixes)
	d.is("breaks", len(d.breaks()), 0)
	d.is("route", d.route(), "AB")
	d.is("length", math.Round(d.length()), 585.0)
}

// M34: a bridge is left only where the roads join.
func TestM34_BridgeOverRoad(t *testing.T) {
	m := roadnettest.Parse(t, "A(-200,0)-B(200,0); C(0,-200)-D(0,200)")
	var fixes []fix
	for i := range 21 {
		fixes = append(fixes, fix{x: -200 + 20*float64(i), y: float64(i%3) - 1, at: 2 * float64(i)})
	}
	d := run(t, m, fixes)
	d.draw(34)
	d.is("route", d.route(), "AB")
}
