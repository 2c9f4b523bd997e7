package roadnet

import (
	"cmp"
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/pelletier/go-toml/v2/unstable"
)

// maxProfiles bounds a file of profiles.
const maxProfiles = 1 << 20

// ProfileError is one fault in a file of profiles.
type ProfileError struct {
	File string // its last part
	Line int
	Text string
}

func (e *ProfileError) Error() string { return fmt.Sprintf("%s:%d: %s", e.File, e.Line, e.Text) }

// ParseProfiles reads a file of profiles, which replaces the default ones class by class: a class that it does not have keeps its default
// rules. The error joins one *ProfileError for each fault, in the order of lines.
func ParseProfiles(name string, data []byte) (*Profiles, error) {
	r := profileReader{file: path.Base(name), seen: map[string]int{}, barriers: map[string]int{}}
	if len(data) > maxProfiles {
		r.fault(1, "larger than %d bytes", maxProfiles)
	} else if err := CheckNesting(data); err != nil {
		r.fault(1, "%v", err)
	} else {
		r.read(data)
	}
	if len(r.faults) == 0 {
		r.check()
	}
	if len(r.faults) > 0 {
		slices.SortStableFunc(r.faults, func(a, b *ProfileError) int { return cmp.Compare(a.Line, b.Line) })
		errs := make([]error, len(r.faults))
		for i, f := range r.faults {
			errs[i] = f
		}
		return nil, errors.Join(errs...)
	}
	r.p.complete()
	return &r.p, nil
}

// profileReader walks over the expressions of a TOML document, so that every fault has a line.
type profileReader struct {
	file   string
	p      Profiles
	faults []*ProfileError

	toml     unstable.Parser
	seen     map[string]int // tables and keys by their full names: the line of each
	barriers map[string]int
	table    []string
	line     int
	vehicle  Vehicle
	known    bool // the table is that of a class, or of a part of it
}

func (r *profileReader) fault(line int, format string, args ...any) {
	r.faults = append(r.faults, &ProfileError{File: r.file, Line: line, Text: fmt.Sprintf(format, args...)})
}

func (r *profileReader) read(data []byte) {
	r.toml.Reset(data)
	for r.toml.NextExpression() {
		e := r.toml.Expression()
		key, line := r.key(e)
		r.line = line
		if e.Kind == unstable.KeyValue {
			r.value(key, e.Value())
			continue
		}
		r.begin(key)
		if e.Kind == unstable.ArrayTable {
			r.fault(line, "[[%s]]: lists of tables mean nothing here", strings.Join(key, "."))
		}
	}
	if err := r.toml.Error(); err != nil {
		line := 1
		var syntax *unstable.ParserError
		if errors.As(err, &syntax) && len(syntax.Highlight) > 0 {
			line = r.toml.Shape(r.toml.Range(syntax.Highlight)).Start.Line
		}
		r.fault(line, "%v", err)
	}
	if len(r.seen) == 0 && len(r.faults) == 0 {
		r.fault(1, "no profile in it")
	}
}

// key returns the parts of an expression's key and its line.
func (r *profileReader) key(e *unstable.Node) (key []string, line int) {
	for it := e.Key(); it.Next(); {
		n := it.Node()
		if line == 0 {
			line = r.toml.Shape(n.Raw).Start.Line
		}
		key = append(key, string(n.Data))
	}
	return key, line
}

func (r *profileReader) once(name string) bool {
	if first, ok := r.seen[name]; ok {
		r.fault(r.line, "%s was given before, in line %d", name, first)
		return false
	}
	r.seen[name] = r.line
	return true
}

func (r *profileReader) begin(key []string) {
	r.table = key
	name := strings.Join(key, ".")
	r.vehicle, r.known = ParseVehicle(key[0])
	if !r.known {
		r.fault(r.line, "[%s]: no such class of vehicles; there are %s", name, strings.ReplaceAll(AllVehicles().String(), ",", ", "))
		return
	}
	if len(key) > 2 || len(key) == 2 && key[1] != "roads" && key[1] != "barriers" {
		r.fault(r.line, "[%s]: a profile has the parts roads and barriers", name)
		r.known = false
		return
	}
	r.once("[" + name + "]")
	r.p.of[r.vehicle].given = true
}

func (r *profileReader) value(key []string, v *unstable.Node) {
	name := strings.Join(key, ".")
	if len(r.table) == 0 {
		r.fault(r.line, "%s is outside the table of a class", name)
		return
	}
	if !r.known || !r.once(strings.Join(r.table, ".")+"."+name) {
		return
	}
	p := &r.p.of[r.vehicle]
	switch {
	case len(r.table) == 1:
		r.rule(p, name, v)
	case r.table[1] == "roads":
		r.road(p, name, v)
	default:
		r.barrier(p, name, v)
	}
}

