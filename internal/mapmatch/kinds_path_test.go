package mapmatch

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"milepost/internal/roadnet"
	"milepost/internal/roadnet/roadnettest"
)

// M10: a ring driven fully, back on the first edge, has the ring's length, not that of the short cut.
func TestM10_LoopIsNotCutShort(t *testing.T) {
	m := roadnettest.Parse(t, "A(0,0)-B(200,0)-C(200,200)-D(0,200)-A; A-Z(-300,0)")
	corners := [][2]float64{{20, 0}, {200, 0}, {200, 200}, {0, 200}, {0, 0}, {20, 0}}
	var fixes []fix
	at := 0.0
	for i := 1; i < len(corners); i++ {
		a, b := corners[i-1], corners[i]
		n := int(math.Hypot(b[0]-a[0], b[1]-a[1]) / 20)
		for k := range n {
			f := float64(k) / float64(n)
			fixes = append(fixes, fix{x: a[0] + f*(b[0]-a[0]), y: a[1] + f*(b[1]-a[1]), at: at})
			at += 2
		}
	}
	fixes = append(fixes, fix{x: 20, at: at})
	d := run(t, m, fixes)
	d.draw(10)
	d.is("length", math.Round(d.length()), 800.0)
	d.is("u-turns", d.uturns(), 0)
	d.is("route", d.route(), "AB BC CD DA AB")
}

// M11: the same drive at 1, 5 and 10 Hz takes the same roads, and its places are no less sure.
func TestM11_MorePointsAreNoWorse(t *testing.T) {
	m := roadnettest.Parse(t, "A(0,0)-B(300,0)-C(300,300)-D(600,300); B-E(600,0); C-F(0,300)")
	way := [][2]float64{{10, 2}, {300, 2}, {302, 300}, {590, 302}}
	at := func(dist float64) (x, y float64) {
		for i := 1; i < len(way); i++ {
			a, b := way[i-1], way[i]
			l := math.Hypot(b[0]-a[0], b[1]-a[1])
			if dist <= l || i == len(way)-1 {
				return a[0] + dist/l*(b[0]-a[0]), a[1] + dist/l*(b[1]-a[1])
			}
			dist -= l
		}
		return 0, 0
	}
	for _, hz := range []float64{0.2, 1, 5, 10} {
		var fixes []fix
		for i := 0; float64(i)/hz*12 < 870; i++ {
			x, y := at(float64(i) / hz * 12)
			fixes = append(fixes, fix{x: x, y: y, at: float64(i) / hz})
		}
		d := run(t, m, fixes)
		if hz == 1 {
			d.draw(11)
		}
		d.is(fmt.Sprintf("route at %g Hz", hz), d.route(), "AB BC CD")
		for _, p := range d.track.Points[1:] {
			if p.Confidence < 0.5 {
				t.Errorf("%g Hz: observation %d has confidence %g", hz, p.Seq, p.Confidence)
			}
		}
	}
}

// M12: points 1.8 km and 60 s apart on a bending road are joined by it, in one piece.
func TestM12_SparseFeed(t *testing.T) {
	m := roadnettest.Parse(t, "A(0,0)-B(900,0)-C(1500,800)-D(1500,1700)-E(2400,2200)-F(3900,2200); B-X(900,-900); D-Y(300,1700)")
	d := run(t, m, []fix{{x: 100, at: 0}, {x: 1400, y: 660, at: 60}, {x: 1560, y: 1733, at: 120}, {x: 3200, y: 2200, at: 180}})
	d.draw(12)
	d.is("route", d.route(), "AB BC CD DE EF")
	d.is("breaks", len(d.breaks()), 0)
}

// M12: between two points a minute apart the quicker of two ways is driven where they are equally long, whatever their order in the map.
func TestM12_QuickestWay(t *testing.T) {
	for _, tags := range [][2]string{{"highway=primary", "highway=residential"}, {"highway=residential", "highway=primary"}} {
		m := roadnettest.Parse(t, "A(0,0)-B(500,0)-C(1000,0); n: C-N(1400,200)-D(1800,0) "+tags[0]+"; s: C-S(1400,-200)-D(1800,0) "+tags[1]+"; D-E(2300,0)-F(2800,0)")
		d := run(t, m, []fix{{x: 300, at: 0}, {x: 900, at: 60}, {x: 1900, at: 120}, {x: 2500, at: 180}})
		want := "AB BC CN ND DE EF"
		if tags[1] == "highway=primary" {
			want = "AB BC CS SD DE EF"
		}
		d.is("route", d.route(), want)
	}
}

