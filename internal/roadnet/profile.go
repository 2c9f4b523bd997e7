package roadnet

import (
	"strconv"
	"strings"
)

// profileName is part of the graph's hash: change it with every change of what tags mean.
const profileName = "car-1"

// Tag is one key and value of an OSM object.
type Tag struct{ Key, Value string }

// Tags are an OSM object's tags in the order of the file.
type Tags []Tag

// Get returns the value of a key, empty where it is absent.
func (t Tags) Get(key string) string {
	for _, x := range t {
		if x.Key == key {
			return x.Value
		}
	}
	return ""
}

// direction says which way a road may be driven, in terms of its way's node order.
type direction uint8

const (
	forward  direction = 1
	backward direction = 2
	both               = forward | backward
)

// access is what a rule lets a car do.
type access uint8

const (
	accessUnset access = iota
	accessNo
	accessPrivate
	accessYes
)

// wayAttr is all that the car profile makes of a way's tags.
type wayAttr struct {
	class                   Class
	dir                     direction
	flags                   Flags
	layer                   int8
	speedForward, speedBack uint8
	lanesForward, lanesBack uint8
}

// readWay applies the car profile; not ok: not a way for cars.
func readWay(t Tags) (a wayAttr, ok bool) {
	class, link := classOf(t.Get("highway"))
	if class == 0 && t.Get("highway") == "" && t.Get("route") == "ferry" {
		class = ClassFerry
	}
	if class == 0 {
		return a, false
	}
	if t.Get("area") == "yes" || t.Get("impassable") == "yes" || t.Get("disused") == "yes" || t.Get("abandoned") == "yes" {
		return a, false
	}
	a.class = class
	grant := carAccess(t, "")
	switch {
	case grant == accessNo, grant == accessUnset && (class == ClassPedestrian || class == ClassFerry):
		return a, false
	case grant == accessPrivate, grant == accessUnset && (class == ClassTrack || t.Get("service") == "emergency_access"):
		a.flags |= FlagPrivate
	}
	a.dir = readDirection(t, class)
	if a.dir == 0 {
		return a, false
	}
	if a.dir != both {
		a.flags |= FlagOneway
	}
	a.flags |= readKind(t, class, link)
	a.layer = readLayer(t, a.flags)
	a.speedForward, a.speedBack = readSpeeds(t, class, link)
	a.lanesForward, a.lanesBack = readLanes(t, a.dir)
	return a, true
}

func readKind(t Tags, class Class, link bool) (f Flags) {
	if link {
		f |= FlagLink
	}
	if class == ClassService {
		f |= FlagService
	}
	if class == ClassFerry {
		f |= FlagFerry
	}
	if j := t.Get("junction"); j == "roundabout" || j == "circular" {
		f |= FlagRoundabout
	}
	if v := t.Get("tunnel"); v != "" && v != "no" || t.Get("covered") == "yes" {
		f |= FlagTunnel
	}
	if v := t.Get("bridge"); v != "" && v != "no" {
		f |= FlagBridge
	}
	return f
}

// carAccess reads the most specific access tag there is, with an optional suffix such as ":forward".
func carAccess(t Tags, suffix string) access {
	for _, key := range [...]string{"motorcar", "motor_vehicle", "vehicle", "access"} {
		if a := accessValue(t.Get(key + suffix)); a != accessUnset {
			return a
		}
	}
	return accessUnset
}

// accessValue reads one value; of several the most generous counts, since matching must not lose a road that some cars use.
func accessValue(value string) access {
	best := accessUnset
	for v := range strings.SplitSeq(value, ";") {
		a := accessUnset
		switch strings.TrimSpace(v) {
		case "":
		case "yes", "permissive", "designated", "official", "public", "unknown":
			a = accessYes
		case "private", "destination", "delivery", "customers", "permit", "residents", "employees", "customer", "visitors", "students":
			a = accessPrivate
		default: // no, agricultural, forestry, emergency, military, psv, bus, and whatever the mappers invent next
			a = accessNo
		}
		best = max(best, a)
	}
	return best
}

// readDirection applies oneway tags, what roundabouts and motorways imply, and access by direction.
func readDirection(t Tags, class Class) direction {
	dir := both
	if j := t.Get("junction"); j == "roundabout" || j == "circular" || class == ClassMotorway && t.Get("highway") == "motorway" {
		dir = forward
	}
	for _, key := range [...]string{"oneway:motorcar", "oneway:motor_vehicle", "oneway:vehicle", "oneway"} {
		if d := onewayValue(t.Get(key)); d != 0 {
			dir = d
			break
		}
	}
	if carAccess(t, ":forward") == accessNo {
		dir &^= forward
	}
	if carAccess(t, ":backward") == accessNo {
		dir &^= backward
	}
	return dir
}

