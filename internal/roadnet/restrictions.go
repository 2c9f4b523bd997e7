package roadnet

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// rawTurn is a turn restriction as the file has it.
type rawTurn struct {
	id       int64 // of the relation
	kinds    []turnKind
	from, to []int64 // ways
	via      int64   // node, where there are no
	over     []int64 // ways
}

// turnKind is what a restriction says to some classes of vehicles.
type turnKind struct {
	only  bool
	uTurn bool // no_u_turn or only_u_turn
	set   Vehicles
}

// AddRelation takes a turn restriction and ignores every other relation.
func (b *Builder) AddRelation(id int64, members []Member, tags Tags) {
	if !isRestriction(tags) {
		return
	}
	if b.needed != nil {
		b.err = fmt.Errorf("relation %d: %w", id, ErrOrder)
		return
	}
	t := rawTurn{id: id, kinds: b.rules.turnKinds(tags)}
	if len(t.kinds) == 0 {
		b.stats.RestrictionsIgnored++
		return
	}
	vias := 0
	for _, m := range members {
		switch {
		case m.Role == "from" && m.Kind == MemberWay:
			t.from = append(t.from, m.Ref)
		case m.Role == "to" && m.Kind == MemberWay:
			t.to = append(t.to, m.Ref)
		case m.Role == "via" && m.Kind == MemberNode:
			t.via = m.Ref
			vias++
		case m.Role == "via" && m.Kind == MemberWay:
			t.over = append(t.over, m.Ref)
		}
	}
	many := len(t.from) > 1 || len(t.to) > 1
	switch {
	case len(t.from) == 0 || len(t.to) == 0:
		b.broken(id, "a restriction without a from or a to")
	case vias > 1 || vias+len(t.over) == 0 || vias > 0 && len(t.over) > 0:
		b.broken(id, "a restriction with neither one via node nor via ways alone")
	case many && slices.ContainsFunc(t.kinds, func(k turnKind) bool { return k.only }):
		b.broken(id, "an only_ restriction with several entries or exits")
	default:
		b.turns = append(b.turns, t)
	}
}

func (b *Builder) broken(id int64, text string) {
	b.stats.RestrictionsBroken++
	b.found(MemberRelation, id, text)
}

func isRestriction(t Tags) bool {
	kind := t.Get("type")
	return kind == "restriction" || strings.HasPrefix(kind, "restriction:")
}

// turnKinds lists what a restriction says to the classes of the graph, those that hear the same together.
func (r *rules) turnKinds(t Tags) (kinds []turnKind) {
	for v := range Vehicle(numVehicles) {
		if !r.set.Has(v) {
			continue
		}
		text := restrictionFor(t, r.profiles.of[v].turns)
		k := turnKind{only: strings.HasPrefix(text, "only_"), uTurn: strings.HasSuffix(text, "_u_turn")}
		if !k.only && !strings.HasPrefix(text, "no_") {
			continue
		}
		i := slices.IndexFunc(kinds, func(o turnKind) bool { return o.only == k.only && o.uTurn == k.uTurn })
		if i < 0 {
			i = len(kinds)
			kinds = append(kinds, k)
		}
		kinds[i].set |= v.bit()
	}
	return kinds
}

// restrictionFor returns the rule for a class by the names that restrictions have for it, empty where there is none.
func restrictionFor(t Tags, names []string) string {
	if len(names) == 0 {
		return ""
	}
	if _, vehicle, ok := strings.Cut(t.Get("type"), ":"); ok && !slices.Contains(names, vehicle) {
		return ""
	}
	for _, name := range names {
		if v := t.Get("restriction:" + name); v != "" {
			return v
		}
	}
	for v := range strings.SplitSeq(t.Get("except"), ";") {
		if slices.Contains(names, strings.TrimSpace(v)) {
			return ""
		}
	}
	return t.Get("restriction")
}

// applyTurns makes the automaton of the restrictions and of the barriers that keep out only some classes. A restriction that does not fit
// the map is ignored: a broken only_ rule must not close a junction.
func (b *Builder) applyTurns(g *Graph, l *layout) {
	a := newAutomaton(g)
	f := newFinder(g, b, l)
	for i := range b.turns {
		t := &b.turns[i]
		fits := false
		for _, k := range t.kinds {
			paths, ok := f.banned(t, k)
			fits = fits || ok
			for _, p := range paths {
				a.ban(p, k.set)
			}
		}
		switch {
		case !fits:
			b.broken(t.id, f.why(t))
		case len(t.over) > 0:
			b.stats.RestrictionsViaWay++
			fallthrough
		default:
			b.stats.Restrictions++
		}
	}
	for i, o := range b.barriers {
		if o.closed != 0 && o.closed != b.rules.set {
			a.shut(f.in[l.nodeOf[l.junction(i)]], o.closed)
		}
	}
	g.turns = a.build()
	b.stats.Bans, b.stats.BannedPaths, b.stats.States = a.pairBans(), len(a.ends), len(g.turns.edgeOf)
}

// finder turns the members of restrictions into runs of edges.
type finder struct {
	g   *Graph
	b   *Builder
	l   *layout
	in  map[NodeIndex][]EdgeIndex // edges that end at the via nodes, and at barriers that only some classes pass
	way map[int64][]EdgeIndex     // edges of the ways that restrictions over ways begin with or lead over
}

