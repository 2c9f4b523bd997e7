package roadnet

import (
	"strings"
	"testing"
)

func tagsOf(text string) (tags Tags) {
	for f := range strings.FieldsSeq(text) {
		k, v, _ := strings.Cut(f, "=")
		tags = append(tags, Tag{Key: k, Value: strings.ReplaceAll(v, "+", " ")})
	}
	return tags
}

// What the car profile makes of tags: classes, access by the most specific key, directions, flags, speeds and lanes (M27, M29, M30, M31,
// M33, M34, M37).
func TestReadWay(t *testing.T) {
	const none = Flags(0xffff)
	car := rules{set: SetOf(Car), profiles: DefaultProfiles()}
	for _, c := range []struct {
		tags    string
		class   Class
		dir     direction
		flags   Flags // none: no way for cars
		forward uint8
		lanes   uint8
		layer   int8
	}{
		{"highway=residential", ClassResidential, both, 0, 35, 0, 0},
		{"highway=motorway lanes=3 maxspeed=none", ClassMotorway, forward, FlagOneway | FlagPosted, 130, 3, 0},
		{"highway=motorway oneway=no", ClassMotorway, both, 0, 105, 0, 0},
		{"highway=primary oneway=yes maxspeed=50", ClassPrimary, forward, FlagOneway | FlagPosted, 50, 0, 0},
		{"highway=primary oneway=-1", ClassPrimary, backward, FlagOneway, 70, 0, 0},
		{"highway=primary oneway=yes oneway:motorcar=no", ClassPrimary, both, 0, 70, 0, 0},
		{"highway=primary vehicle:backward=no", ClassPrimary, forward, FlagOneway, 70, 0, 0},
		{"highway=primary vehicle:backward=no vehicle:forward=no", 0, 0, none, 0, 0, 0},
		{"highway=primary oneway=reversible", ClassPrimary, both, 0, 70, 0, 0},
		{"highway=tertiary junction=roundabout", ClassTertiary, forward, FlagOneway | FlagRoundabout, 50, 0, 0},
		{"highway=tertiary lanes=3", ClassTertiary, both, 0, 50, 2, 0},
		{"highway=tertiary lanes=4 lanes:forward=3", ClassTertiary, both, 0, 50, 3, 0},
		{"highway=secondary maxspeed=30+mph", ClassSecondary, both, FlagPosted, 48, 0, 0},
		{"highway=secondary maxspeed=35mph", ClassSecondary, both, FlagPosted, 56, 0, 0},
		{"highway=secondary maxspeed=walk", ClassSecondary, both, FlagPosted, 6, 0, 0},
		{"highway=secondary maxspeed=signals", ClassSecondary, both, 0, 60, 0, 0},
		{"highway=secondary maxspeed=DE:urban", ClassSecondary, both, FlagPosted, 50, 0, 0},
		{"highway=secondary maxspeed=DE:zone:30", ClassSecondary, both, FlagPosted, 30, 0, 0},
		{"highway=secondary maxspeed=1e400", ClassSecondary, both, 0, 60, 0, 0},
		{"highway=secondary maxspeed=-5", ClassSecondary, both, 0, 60, 0, 0},
		{"highway=secondary maxspeed:forward=80", ClassSecondary, both, FlagPosted, 80, 0, 0},
		{"highway=service service=driveway", ClassService, both, FlagService, 15, 0, 0},
		{"highway=service access=private", ClassService, both, FlagService | FlagPrivate, 15, 0, 0},
		{"highway=service access=no motor_vehicle=destination", ClassService, both, FlagService | FlagPrivate, 15, 0, 0},
		{"highway=residential access=no", 0, 0, none, 0, 0, 0},
		{"highway=residential access=no psv=yes", 0, 0, none, 0, 0, 0},
		{"highway=residential access=no motorcar=yes", ClassResidential, both, 0, 35, 0, 0},
		{"highway=residential motor_vehicle=agricultural;destination", ClassResidential, both, FlagPrivate, 35, 0, 0},
		{"highway=residential motor_vehicle=forestry", 0, 0, none, 0, 0, 0},
		{"highway=residential access=yes vehicle=no", 0, 0, none, 0, 0, 0},
		{"highway=residential access=delivery", ClassResidential, both, FlagPrivate, 35, 0, 0},
		{"highway=track", ClassTrack, both, FlagPrivate, 15, 0, 0},
		{"highway=track motor_vehicle=yes", ClassTrack, both, 0, 15, 0, 0},
		{"highway=pedestrian", 0, 0, none, 0, 0, 0},
		{"highway=pedestrian motor_vehicle=delivery", ClassPedestrian, both, FlagPrivate, 8, 0, 0},
		{"highway=pedestrian area=yes motor_vehicle=yes", 0, 0, none, 0, 0, 0},
		{"highway=footway motor_vehicle=yes", 0, 0, none, 0, 0, 0},
		{"highway=construction construction=motorway", 0, 0, none, 0, 0, 0},
		{"highway=proposed", 0, 0, none, 0, 0, 0},
		{"highway=busway", 0, 0, none, 0, 0, 0},
		{"building=yes", 0, 0, none, 0, 0, 0},
		{"route=ferry motor_vehicle=yes", ClassFerry, both, FlagFerry, 20, 0, 0},
		{"route=ferry motorcar=yes maxspeed=200", ClassFerry, both, FlagFerry, 20, 0, 0},
		{"route=ferry", 0, 0, none, 0, 0, 0},
		{"route=ferry motor_vehicle=no foot=yes", 0, 0, none, 0, 0, 0},
		{"route=bus", 0, 0, none, 0, 0, 0},
		{"highway=trunk_link bridge=yes layer=2", ClassTrunk, both, FlagLink | FlagBridge, 50, 0, 2},
		{"highway=trunk tunnel=yes", ClassTrunk, both, FlagTunnel, 90, 0, -1},
		{"highway=trunk tunnel=no bridge=no", ClassTrunk, both, 0, 90, 0, 0},
		{"highway=trunk bridge=viaduct layer=999", ClassTrunk, both, FlagBridge, 90, 0, 20},
	} {
		a, ok := car.readWay(tagsOf(c.tags))
		if c.flags == none {
			if ok {
				t.Errorf("%s: taken as %+v", c.tags, a)
			}
			continue
		}
		if !ok || a.class != c.class || a.dir != c.dir || a.flags != c.flags || a.speed[0] != c.forward && a.dir != backward || a.lanes[0] != c.lanes || a.layer != c.layer {
			t.Errorf("%s: %v %+v, want %+v", c.tags, ok, a, c)
		}
	}
}