// M13: how far two points may be apart depends on the time between them: 3.4 km in 120 s is driven, in 20 s it is not.
func TestM13_BreakDistanceGrowsWithTime(t *testing.T) {
	m := roadnettest.Parse(t, "A(0,0)-B(9000,0) highway=motorway")
	d := run(t, m, []fix{{x: 0, at: 0}, {x: 3400, at: 120}, {x: 6800, at: 240}})
	d.draw(13)
	d.is("matched", d.count(Matched), 3)
	d.is("breaks", len(d.breaks()), 0)
	d.is("length", math.Round(d.length()), 6800.0)
	d = run(t, m, []fix{{x: 0, at: 0}, {x: 3400, at: 20}, {x: 3600, at: 30}, {x: 3800, at: 40}})
	d.is("break", d.breaks()[0], BreakJump)
	d.is("length", math.Round(d.length()), 400.0)
}

// M14: where only a tunnel leads on, it is driven, and marked as inferred.
func TestM14_TunnelIsInferred(t *testing.T) {
	m := roadnettest.Parse(t, "A(0,0)-B(300,0); t: B-C(1800,0) tunnel=yes layer=-1; C-D(2500,0)")
	var fixes []fix
	for i := range 11 {
		fixes = append(fixes, fix{x: 20 * float64(i), at: float64(i)})
	}
	for i := range 11 {
		fixes = append(fixes, fix{x: 1900 + 20*float64(i), at: 100 + float64(i)})
	}
	d := run(t, m, fixes)
	d.draw(14)
	d.is("route", d.route(), "AB BC CD")
	d.is("breaks", len(d.breaks()), 0)
	for _, s := range d.track.Legs[0] {
		if inferred := s.Key.Way == m.Way("t"); s.Inferred != inferred {
			t.Errorf("way %d: inferred %v", s.Key.Way, s.Inferred)
		}
	}
}

// M17: each observation says what became of it: of 40 points of which two are on a road, two are matched.
func TestM17_EachPointHasAStatus(t *testing.T) {
	m := roadnettest.Parse(t, "A(0,0)-B(100,0)")
	var fixes []fix
	for i := range 40 {
		f := fix{x: 60 * float64(i), at: 5 * float64(i)}
		if i >= 2 {
			f.y = 400
		}
		fixes = append(fixes, f)
	}
	d := run(t, m, fixes)
	d.draw(17)
	d.is("matched", d.count(Matched), 2)
	d.is("off road", d.count(OffRoad)+d.count(Outlier), 38)
	d.is("final points", len(d.track.Points), 2)
}

// M18: over a break there is no line: two islands are two paths, each drawn within itself.
func TestM18_NoLineOverABreak(t *testing.T) {
	m := roadnettest.Parse(t, "A(0,0)-B(500,0); C(5000,0)-D(5500,0)")
	d := run(t, m, []fix{{x: 0, at: 0}, {x: 200, at: 20}, {x: 400, at: 40}, {x: 5100, at: 140}, {x: 5300, at: 160}, {x: 5400, at: 180}})
	d.draw(18)
	paths := d.track.Paths()
	d.is("paths", len(paths), 2)
	for i, p := range paths {
		for _, s := range p {
			for _, g := range s.Geometry {
				if x, _ := m.XY(g); (x > 2500) != (i == 1) {
					t.Errorf("path %d leads over %g", i, x)
				}
			}
		}
	}
}

// M26: a road over the antimeridian is short.
func TestM26_Antimeridian(t *testing.T) {
	m := roadnettest.ParseAt(t, roadnet.Point{Lon: 179.999, Lat: 0}, "A(0,0)-B(111.2,0)-C(222.4,0)")
	d := run(t, m, []fix{{x: 5, at: 0}, {x: 60, at: 5}, {x: 120, at: 10}, {x: 200, at: 17}})
	d.draw(26)
	d.is("matched", d.count(Matched), 4)
	d.is("length", math.Round(d.length()), 195.0)
	d.is("breaks", len(d.breaks()), 0)
}

// M36: a point in the middle of an edge whose ends are far away, cells away, is on it.
func TestM36_LongEdge(t *testing.T) {
	m := roadnettest.Parse(t, "A(0,0)-B(3000,0)-C(3000,500)")
	d := run(t, m, []fix{{x: 1500, y: 4, at: 0}, {x: 1560, y: 4, at: 4}, {x: 1620, y: 4, at: 8}})
	d.draw(36)
	d.is("route", d.route(), "AB")
	d.is("length", math.Round(d.length()), 120.0)
}