func newFinder(g *Graph, b *Builder, l *layout) *finder {
	f := &finder{g: g, b: b, l: l, in: map[NodeIndex][]EdgeIndex{}, way: map[int64][]EdgeIndex{}}
	for _, t := range b.turns {
		if len(t.over) == 0 {
			if n := f.node(t.via); n >= 0 {
				f.in[n] = nil
			}
			continue
		}
		for _, w := range slices.Concat(t.from, t.over) {
			f.way[w] = nil
		}
	}
	for i, o := range b.barriers {
		if n := l.nodeOf[l.junction(i)]; n >= 0 && o.closed != 0 && o.closed != b.rules.set {
			f.in[n] = nil
		}
	}
	for i := range g.edges {
		e := &g.edges[i]
		if list, ok := f.in[e.To]; ok {
			f.in[e.To] = append(list, EdgeIndex(i))
		}
		if list, ok := f.way[e.Way]; ok {
			f.way[e.Way] = append(list, EdgeIndex(i))
		}
	}
	return f
}

// node returns the junction of an OSM node, or -1.
func (f *finder) node(id int64) NodeIndex {
	i, ok := slices.BinarySearch(f.b.needed, id)
	if !ok {
		return -1
	}
	return f.l.nodeOf[f.l.junction(int32(i))]
}

// banned lists the runs of edges that a restriction forbids; not ok where its members do not meet.
func (f *finder) banned(t *rawTurn, k turnKind) (paths [][]EdgeIndex, ok bool) {
	for _, p := range f.approaches(t) {
		last := p[len(p)-1]
		out := f.g.Out(f.g.edges[last].To)
		to := func(e EdgeIndex) bool { return slices.Contains(t.to, f.g.edges[e].Way) }
		if !slices.ContainsFunc(out, to) {
			continue
		}
		ok = true
		for _, next := range out {
			// The turn back is priced anyhow; only a rule about U-turns speaks of it.
			back := f.g.edges[last].Twin == next
			if back && !k.uTurn || to(next) == k.only {
				continue
			}
			paths = append(paths, append(slices.Clone(p), next))
		}
	}
	return paths, ok
}

// why says what keeps a restriction from fitting the map.
func (f *finder) why(t *rawTurn) string {
	for _, w := range slices.Concat(t.from, t.over, t.to) {
		_, ok := slices.BinarySearchFunc(f.b.ways, w, func(have rawWay, id int64) int { return cmp.Compare(have.id, id) })
		if !ok {
			return fmt.Sprintf("a restriction that names way %d, which is not in the graph", w)
		}
	}
	switch {
	case len(t.over) > 0:
		return "a restriction whose ways do not meet one after the other"
	case f.node(t.via) < 0:
		return fmt.Sprintf("a restriction at node %d, which is no crossing of the graph", t.via)
	default:
		return fmt.Sprintf("a restriction whose ways do not meet at node %d in the directions that they are driven", t.via)
	}
}

// approaches lists the runs of edges over which a restriction's last crossing is reached.
func (f *finder) approaches(t *rawTurn) (paths [][]EdgeIndex) {
	if len(t.over) > 0 {
		for _, w := range t.from {
			for _, e := range f.way[w] {
				paths = f.follow(paths, t, []EdgeIndex{e}, -1, 0)
			}
		}
		return paths
	}
	via := f.node(t.via)
	if via < 0 {
		return nil
	}
	for _, e := range f.in[via] {
		if slices.Contains(t.from, f.g.edges[e].Way) {
			paths = append(paths, []EdgeIndex{e})
		}
	}
	return paths
}

// Bounds for restrictions over ways: real ones lead over a handful of edges.
const (
	maxRunEdges = 200
	maxRuns     = 1000
)

// follow goes on over the via ways, each of which must be driven from end to end: at is the index of the one that path is on, and driven
// the number of its edges in path.
func (f *finder) follow(paths [][]EdgeIndex, t *rawTurn, path []EdgeIndex, at, driven int) [][]EdgeIndex {
	if len(path) > maxRunEdges || len(paths) >= maxRuns {
		return paths
	}
	last := path[len(path)-1]
	whole := at < 0 || driven == f.stretches(t.over[at])
	if whole && at == len(t.over)-1 {
		return append(paths, slices.Clone(path))
	}
	next, count := at, driven+1
	if whole {
		next, count = at+1, 1
	}
	for _, e := range f.g.Out(f.g.edges[last].To) {
		if f.g.edges[e].Way != t.over[next] || f.g.edges[last].Twin == e || f.overlaps(path[len(path)-count+1:], e) {
			continue
		}
		paths = f.follow(paths, t, append(path, e), next, count)
	}
	return paths
}

// overlaps says whether the stretch of an edge is in a run, in either direction.
func (f *finder) overlaps(run []EdgeIndex, e EdgeIndex) bool {
	return slices.ContainsFunc(run, func(o EdgeIndex) bool { return f.g.shape[o]>>1 == f.g.shape[e]>>1 })
}

// stretches is how many there are of a way.
func (f *finder) stretches(way int64) int {
	n := 0
	for _, e := range f.way[way] {
		if twin := f.g.edges[e].Twin; twin == NoEdge || e < twin {
			n++
		}
	}
	return n
}
