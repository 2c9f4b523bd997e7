package matchapi

import (
	"fmt"
	"math"
	"time"

	"milepost/internal/fleet"
	"milepost/internal/fleet/offline"
	"milepost/internal/roadnet"
)

// Answer is what became of a trace.
type Answer struct {
	ID              string         `json:"id,omitempty"`
	Units           string         `json:"units"`
	Costing         string         `json:"costing"`
	Shape           any            `json:"shape,omitempty"` // where the trace is one segment
	Edges           []Edge         `json:"edges,omitempty"`
	MatchedPoints   []MatchedPoint `json:"matched_points,omitempty"`
	Segments        []Segment      `json:"segments"`
	ConfidenceScore *float64       `json:"confidence_score,omitempty"` // mean of the points that have a place
	MatchedShare    float64        `json:"matched_share"`              // of the points, that have a place
	Warnings        []Warning      `json:"warnings,omitempty"`
}

// Segment is an unbroken stretch. Ranges are half open.
type Segment struct {
	Segment   int64   `json:"segment"`
	Reset     string  `json:"reset,omitempty"` // why the one before ended
	BeginEdge *int    `json:"begin_edge_index,omitempty"`
	EndEdge   *int    `json:"end_edge_index,omitempty"`
	Length    float64 `json:"length"`
	Graph     string  `json:"graph,omitempty"`
	Shape     any     `json:"shape,omitempty"`
}

// Edge is one traversal of a directed edge, or of the part of it that was driven.
type Edge struct {
	WayID              *int64   `json:"way_id,omitempty"`
	FromNode           *int64   `json:"from_node,omitempty"`
	ToNode             *int64   `json:"to_node,omitempty"`
	Length             *float64 `json:"length,omitempty"`
	Speed              *int     `json:"speed,omitempty"`
	SpeedLimit         *int     `json:"speed_limit,omitempty"`
	RoadClass          string   `json:"road_class,omitempty"`
	Use                string   `json:"use,omitempty"`
	Traversability     string   `json:"traversability,omitempty"`
	TravelMode         string   `json:"travel_mode,omitempty"`
	VehicleType        string   `json:"vehicle_type,omitempty"`
	LaneCount          *int     `json:"lane_count,omitempty"`
	Tunnel             bool     `json:"tunnel,omitempty"`
	Bridge             bool     `json:"bridge,omitempty"`
	Roundabout         bool     `json:"roundabout,omitempty"`
	BeginHeading       *int     `json:"begin_heading,omitempty"`
	EndHeading         *int     `json:"end_heading,omitempty"`
	BeginShapeIndex    *int     `json:"begin_shape_index,omitempty"`
	EndShapeIndex      *int     `json:"end_shape_index,omitempty"`
	SourcePercentAlong *float64 `json:"source_percent_along,omitempty"`
	TargetPercentAlong *float64 `json:"target_percent_along,omitempty"`
	BeginTime          string   `json:"begin_time,omitempty"`
	EndTime            string   `json:"end_time,omitempty"`
	Segment            *int64   `json:"segment,omitempty"`
	Flags              []string `json:"flags,omitempty"`
}

// MatchedPoint is what became of a point.
type MatchedPoint struct {
	Lat                     *float64 `json:"lat,omitempty"`
	Lon                     *float64 `json:"lon,omitempty"`
	Type                    string   `json:"type,omitempty"`
	EdgeIndex               *int     `json:"edge_index,omitempty"`
	BeginRouteDiscontinuity bool     `json:"begin_route_discontinuity,omitempty"`
	EndRouteDiscontinuity   bool     `json:"end_route_discontinuity,omitempty"`
	DistanceAlongEdge       *float64 `json:"distance_along_edge,omitempty"`
	DistanceFromTracePoint  *float64 `json:"distance_from_trace_point,omitempty"`
	Disposition             string   `json:"disposition,omitempty"`
	Confidence              *float64 `json:"confidence,omitempty"`
	WayID                   *int64   `json:"way_id,omitempty"`
	FromNode                *int64   `json:"from_node,omitempty"`
	ToNode                  *int64   `json:"to_node,omitempty"`
	Offset                  *float64 `json:"offset,omitempty"` // metres
	Heading                 *float64 `json:"heading,omitempty"`
	Segment                 *int64   `json:"segment,omitempty"`
	AccuracyClamped         bool     `json:"accuracy_clamped,omitempty"`
}

// builder makes the answer of a trip.
type builder struct {
	req  *request
	trip *offline.Trip
	loc  *offline.Locator
	out  Answer

	lastPlaced int // number of the last point with a place so far, -1 none
	roads      []offline.Road
}

func answer(req *request, trip *offline.Trip, loc *offline.Locator) *Answer {
	b := &builder{req: req, trip: trip, loc: loc, lastPlaced: -1, out: Answer{
		ID: req.id, Units: "kilometers", Costing: costingOf(req.vehicle), Segments: []Segment{}, Warnings: req.warnings,
		MatchedShare: round(trip.Share(), 4), MatchedPoints: make([]MatchedPoint, len(trip.Observations)),
	}}
	if req.miles {
		b.out.Units = "miles"
	}
	for i := range trip.Segments {
		b.segment(&trip.Segments[i])
	}
	b.finish()
	return &b.out
}

