package catalog

import (
	"cmp"
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Limits of a catalog: regions are metric labels and topics.
const (
	maxRegions  = 1000
	maxLanes    = 256
	maxReplicas = 10_000
	reserved    = "all"
)

// check turns what was read into a catalog and reports what is wrong with it.
func (p *reader) check() *Catalog {
	c := &Catalog{owner: map[Cell]int{}, overlap: map[Cell][]int{}}
	switch v, ok := p.version.value.(int64); {
	case !p.version.given:
		p.problem(0, "version is missing: a whole number that grows with each change")
	case !ok || v < 1:
		p.problem(p.version.line, "version must be a whole number from 1")
	default:
		c.Version = v
	}
	if n := len(p.regions); n == 0 {
		p.problem(0, "there is no [[region]]")
	} else if n > maxRegions {
		p.problem(0, "there are %d regions, %d are allowed", n, maxRegions)
	}
	ids := map[string]int{} // lines
	owners := map[Cell]place{}
	for n, s := range p.regions {
		r, cells := p.region(s)
		if first, twice := ids[r.ID]; twice && r.ID != "" {
			p.problem(s.settings["id"].line, "region %q is there already, in line %d", r.ID, first)
		} else {
			ids[r.ID] = s.settings["id"].line
		}
		for i, cell := range r.Coverage {
			if other, taken := owners[cell]; taken && other.region != n {
				p.problem(cells[i], "cell %s is covered by region %q already, in line %d", cell, c.Regions[other.region].ID, other.line)
				continue
			}
			owners[cell] = place{n, cells[i]}
			c.owner[cell] = n
		}
		c.Regions = append(c.Regions, r)
	}
	for n, r := range c.Regions {
		for _, cell := range r.Overlap {
			c.overlap[cell] = append(c.overlap[cell], n)
		}
	}
	for _, list := range c.overlap {
		slices.SortFunc(list, func(a, b int) int { return cmp.Compare(c.Regions[a].ID, c.Regions[b].ID) })
	}
	return c
}

type place struct{ region, line int }

// region reads one region; coverage gives the line of each of its covered cells.
func (p *reader) region(s *section) (r Region, coverage []int) {
	f := fields{p: p, s: s}
	r.ID = f.text("id", "", true)
	if r.ID != "" && !regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`).MatchString(r.ID) {
		p.problem(s.settings["id"].line, "id %q must be 1 to 63 of a-z, 0-9 and -, for topics and labels are named after it", r.ID)
	}
	if r.ID == reserved {
		p.problem(s.settings["id"].line, "id %q stands for all regions together", r.ID)
	}
	r.Graph = f.text("graph", "", true)
	r.Box = f.box("bbox")
	r.Coverage, coverage = f.cells("coverage", true)
	overlap, lines := f.cells("overlap", false)
	own := map[Cell]int{}
	for i, cell := range r.Coverage {
		own[cell] = coverage[i]
	}
	for i, cell := range overlap {
		if line, ok := own[cell]; ok {
			p.problem(lines[i], "overlap cell %s is the region's own coverage, in line %d", cell, line)
		}
	}
	r.Overlap = overlap
	r.Lanes = int(f.number("lanes", 0, 1, maxLanes))
	r.ResourceClass = f.text("resource_class", "standard", false)
	r.MinReplicas = int(f.number("min_replicas", 1, 0, maxReplicas))
	r.MaxReplicas = int(f.number("max_replicas", int64(max(r.MinReplicas, 1)), 1, maxReplicas))
	if r.MaxReplicas < r.MinReplicas {
		p.problem(s.settings["max_replicas"].line, "max_replicas is %d, below min_replicas %d", r.MaxReplicas, r.MinReplicas)
	}
	if r.Lanes > 0 && r.MaxReplicas > r.Lanes {
		p.problem(s.settings["lanes"].line, "lanes is %d, below max_replicas %d: a replica more than there are lanes would get nothing to do", r.Lanes, r.MaxReplicas)
	}
	r.FreshnessBudget = f.duration("freshness_budget")
	r.MaxJobs = f.number("max_jobs", 0, 1, math.MaxInt64)
	r.MaxBytes = f.number("max_bytes", 0, 1, math.MaxInt64)
	f.refuseOthers()
	return r, coverage
}

// fields reads one region's settings; each that it is asked for is a known one.
type fields struct {
	p     *reader
	s     *section
	known []string
}

func (f *fields) get(name string, required bool) (setting, bool) {
	f.known = append(f.known, name)
	v := f.s.settings[name]
	if !v.given && required {
		f.p.problem(f.s.line, "the region has no %s", name)
	}
	return v, v.given
}

func (f *fields) text(name, otherwise string, required bool) string {
	v, ok := f.get(name, required)
	if !ok {
		return otherwise
	}
	text, ok := v.value.(string)
	if !ok || strings.TrimSpace(text) == "" {
		f.p.problem(v.line, "%s must be a text", name)
	}
	return text
}

func (f *fields) number(name string, otherwise, least, most int64) int64 {
	v, ok := f.get(name, false)
	if !ok {
		return otherwise
	}
	n, ok := v.value.(int64)
	switch {
	case !ok:
		f.p.problem(v.line, "%s must be a whole number", name)
	case n < least:
		f.p.problem(v.line, "%s is %d, must be at least %d", name, n, least)
	case n > most:
		f.p.problem(v.line, "%s is %d, must be at most %d", name, n, most)
	default:
		return n
	}
	return otherwise
}

func (f *fields) duration(name string) time.Duration {
	v, ok := f.get(name, false)
	if !ok {
		return 0
	}
	text, _ := v.value.(string)
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 {
		f.p.problem(v.line, `%s must be a duration above 0, such as "5s" or "250ms"`, name)
		return 0
	}
	return d
}

func (f *fields) box(name string) *Box {
	v, ok := f.get(name, false)
	if !ok {
		return nil
	}
	list, _ := v.value.([]setting)
	var edges []float64
	for _, e := range list {
		switch n := e.value.(type) {
		case float64:
			edges = append(edges, n)
		case int64:
			edges = append(edges, float64(n))
		}
	}
	if len(list) != 4 || len(edges) != 4 {
		f.p.problem(v.line, "%s must be four numbers: west, south, east, north", name)
		return nil
	}
	b := &Box{West: edges[0], South: edges[1], East: edges[2], North: edges[3]}
	if !(-180 <= b.West && b.West < b.East && b.East <= 180 && -90 <= b.South && b.South < b.North && b.North <= 90) {
		f.p.problem(v.line, "%s must be west < east within 180 and south < north within 90 degrees", name)
		return nil
	}
	return b
}

func (f *fields) cells(name string, required bool) (cells []Cell, lines []int) {
	v, ok := f.get(name, required)
	if !ok {
		return nil, nil
	}
	list, ok := v.value.([]setting)
	if !ok || required && len(list) == 0 {
		f.p.problem(v.line, "%s must be a list of geohash cells", name)
		return nil, nil
	}
	seen := map[Cell]bool{}
	for _, e := range list {
		text, isText := e.value.(string)
		if !isText {
			f.p.problem(e.line, "%s must hold texts: geohash cells of %d characters", name, Precision)
			continue
		}
		cell, err := ParseCell(text)
		switch {
		case err != nil:
			f.p.problem(e.line, "%s: %v", name, err)
		case seen[cell]:
			f.p.problem(e.line, "%s: cell %s is there twice", name, cell)
		default:
			seen[cell] = true
			cells, lines = append(cells, cell), append(lines, e.line)
		}
	}
	return cells, lines
}

// refuseOthers reports settings that nobody asked for.
func (f *fields) refuseOthers() {
	for _, name := range slices.Sorted(maps.Keys(f.s.settings)) {
		if !slices.Contains(f.known, name) {
			f.p.problem(f.s.settings[name].line, "unknown setting %s (a region has %s)", name, strings.Join(f.known, ", "))
		}
	}
}