// Gates cost, bollards close, and access on the barrier decides over both (M30).
func TestReadBarrier(t *testing.T) {
	for text, want := range map[string]barrier{
		"":                                   barrierOpen,
		"highway=traffic_signals":            barrierOpen,
		"barrier=bollard":                    barrierClosed,
		"barrier=bollard bollard=removable":  barrierPrivate,
		"barrier=bollard motor_vehicle=yes":  barrierOpen,
		"barrier=block":                      barrierClosed,
		"barrier=gate":                       barrierPrivate,
		"barrier=gate access=yes":            barrierOpen,
		"barrier=gate access=no":             barrierClosed,
		"barrier=gate access=no vehicle=yes": barrierOpen,
		"barrier=lift_gate access=private":   barrierPrivate,
		"barrier=toll_booth":                 barrierOpen,
		"barrier=cattle_grid access=no":      barrierOpen,
		"barrier=kerb":                       barrierOpen,
	} {
		car := &DefaultProfiles().of[Car]
		if got := car.readBarrier(tagsOf(text)); got != want {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
}

// Every class has a name and comes back from it, and the default profiles know each (M31: what has no class is not in the graph).
func TestClasses(t *testing.T) {
	for c := ClassMotorway; c < numClasses; c++ {
		back, _ := classOf(c.String())
		used := false
		for v := range Vehicle(numVehicles) {
			used = used || DefaultProfiles().of[v].roads[c][0].listed
		}
		if c != ClassFerry && back != c || !used {
			t.Errorf("class %d is named %q, which reads as %d; used: %v", c, c, back, used)
		}
	}
	if Class(0).String() != "unknown" || Vehicle(9).String() != "unknown" {
		t.Error("what is none has a name")
	}
}