func (b *builder) segment(s *offline.Segment) {
	edges := s.Edges()
	first := len(b.out.Edges)
	out := Segment{Segment: s.Number, Reset: s.Reset, Graph: s.Graph}
	var line [][2]float64
	metres := 0.0
	b.roads = b.roads[:0]
	for i := range edges {
		metres += edges[i].ToM - edges[i].FromM
		line = b.edge(&edges[i], line)
	}
	if out.Length = round(b.length(metres), 3); len(edges) > 0 {
		out.BeginEdge, out.EndEdge = new(first), new(len(b.out.Edges))
		out.Shape = b.shape(line)
	}
	for i := first; i < len(b.out.Edges); i++ {
		b.out.Edges[i].Segment = new(s.Number)
	}
	b.points(s, edges, first)
	b.out.Segments = append(b.out.Segments, out)
}

// edge appends an edge and its line, and gives the line.
func (b *builder) edge(s *fleet.Span, line [][2]float64) [][2]float64 {
	begin := len(line)
	for _, p := range s.Geometry {
		if n := len(line); n == 0 || line[n-1] != p {
			line = append(line, p)
		} else if n == begin {
			begin = n - 1
		}
	}
	e := Edge{
		WayID: &s.Way, FromNode: &s.From, ToNode: &s.To, Length: new(round(b.length(s.ToM-s.FromM), 3)), Flags: offline.Flags(s),
		BeginShapeIndex: new(begin), EndShapeIndex: new(max(len(line)-1, 0)),
	}
	if !b.req.assumed {
		e.BeginTime, e.EndTime = stamp(s.Start), stamp(s.End)
	}
	r, ok := b.loc.Road(s)
	if ok {
		b.road(&e, s, &r)
	}
	b.roads = append(b.roads, r)
	b.out.Edges = append(b.out.Edges, e)
	return line
}

// road fills in what the map knows.
func (b *builder) road(e *Edge, s *fleet.Span, r *offline.Road) {
	e.Speed = new(int(math.Round(b.length(float64(r.FreeFlow) * 1000))))
	if r.Flags&roadnet.FlagPosted != 0 && r.Class != roadnet.ClassFerry {
		e.SpeedLimit = new(int(math.Round(b.length(float64(r.SpeedKMH) * 1000))))
	}
	e.RoadClass, e.Use = roadClass(r.Class), use(r)
	e.TravelMode, e.VehicleType = mode(b.req.vehicle)
	if e.Traversability = "both"; r.Flags&roadnet.FlagContraflow != 0 {
		e.Traversability = "backward"
	} else if r.Flags&roadnet.FlagOneway != 0 {
		e.Traversability = "forward"
	}
	if r.Lanes > 0 {
		e.LaneCount = new(int(r.Lanes))
	}
	e.Tunnel, e.Bridge, e.Roundabout = r.Flags&roadnet.FlagTunnel != 0, r.Flags&roadnet.FlagBridge != 0, r.Flags&roadnet.FlagRoundabout != 0
	e.BeginHeading, e.EndHeading = new(degrees(r.Begin)), new(degrees(r.End))
	if r.LengthM > 0 {
		if from := s.FromM / r.LengthM; from > 1e-6 {
			e.SourcePercentAlong = new(round(min(from, 1), 6))
		}
		if to := s.ToM / r.LengthM; to < 1-1e-6 {
			e.TargetPercentAlong = new(round(to, 6))
		}
	}
}

// points fills in the points of a segment.
func (b *builder) points(s *offline.Segment, edges []fleet.Span, first int) {
	seen, numbers := b.trip.Of(s.Number), b.trip.Numbers(s.Number)
	on := offline.OnPath(edges, seen)
	begun := false
	for i := range seen {
		p := &b.out.MatchedPoints[numbers[i]]
		b.point(p, &seen[i])
		if seen[i].Place == nil {
			continue
		}
		if k := on[i]; k >= 0 {
			p.EdgeIndex = new(first + k)
			if m := b.roads[k].LengthM; m > 0 {
				p.DistanceAlongEdge = new(round(min(seen[i].Place.OffsetM/m, 1), 6))
			}
		}
		if !begun && b.lastPlaced >= 0 {
			p.BeginRouteDiscontinuity = true
			b.out.MatchedPoints[b.lastPlaced].EndRouteDiscontinuity = true
		}
		begun, b.lastPlaced = true, numbers[i]
	}
}

