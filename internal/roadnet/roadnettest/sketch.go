package roadnettest

import "milepost/internal/roadnet"

// Road is a way as the map's text has it, for pictures: roads that no vehicle may use are there too.
type Road struct {
	Name   string
	Nodes  []string
	Oneway bool
	Tags   roadnet.Tags
}

// Rule is a turn restriction as the map's text has it.
type Rule struct {
	Kind    string   // no_left_turn, ...
	Members []string // from, via ..., to
	Broken  bool     // a member is not in the map
}

// Roads returns the ways of the map's text, in order.
func (m *Map) Roads() []Road { return m.roads }

// Rules returns the turn restrictions of the map's text, in order.
func (m *Map) Rules() []Rule { return m.rules }

// Place returns where a node is, in metres east and north of the origin, with its tags; false where the text gives it no place.
func (m *Map) Place(name string) (x, y float64, tags roadnet.Tags, ok bool) {
	id, ok := m.nodes[name]
	if !ok {
		return 0, 0, nil, false
	}
	n := m.places[id-1]
	return n.x, n.y, n.tags, n.known
}
