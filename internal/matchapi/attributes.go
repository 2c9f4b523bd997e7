package matchapi

import "slices"

// attributes says which parts of an answer are wanted.
type attributes map[string]bool

// edgeAttributes and pointAttributes name the parts of an answer that a filter may choose, and take them out where it does not. Names are
// Valhalla's, where it has the thing.
func edgeAttributes() []attribute[Edge] {
	return []attribute[Edge]{
		{"edge.way_id", func(e *Edge) { e.WayID = nil }},
		{"edge.from_node", func(e *Edge) { e.FromNode = nil }},
		{"edge.to_node", func(e *Edge) { e.ToNode = nil }},
		{"edge.length", func(e *Edge) { e.Length = nil }},
		{"edge.speed", func(e *Edge) { e.Speed = nil }},
		{"edge.speed_limit", func(e *Edge) { e.SpeedLimit = nil }},
		{"edge.road_class", func(e *Edge) { e.RoadClass = "" }},
		{"edge.use", func(e *Edge) { e.Use = "" }},
		{"edge.traversability", func(e *Edge) { e.Traversability = "" }},
		{"edge.travel_mode", func(e *Edge) { e.TravelMode = "" }},
		{"edge.vehicle_type", func(e *Edge) { e.VehicleType = "" }},
		{"edge.lane_count", func(e *Edge) { e.LaneCount = nil }},
		{"edge.tunnel", func(e *Edge) { e.Tunnel = false }},
		{"edge.bridge", func(e *Edge) { e.Bridge = false }},
		{"edge.roundabout", func(e *Edge) { e.Roundabout = false }},
		{"edge.begin_heading", func(e *Edge) { e.BeginHeading = nil }},
		{"edge.end_heading", func(e *Edge) { e.EndHeading = nil }},
		{"edge.begin_shape_index", func(e *Edge) { e.BeginShapeIndex = nil }},
		{"edge.end_shape_index", func(e *Edge) { e.EndShapeIndex = nil }},
		{"edge.source_percent_along", func(e *Edge) { e.SourcePercentAlong = nil }},
		{"edge.target_percent_along", func(e *Edge) { e.TargetPercentAlong = nil }},
		{"edge.begin_time", func(e *Edge) { e.BeginTime = "" }},
		{"edge.end_time", func(e *Edge) { e.EndTime = "" }},
		{"edge.segment", func(e *Edge) { e.Segment = nil }},
		{"edge.flags", func(e *Edge) { e.Flags = nil }},
	}
}

func pointAttributes() []attribute[MatchedPoint] {
	return []attribute[MatchedPoint]{
		{"matched.point", func(p *MatchedPoint) { p.Lat, p.Lon = nil, nil }},
		{"matched.type", func(p *MatchedPoint) { p.Type = "" }},
		{"matched.edge_index", func(p *MatchedPoint) { p.EdgeIndex = nil }},
		{"matched.begin_route_discontinuity", func(p *MatchedPoint) { p.BeginRouteDiscontinuity = false }},
		{"matched.end_route_discontinuity", func(p *MatchedPoint) { p.EndRouteDiscontinuity = false }},
		{"matched.distance_along_edge", func(p *MatchedPoint) { p.DistanceAlongEdge = nil }},
		{"matched.distance_from_trace_point", func(p *MatchedPoint) { p.DistanceFromTracePoint = nil }},
		{"matched.disposition", func(p *MatchedPoint) { p.Disposition = "" }},
		{"matched.confidence", func(p *MatchedPoint) { p.Confidence = nil }},
		{"matched.way_id", func(p *MatchedPoint) { p.WayID = nil }},
		{"matched.from_node", func(p *MatchedPoint) { p.FromNode = nil }},
		{"matched.to_node", func(p *MatchedPoint) { p.ToNode = nil }},
		{"matched.offset", func(p *MatchedPoint) { p.Offset = nil }},
		{"matched.heading", func(p *MatchedPoint) { p.Heading = nil }},
		{"matched.segment", func(p *MatchedPoint) { p.Segment = nil }},
		{"matched.accuracy_clamped", func(p *MatchedPoint) { p.AccuracyClamped = false }},
	}
}

type attribute[T any] struct {
	name  string
	clear func(*T)
}

// The parts of an answer that are neither an edge's nor a point's.
const (
	attributeShape      = "shape"
	attributeConfidence = "confidence_score"
)

// attributeNames lists every name.
func attributeNames() []string {
	names := []string{attributeShape, attributeConfidence}
	for _, a := range edgeAttributes() {
		names = append(names, a.name)
	}
	for _, a := range pointAttributes() {
		names = append(names, a.name)
	}
	return names
}

func all() attributes {
	keep := attributes{}
	for _, name := range attributeNames() {
		keep[name] = true
	}
	return keep
}

// cleared are the attributes of a table that are not wanted.
func cleared[T any](table []attribute[T], keep attributes) []func(*T) {
	var out []func(*T)
	for _, a := range table {
		if !keep[a.name] {
			out = append(out, a.clear)
		}
	}
	return out
}

// none says that no attribute of a table is wanted.
func none[T any](table []attribute[T], keep attributes) bool {
	return !slices.ContainsFunc(table, func(a attribute[T]) bool { return keep[a.name] })
}

// whyNot explains names of Valhalla's that have nothing behind them here; empty for others.
func whyNot(name string) string {
	switch name {
	case "edge.names", "edge.surface", "edge.unpaved", "edge.toll", "edge.sign.exit_number", "edge.sign.exit_branch", "edge.sign.exit_toward",
		"edge.sign.exit_name", "edge.weighted_grade", "edge.max_upward_grade", "edge.max_downward_grade", "edge.mean_elevation", "edge.sidewalk",
		"edge.cycle_lane", "edge.bicycle_network", "edge.density", "edge.truck_speed", "edge.truck_route", "edge.drive_on_right",
		"edge.sac_scale", "edge.shoulder", "edge.country_crossing", "edge.forward", "osm_changeset", "admin.country_code", "admin.country_text",
		"admin.state_code", "admin.state_text":
		return "left out: the road map here does not hold it"
	case "edge.id":
		return "left out: edges are named by edge.way_id, edge.from_node and edge.to_node"
	}
	return ""
}
