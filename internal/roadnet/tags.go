package roadnet

import (
	"slices"
	"strconv"
	"strings"
)

// tagVersion is part of the graph's hash: change it with every change of what tags mean that the profiles do not show.
const tagVersion = "tags-2"

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

// access is what a rule lets a vehicle do.
type access uint8

const (
	accessUnset access = iota
	accessNo
	accessPrivate
	accessYes
)

// wayAttr is all that the profiles make of a way's tags. Of each pair, the first is along the way's nodes, the second against them.
type wayAttr struct {
	class   Class
	dir     direction // that become edges
	lead    Vehicle   // the first class that may use the way: Flags speak of it
	flags   Flags
	layer   int8
	speed   [2]uint8
	lanes   [2]uint8
	access  [2]Vehicles
	private [2]Vehicles // part of access and contra
	contra  [2]Vehicles // that may use the way, but not in this direction
	seconds int32       // that a ferry takes, 0 unknown
}

// rules are the profiles of the classes that a graph is for.
type rules struct {
	set        Vehicles
	profiles   *Profiles
	contraflow bool
}

// readWay applies the profiles; not ok: not a way for any of the classes.
func (r *rules) readWay(t Tags) (a wayAttr, ok bool) {
	class, link := classOf(t.Get("highway"))
	if class == 0 && t.Get("highway") == "" && t.Get("route") == "ferry" {
		class = ClassFerry
	}
	if class == 0 {
		return a, false
	}
	a.class = class
	posted := false
	for v := range Vehicle(numVehicles) {
		if r.set.Has(v) && a.admit(t, &r.profiles.of[v], v, link) {
			posted = posted || r.profiles.of[v].posted
		}
	}
	used := a.access[0] | a.access[1]
	if used == 0 {
		return a, false
	}
	a.lead = used.first()
	for d, bit := range [2]direction{forward, backward} {
		if a.access[d] != 0 || r.contraflow && a.contra[d] != 0 {
			a.dir |= bit
		}
	}
	a.flags = readKind(t, class, link)
	if a.access[0].Has(a.lead) != a.access[1].Has(a.lead) {
		a.flags |= FlagOneway
	}
	if (a.private[0] | a.private[1]).Has(a.lead) {
		a.flags |= FlagPrivate
	}
	a.layer = readLayer(t, a.flags)
	a.readSpeeds(t, r.profiles.of[a.lead].roads[class][linkIndex(link)].speed, posted)
	a.lanes[0], a.lanes[1] = readLanes(t, a.access[0] != 0 && a.access[1] != 0)
	return a, true
}

func linkIndex(link bool) int {
	if link {
		return 1
	}
	return 0
}