// onewayValue reads a oneway tag; zero where it says nothing. Lanes whose direction changes with the hour are open both ways.
func onewayValue(v string) direction {
	switch v {
	case "yes", "true", "1":
		return forward
	case "-1", "reverse":
		return backward
	case "no", "false", "0", "reversible", "alternating":
		return both
	default:
		return 0
	}
}

func readLayer(t Tags, f Flags) int8 {
	if n, err := strconv.Atoi(strings.TrimSpace(t.Get("layer"))); err == nil {
		return int8(min(max(n, -20), 20))
	}
	switch {
	case f&FlagBridge != 0:
		return 1
	case f&FlagTunnel != 0 && t.Get("covered") != "yes":
		return -1
	default:
		return 0
	}
}

func readSpeeds(t Tags, class Class, link bool) (fwd, back uint8) {
	base := class.freeFlow(link)
	if class == ClassFerry {
		return base, base
	}
	if v := speedValue(t.Get("maxspeed")); v != 0 {
		base = v
	}
	fwd, back = base, base
	if v := speedValue(t.Get("maxspeed:forward")); v != 0 {
		fwd = v
	}
	if v := speedValue(t.Get("maxspeed:backward")); v != 0 {
		back = v
	}
	return fwd, back
}

// speedValue reads a limit in km/h; zero where it says nothing usable ("signals", "variable", a typing error).
func speedValue(v string) uint8 {
	v, _, _ = strings.Cut(v, ";")
	v = strings.TrimSpace(v)
	switch v {
	case "":
		return 0
	case "none", "unlimited":
		return 130
	case "walk":
		return 6
	}
	if country, zone, ok := strings.Cut(v, ":"); ok && len(country) <= 5 {
		return zoneSpeed(zone)
	}
	factor := 1.0
	if n, ok := strings.CutSuffix(v, "mph"); ok {
		v, factor = n, 1.609344
	} else if n, ok := strings.CutSuffix(v, "km/h"); ok {
		v = n
	} else if n, ok := strings.CutSuffix(v, "kmh"); ok {
		v = n
	}
	x, err := strconv.ParseFloat(strings.TrimSpace(v), 64)
	if err != nil || !(x > 0 && x < 1000) {
		return 0
	}
	return uint8(min(max(x*factor+0.5, 5), 140))
}

func zoneSpeed(zone string) uint8 {
	zone = strings.TrimPrefix(strings.TrimPrefix(zone, "zone:"), "zone")
	switch zone {
	case "urban":
		return 50
	case "rural":
		return 90
	case "trunk":
		return 100
	case "motorway":
		return 130
	case "living_street":
		return 10
	case "walk":
		return 6
	case "20", "30", "40", "50", "60":
		n, _ := strconv.Atoi(zone)
		return uint8(n)
	default:
		return 0
	}
}

// readLanes gives the lanes of each direction; a two-way road's lanes are halved, the odd one counting for both.
func readLanes(t Tags, dir direction) (fwd, back uint8) {
	n := laneValue(t.Get("lanes"))
	fwd, back = n, n
	if dir == both {
		fwd, back = (n+1)/2, (n+1)/2
	}
	if v := laneValue(t.Get("lanes:forward")); v != 0 {
		fwd = v
	}
	if v := laneValue(t.Get("lanes:backward")); v != 0 {
		back = v
	}
	return fwd, back
}

func laneValue(v string) uint8 {
	v, _, _ = strings.Cut(v, ";")
	x, err := strconv.ParseFloat(strings.TrimSpace(v), 64)
	if err != nil || !(x >= 1 && x <= 20) {
		return 0
	}
	return uint8(x)
}

// barrier is what a node does to the ways through it.
type barrier uint8

const (
	barrierOpen barrier = iota
	barrierPrivate
	barrierClosed
)

// readBarrier reads a node's tags.
func readBarrier(t Tags) barrier {
	var b barrier
	switch t.Get("barrier") {
	case "bollard", "block", "jersey_barrier", "log", "kissing_gate", "turnstile", "full-height_turnstile", "stile", "cycle_barrier",
		"motorcycle_barrier", "debris", "planter", "horse_stile", "bus_trap", "sump_buster", "tank_trap":
		b = barrierClosed
		if v := t.Get("bollard"); v == "removable" || v == "rising" || v == "foldable" {
			b = barrierPrivate
		}
	case "gate", "lift_gate", "swing_gate", "sliding_gate", "sliding_beam", "chain", "rope", "bar", "hampshire_gate", "bump_gate",
		"wicket_gate", "barrier", "yes", "spikes", "sally_port", "security_control", "guard_house":
		b = barrierPrivate
	default:
		return barrierOpen
	}
	switch carAccess(t, "") {
	case accessYes:
		return barrierOpen
	case accessPrivate:
		return barrierPrivate
	case accessNo:
		return barrierClosed
	case accessUnset:
	}
	return b
}