// M39: on a crossing all four roads are candidates, and 1e-7 degrees beside it nothing changes.
func TestM39_OnANode(t *testing.T) {
	m := roadnettest.Parse(t, "J(0,0)-N(0,200); J-E(200,0); J-S(0,-200); J-W(-200,0)")
	mt, err := New(m.Graph, DefaultConfig())
	if err != nil {
		t.Fatal(err)
	}
	for _, shift := range [][2]float64{{0, 0}, {1e-7, 0}, {-1e-7, 0}, {0, 1e-7}, {0, -1e-7}} {
		o := observation(m, fix{})
		o.Point.Lon, o.Point.Lat = o.Point.Lon+shift[0], o.Point.Lat+shift[1]
		s, _ := sight(o, 0)
		roads := map[int64]bool{}
		for _, sp := range mt.spots(s) {
			roads[m.Graph.Edge(sp.edge).Way] = true
		}
		if len(roads) != 4 {
			t.Errorf("shifted by %v: %d roads", shift, len(roads))
		}
		d := push(t, m.Graph, []Observation{o, observation(m, fix{x: 60, at: 6}), observation(m, fix{x: 120, at: 12})})
		d.m = m
		if shift[0] == 0 && shift[1] == 0 {
			d.draw(39)
		}
		for _, s := range d.track.Legs[0] {
			if s.ToM-s.FromM > 0.05 && s.Key.Way != m.Graph.Edge(m.Edge("J", "E")).Way {
				t.Errorf("shifted by %v: %.2f m on way %d", shift, s.ToM-s.FromM, s.Key.Way)
			}
		}
		d.is("length", math.Round(d.length()), 120.0)
	}
}

// M40: a roundabout is driven over one arc, along the ring and not across it, with the road's direction at each place.
func TestM40_Roundabout(t *testing.T) {
	var ring []string
	for i := range 8 {
		a := float64(i) * math.Pi / 4
		ring = append(ring, fmt.Sprintf("r%d(%.2f,%.2f)", i, 15*math.Sin(a-math.Pi), 15*math.Cos(a-math.Pi)))
	}
	// r0 is the south; counter-clockwise: south, east, north, west.
	order := []string{ring[0], ring[7], ring[6], ring[5], ring[4], ring[3], ring[2], ring[1], "r0"}
	m := roadnettest.Parse(t, strings.Join(order, ">")+" junction=roundabout; S(0,-200)-r0; W(-200,0)-r2; N(0,200)-r4; E(200,0)-r6")
	d := run(t, m, []fix{{y: -120, at: 0}, {y: -50, at: 5}, {x: 14, y: 3, at: 12}, {x: 2, y: 15, at: 14}, {x: -50, at: 20}, {x: -120, at: 25}})
	d.draw(40)
	d.is("route", d.route(), "Sr0 r0r7 r7r6 r6r5 r5r4 r4r3 r3r2 r2W")
	arc := 6 * 2 * 15 * math.Sin(math.Pi/8)
	if got, want := d.length(), 105+arc+105; math.Abs(got-want) > 2 {
		t.Errorf("length %.1f, want %.1f", got, want)
	}
	d = run(t, m, []fix{{y: -120, at: 0}, {y: -50, at: 5}, {x: -50, at: 16}, {x: -120, at: 21}})
	d.is("route with nothing on the ring", d.route(), "Sr0 r0r7 r7r6 r6r5 r5r4 r4r3 r3r2 r2W")
}

// M42: at a fork whose branches part slowly the first answer is revised, once, and what is final never was anything else.
func TestM42_RevisedOnce(t *testing.T) {
	m := roadnettest.Parse(t, "A(0,0)-F(300,0); left: F-L(600,6)-M(900,40); right: F-R(600,-6)-S(900,-40)")
	var fixes []fix
	for i := range 30 {
		x := 30 * float64(i)
		y := 0.0
		switch {
		case x > 300 && x < 450:
			y = 6
		case x >= 450:
			y = -6 - (x-450)*0.06
		}
		fixes = append(fixes, fix{x: x, y: y, at: 2 * float64(i)})
	}
	d := run(t, m, fixes)
	d.draw(42)
	d.is("route", d.route(), "AF FR RS")
	revised, was := 0, int64(0)
	var said []int64
	for _, r := range d.results {
		if r.Provisional == nil {
			continue
		}
		now := r.Provisional.Key.Way
		said = append(said, now)
		if now == m.Way("right") && was == m.Way("left") {
			revised++
			if r.Supersedes > r.Seq-1 {
				t.Errorf("observation %d moves to the other branch and supersedes only from %d", r.Seq, r.Supersedes)
			}
		}
		was = now
	}
	if revised != 1 {
		t.Errorf("revised %d times: %v", revised, said)
	}
}