func (b *builder) point(p *MatchedPoint, o *offline.Observed) {
	*p = MatchedPoint{
		Lat: &o.Lat, Lon: &o.Lon, Type: "unmatched", Disposition: o.Disposition, Segment: new(o.Segment), AccuracyClamped: o.Clamped,
	}
	at := o.Place
	if at == nil {
		return
	}
	if p.Type = "interpolated"; o.Disposition == fleet.Matched || o.Disposition == fleet.Standing {
		p.Type = "matched"
	}
	p.Lat, p.Lon = &at.Lat, &at.Lon
	p.Confidence = new(round(at.Confidence, 3))
	p.WayID, p.FromNode, p.ToNode, p.Offset, p.Heading = &at.Way, &at.From, &at.To, &at.OffsetM, &at.HeadingDeg
	p.DistanceFromTracePoint = new(round(offline.Metres([2]float64{o.Lon, o.Lat}, [2]float64{at.Lon, at.Lat}), 3))
}

// finish makes the whole of the parts, and takes out what is not wanted.
func (b *builder) finish() {
	sum, n := 0.0, 0
	for i := range b.trip.Observations {
		if p := b.trip.Observations[i].Place; p != nil {
			sum += p.Confidence
			n++
		}
	}
	if n > 0 && b.req.keep[attributeConfidence] {
		b.out.ConfidenceScore = new(round(sum/float64(n), 3))
	}
	driven := 0
	for i := range b.out.Segments {
		if b.out.Segments[i].Shape != nil {
			driven++
		}
	}
	switch {
	case n == 0:
		b.out.Warnings = append(b.out.Warnings, Warning{Text: "no point of the trace lies on a road of the map"})
	case len(b.out.Segments) == 1:
		b.out.Shape = b.out.Segments[0].Shape
	case driven > 0:
		b.out.Warnings = append(b.out.Warnings, Warning{
			Text: fmt.Sprintf("the trace is broken into %d segments: each has a shape of its own, and the indices into shapes are of those", len(b.out.Segments)),
		})
	}
	b.choose()
}

func (b *builder) choose() {
	keep := b.req.keep
	if drop := cleared(edgeAttributes(), keep); len(drop) > 0 {
		for i := range b.out.Edges {
			for _, f := range drop {
				f(&b.out.Edges[i])
			}
		}
	}
	if drop := cleared(pointAttributes(), keep); len(drop) > 0 {
		for i := range b.out.MatchedPoints {
			for _, f := range drop {
				f(&b.out.MatchedPoints[i])
			}
		}
	}
	if none(edgeAttributes(), keep) {
		b.out.Edges = nil
	}
	if none(pointAttributes(), keep) {
		b.out.MatchedPoints = nil
	}
}

// shape writes a line as it is wanted; nil: it is not.
func (b *builder) shape(line [][2]float64) any {
	if !b.req.keep[attributeShape] {
		return nil
	}
	switch b.req.shape {
	case polyline6:
		return fleet.EncodePolyline6(line)
	case polyline5:
		return fleet.EncodePolyline5(line)
	case wkt:
		return fleet.EncodeWKT(line)
	case geoJSON:
		if len(line) == 1 {
			line = append(line, line[0])
		}
		return map[string]any{"type": "LineString", "coordinates": line}
	case noShape:
	}
	return nil
}

// length gives metres in the units of the answer, kilometres or miles.
func (b *builder) length(metres float64) float64 {
	if b.req.miles {
		return metres / 1609.344
	}
	return metres / 1000
}

func round(x float64, decimals int) float64 {
	p := math.Pow10(decimals)
	return math.Round(x*p) / p
}

func degrees(bearing float64) int { return int(math.Round(bearing)) % 360 }

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }

// mode is Valhalla's travel mode and type of vehicle.
func mode(v roadnet.Vehicle) (travel, vehicle string) {
	switch v {
	case roadnet.Bicycle:
		return "bicycle", ""
	case roadnet.Foot:
		return "pedestrian", ""
	case roadnet.Truck:
		return "drive", "tractor_trailer"
	case roadnet.Bus:
		return "drive", "bus"
	case roadnet.Car:
	}
	return "drive", "car"
}

// roadClass is Valhalla's class of road.
func roadClass(c roadnet.Class) string {
	switch {
	case c >= roadnet.ClassMotorway && c <= roadnet.ClassResidential:
		return c.String()
	case c == roadnet.ClassLivingStreet, c == roadnet.ClassRoad:
		return "residential"
	}
	return "service_other"
}

// use is Valhalla's use of a road.
func use(r *offline.Road) string {
	switch r.Class {
	case roadnet.ClassFerry, roadnet.ClassTrack, roadnet.ClassLivingStreet, roadnet.ClassCycleway, roadnet.ClassFootway, roadnet.ClassPath,
		roadnet.ClassPedestrian, roadnet.ClassBridleway, roadnet.ClassSteps:
		return r.Class.String()
	case roadnet.ClassService:
		return "service_road"
	case roadnet.ClassMotorway, roadnet.ClassTrunk, roadnet.ClassPrimary, roadnet.ClassSecondary, roadnet.ClassTertiary,
		roadnet.ClassUnclassified, roadnet.ClassResidential, roadnet.ClassRoad, roadnet.ClassBusway:
	}
	if r.Flags&roadnet.FlagLink != 0 {
		return "ramp"
	}
	return "road"
}
