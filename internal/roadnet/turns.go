package roadnet

import (
	"fmt"
	"slices"
	"strings"
)

// rawTurn is a turn restriction as the file has it.
type rawTurn struct {
	only     bool
	uTurn    bool // no_u_turn or only_u_turn
	from, to []int64
	via      int64 // node
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
	kind := restrictionFor(tags)
	only := strings.HasPrefix(kind, "only_")
	if !only && !strings.HasPrefix(kind, "no_") {
		b.stats.RestrictionsIgnored++
		return
	}
	t := rawTurn{only: only, uTurn: strings.HasSuffix(kind, "_u_turn")}
	vias, viaWays := 0, 0
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
			viaWays++
		}
	}
	switch {
	case len(t.from) == 0 || len(t.to) == 0 || vias > 1 || vias+viaWays == 0:
		b.stats.RestrictionsBroken++
	case viaWays > 0:
		b.stats.RestrictionsViaWay++
	case only && (len(t.from) > 1 || len(t.to) > 1):
		b.stats.RestrictionsBroken++
	default:
		b.turns = append(b.turns, t)
	}
}

func isRestriction(t Tags) bool {
	kind := t.Get("type")
	return kind == "restriction" || strings.HasPrefix(kind, "restriction:")
}

// restrictionFor returns the rule for cars, empty where there is none.
func restrictionFor(t Tags) string {
	kind := t.Get("type")
	if _, vehicle, ok := strings.Cut(kind, ":"); ok && vehicle != "motorcar" && vehicle != "motor_vehicle" {
		return ""
	}
	for _, key := range [...]string{"restriction:motorcar", "restriction:motor_vehicle", "restriction:vehicle"} {
		if v := t.Get(key); v != "" {
			return v
		}
	}
	for v := range strings.SplitSeq(t.Get("except"), ";") {
		switch strings.TrimSpace(v) {
		case "motorcar", "motor_vehicle", "vehicle":
			return ""
		}
	}
	return t.Get("restriction")
}

// applyTurns makes pairs of edges of the restrictions. One that does not fit the map is ignored: a broken only_ rule must not close a
// junction.
func (b *Builder) applyTurns(g *Graph, l *layout) {
	in := arrivals(g, b.turns, l, b)
	for _, t := range b.turns {
		if bans, ok := t.bans(g, b.node(l, t.via), in); ok {
			b.stats.Restrictions++
			g.banned = append(g.banned, bans...)
		} else {
			b.stats.RestrictionsBroken++
		}
	}
	slices.Sort(g.banned)
	g.banned = slices.Clip(slices.Compact(g.banned))
	for _, k := range g.banned {
		from := k >> 32
		g.banFrom[from>>6] |= 1 << (from & 63)
	}
}

// node returns the junction of an OSM node, or -1.
func (b *Builder) node(l *layout, id int64) NodeIndex {
	i, ok := slices.BinarySearch(b.needed, id)
	if !ok {
		return -1
	}
	return l.nodeOf[l.junction(int32(i))]
}

// arrivals lists the edges that end at the nodes of restrictions.
func arrivals(g *Graph, turns []rawTurn, l *layout, b *Builder) map[NodeIndex][]EdgeIndex {
	in := make(map[NodeIndex][]EdgeIndex, len(turns))
	for _, t := range turns {
		if n := b.node(l, t.via); n >= 0 {
			in[n] = nil
		}
	}
	for i := range g.edges {
		if list, ok := in[g.edges[i].To]; ok {
			in[g.edges[i].To] = append(list, EdgeIndex(i))
		}
	}
	return in
}

// bans lists the pairs of edges that a restriction forbids; not ok where its members do not meet at the node.
func (t rawTurn) bans(g *Graph, via NodeIndex, in map[NodeIndex][]EdgeIndex) (keys []uint64, ok bool) {
	if via < 0 {
		return nil, false
	}
	to := func(e EdgeIndex) bool { return slices.Contains(t.to, g.edges[e].Way) }
	out := g.Out(via)
	if !slices.ContainsFunc(out, to) {
		return nil, false
	}
	for _, from := range in[via] {
		if !slices.Contains(t.from, g.edges[from].Way) {
			continue
		}
		ok = true
		for _, next := range out {
			// The turn back is priced anyhow; only a rule about U-turns speaks of it.
			back := g.edges[from].Twin == next
			if back && !t.uTurn || to(next) == t.only {
				continue
			}
			keys = append(keys, turnKey(from, next))
		}
	}
	return keys, ok
}