// admit lets one class use the way; false: it may not.
func (a *wayAttr) admit(t Tags, p *profile, v Vehicle, link bool) bool {
	road := p.roads[a.class][linkIndex(link)]
	if !road.listed {
		return false
	}
	for _, never := range p.never {
		if t.Get(never.Key) == never.Value {
			return false
		}
	}
	grant := p.accessOf(t, "")
	if grant == accessUnset {
		grant = road.access
		if grant == accessYes && t.Get("service") == "emergency_access" {
			grant = accessPrivate
		}
	}
	if grant == accessNo {
		return false
	}
	dir := p.direction(t, a.class)
	if dir == 0 {
		return false
	}
	for d, bit := range [2]direction{forward, backward} {
		if dir&bit != 0 {
			a.access[d] |= v.bit()
		} else {
			a.contra[d] |= v.bit()
		}
		if grant == accessPrivate {
			a.private[d] |= v.bit()
		}
	}
	return true
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

// accessOf reads the most specific access tag there is, with an optional suffix such as ":forward".
func (p *profile) accessOf(t Tags, suffix string) access {
	for _, key := range p.access {
		if a := p.accessValue(t.Get(key + suffix)); a != accessUnset {
			return a
		}
	}
	return accessUnset
}

// accessValue reads one value; of several the most generous counts, since matching must not lose a road that some vehicles use.
func (p *profile) accessValue(value string) access {
	best := accessUnset
	for v := range strings.SplitSeq(value, ";") {
		a := accessNo // agricultural, forestry, emergency, military, and whatever the mappers invent next
		switch v = strings.TrimSpace(v); {
		case v == "":
			a = accessUnset
		case slices.Contains(p.allowed, v):
			a = accessYes
		case slices.Contains(p.private, v):
			a = accessPrivate
		case v != "access" && v != "vehicle" && slices.Contains(p.access, v):
			a = accessYes
		}
		best = max(best, a)
	}
	return best
}

// direction applies oneway tags, what roundabouts and motorways imply, access by direction, and lanes against the direction.
func (p *profile) direction(t Tags, class Class) direction {
	dir := both
	if j := t.Get("junction"); slices.Contains(p.oneway, "oneway") &&
		(j == "roundabout" || j == "circular" || class == ClassMotorway && t.Get("highway") == "motorway") {
		dir = forward
	}
	for _, key := range p.oneway {
		if d := onewayValue(t.Get(key)); d != 0 {
			dir = d
			break
		}
	}
	for _, key := range p.opposite {
		if dir != both && strings.HasPrefix(t.Get(key), "opposite") {
			dir = both
		}
	}
	if p.accessOf(t, ":forward") == accessNo {
		dir &^= forward
	}
	if p.accessOf(t, ":backward") == accessNo {
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

// readSpeeds sets the speeds: the class of road's, or what is posted where a class that goes by that may use the way. A ferry goes by its
// timetable.
func (a *wayAttr) readSpeeds(t Tags, base uint8, posted bool) {
	a.speed = [2]uint8{base, base}
	if a.class == ClassFerry {
		a.seconds = durationValue(t.Get("duration"))
		return
	}
	if !posted {
		return
	}
	if v := speedValue(t.Get("maxspeed")); v != 0 {
		a.speed = [2]uint8{v, v}
		a.flags |= FlagPosted
	}
	for d, key := range [2]string{"maxspeed:forward", "maxspeed:backward"} {
		if v := speedValue(t.Get(key)); v != 0 {
			a.speed[d] = v
			a.flags |= FlagPosted
		}
	}
}

// durationValue reads "MM", "HH:MM", "HH:MM:SS" or ISO 8601's "PT1H30M" in seconds; zero where it says nothing usable.
func durationValue(v string) int32 {
	v = strings.TrimSpace(v)
	if iso, ok := strings.CutPrefix(v, "PT"); ok {
		return isoDuration(iso)
	}
	total, parts := 0, 0
	for s := range strings.SplitSeq(v, ":") {
		n, err := strconv.Atoi(s)
		if err != nil || n < 0 || n > 10_000 {
			return 0
		}
		total = total*60 + n
		parts++
	}
	switch parts {
	case 1, 2:
		return int32(min(total*60, maxFerrySeconds))
	case 3:
		return int32(min(total, maxFerrySeconds))
	default:
		return 0
	}
}

// maxFerrySeconds is a week.
const maxFerrySeconds = 7 * 24 * 3600

func isoDuration(v string) int32 {
	total := 0
	for _, unit := range [...]struct {
		mark    string
		seconds int
	}{{"H", 3600}, {"M", 60}, {"S", 1}} {
		head, rest, ok := strings.Cut(v, unit.mark)
		if !ok {
			continue
		}
		n, err := strconv.Atoi(head)
		if err != nil || n < 0 || n > 10_000 {
			return 0
		}
		total += n * unit.seconds
		v = rest
	}
	if v != "" {
		return 0
	}
	return int32(min(total, maxFerrySeconds))
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
func readLanes(t Tags, twoWay bool) (fwd, back uint8) {
	n := laneValue(t.Get("lanes"))
	fwd, back = n, n
	if twoWay {
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

// readBarrier reads a node's tags for one class.
func (p *profile) readBarrier(t Tags) barrier {
	b, listed := p.barriers[t.Get("barrier")]
	if !listed {
		return barrierOpen
	}
	if b == barrierClosed {
		if v := t.Get("bollard"); v == "removable" || v == "rising" || v == "foldable" {
			b = barrierPrivate
		}
	}
	switch p.accessOf(t, "") {
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