// rule reads a key of the class's own table.
func (r *profileReader) rule(p *profile, name string, v *unstable.Node) {
	switch name {
	case "access":
		p.access = r.words(name, v)
	case "allowed":
		p.allowed = r.words(name, v)
	case "private":
		p.private = r.words(name, v)
	case "oneway":
		p.oneway = r.words(name, v)
	case "opposite":
		p.opposite = r.words(name, v)
	case "turns":
		p.turns = r.words(name, v)
	case "never":
		for _, w := range r.words(name, v) {
			k, val, ok := strings.Cut(w, "=")
			if !ok || k == "" || val == "" {
				r.fault(r.line, "never: %q is not of the form key=value", w)
			}
			p.never = append(p.never, Tag{Key: k, Value: val})
		}
	case "posted":
		if v.Kind != unstable.Bool {
			r.fault(r.line, "posted must be true or false")
			return
		}
		p.posted = string(v.Data) == "true"
	case "max_speed":
		p.maxSpeed = r.speed(name, v)
	default:
		r.fault(r.line, "%s: no such key; a profile has access, allowed, private, oneway, opposite, turns, never, posted, max_speed", name)
	}
}

// words reads a list of strings, each once.
func (r *profileReader) words(name string, v *unstable.Node) (list []string) {
	if v.Kind != unstable.Array {
		r.fault(r.line, "%s must be a list of strings", name)
		return nil
	}
	for it := v.Children(); it.Next(); {
		n := it.Node()
		w := string(n.Data)
		switch {
		case n.Kind != unstable.String || w == "":
			r.fault(r.line, "%s: its entries must be strings that are not empty", name)
		case slices.Contains(list, w):
			r.fault(r.line, "%s: %q is in it twice", name, w)
		default:
			list = append(list, w)
		}
	}
	return list
}

func (r *profileReader) speed(name string, v *unstable.Node) uint8 {
	n, err := strconv.Atoi(string(v.Data))
	if v.Kind != unstable.Integer || err != nil || n < 1 || n > topSpeedKMH {
		r.fault(r.line, "%s must be a whole number of km/h from 1 to %d", name, topSpeedKMH)
		return 1
	}
	return uint8(n)
}

// road reads what holds on a class of roads: a speed, or a table of speed and access.
func (r *profileReader) road(p *profile, name string, v *unstable.Node) {
	class, link := classOf(name)
	if name == ClassFerry.String() {
		class = ClassFerry
	}
	if class == 0 || name == "minor" {
		r.fault(r.line, "%s is no class of roads", name)
		return
	}
	way := road{listed: true, access: accessYes}
	if v.Kind == unstable.InlineTable {
		r.roadTable(&way, name, v)
	} else {
		way.speed = r.speed(name, v)
	}
	i := 0
	if link {
		i = 1
	}
	p.roads[class][i] = way
}

func (r *profileReader) roadTable(way *road, name string, v *unstable.Node) {
	for it := v.Children(); it.Next(); {
		n := it.Node()
		key, _ := r.key(n)
		switch full := strings.Join(key, "."); full {
		case "speed":
			way.speed = r.speed(name+".speed", n.Value())
		case "access":
			switch string(n.Value().Data) {
			case "yes":
			case "private":
				way.access = accessPrivate
			case "no":
				way.access = accessNo
			default:
				r.fault(r.line, "%s.access must be \"yes\", \"private\" or \"no\"", name)
			}
		default:
			r.fault(r.line, "%s.%s: no such key; a road has speed and access", name, full)
		}
	}
	if way.speed == 0 {
		r.fault(r.line, "%s has no speed", name)
	}
}

func (r *profileReader) barrier(p *profile, name string, v *unstable.Node) {
	var b barrier
	switch name {
	case "closed":
		b = barrierClosed
	case "gate":
		b = barrierPrivate
	case "open":
		b = barrierOpen
	default:
		r.fault(r.line, "%s: no such key; barriers are closed, gate or open", name)
		return
	}
	if p.barriers == nil {
		p.barriers = map[string]barrier{}
	}
	for _, kind := range r.words(name, v) {
		if _, ok := p.barriers[kind]; ok {
			r.fault(r.line, "%s: %q is in another list of these barriers, too", name, kind)
		}
		p.barriers[kind] = b
	}
}

// check looks for what a whole profile must have.
func (r *profileReader) check() {
	for v := range Vehicle(numVehicles) {
		p := &r.p.of[v]
		if !p.given {
			continue
		}
		line := cmp.Or(r.seen["["+v.String()+"]"], r.seen["["+v.String()+".roads]"], r.seen["["+v.String()+".barriers]"])
		for _, need := range []string{"access", "allowed", "private", "oneway", "opposite", "turns", "never", "posted", "max_speed"} {
			if _, ok := r.seen[v.String()+"."+need]; !ok {
				r.fault(line, "[%s]: %s is missing", v, need)
			}
		}
		if p.roads == ([numClasses][2]road{}) {
			r.fault(line, "[%s]: no class of roads in [%s.roads]", v, v)
		}
		for _, w := range p.allowed {
			if slices.Contains(p.private, w) {
				r.fault(r.seen[v.String()+".private"], "[%s]: %q is both allowed and private", v, w)
			}
		}
		for class := range p.roads {
			for _, way := range p.roads[class] {
				if way.speed > p.maxSpeed && Class(class) != ClassFerry {
					r.fault(r.seen[v.String()+".max_speed"], "[%s]: max_speed %d is below the %d of %s", v, p.maxSpeed, way.speed, Class(class))
				}
			}
		}
	}
}
