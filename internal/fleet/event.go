package fleet

import (
	"encoding/json"
	"fmt"
	"time"
)

// EventSchema is the version of Event's JSON form.
const EventSchema = 1

// Event is one output on the matched topic: what one observation did to a vehicle's path. There is exactly one an
// observation; all that the observation caused is in it, the reset that opens a segment included.
type Event struct {
	Schema      int       `json:"schema"`
	ID          string    `json:"id"` // the record's ce_id
	Vehicle     string    `json:"vehicle"`
	Segment     int64     `json:"segment"`
	Revision    string    `json:"revision"` // <topic generation>.<offset> of the observation
	Time        time.Time `json:"time"`
	Lon         float64   `json:"lon"` // as observed, degrees
	Lat         float64   `json:"lat"`
	Disposition string    `json:"disposition"`
	Graph       string    `json:"graph,omitempty"` // first 8 bytes of the graph's hash; with a solved observation
	// AccuracyClamped: the observation is so vague that roads were sought less far away than it asks for (M38).
	AccuracyClamped bool `json:"accuracy_clamped,omitempty"`
	// Reset opens Segment; it goes before everything else in the event but Closed.
	Reset *SegmentReset `json:"reset,omitempty"`
	// Closed is what became final of the segment that the reset ends. After it that segment is complete.
	Closed *Final `json:"closed,omitempty"`
	// Retracted says which part of the segment that the reset ends was announced and will never become final.
	Retracted *Retraction `json:"retracted,omitempty"`
	// Seq numbers the observations that a solver saw within the segment. Provisional positions and path from
	// Supersedes on are replaced by this event's.
	Seq         *int64    `json:"seq,omitempty"`
	Supersedes  *int64    `json:"supersedes,omitempty"`
	Provisional *Position `json:"provisional,omitempty"`
	Path        []Span    `json:"path,omitempty"` // the way to Provisional, from the point before Supersedes
	// Final never changes again. Final spans partition a segment's drive exactly once, in order.
	Final *Final `json:"final,omitempty"`
}

// SegmentReset opens a segment.
type SegmentReset struct {
	Reason          string `json:"reason"`
	PreviousSegment int64  `json:"previous_segment"`
}

// Retraction voids what a segment announced and did not make final.
type Retraction struct {
	Segment int64  `json:"segment"`
	FromSeq *int64 `json:"from_seq,omitempty"` // absent: everything that is not final
}

// Final is what became final of a segment.
type Final struct {
	Segment int64      `json:"segment"`
	Points  []Position `json:"points,omitempty"`
	Path    []Span     `json:"path,omitempty"`
}

// Position is the place of one observation. Place is nil where it has none (off road, outlier).
type Position struct {
	Seq         int64     `json:"seq"`
	Time        time.Time `json:"time"`
	Disposition string    `json:"disposition"`
	*Place
}

// Place is a place on the road network.
type Place struct {
	Way        int64   `json:"way"`  // OSM way id
	From       int64   `json:"from"` // OSM node ids of the directed edge's ends
	To         int64   `json:"to"`
	OffsetM    float64 `json:"offset_m"` // metres from From along the edge
	Lon        float64 `json:"lon"`      // snapped, degrees
	Lat        float64 `json:"lat"`
	HeadingDeg float64 `json:"heading_deg"` // of the road, degrees clockwise from north
	Confidence float64 `json:"confidence"`  // [0,1]
}

// Span is a stretch driven on one edge. One of no length tells, in Entered, of a turn at the very place of an observation.
type Span struct {
	Way   int64     `json:"way"`
	From  int64     `json:"from"`
	To    int64     `json:"to"`
	FromM float64   `json:"from_m"` // metres along the edge
	ToM   float64   `json:"to_m"`
	Start time.Time `json:"start"`
	End   time.Time `json:"end"`
	// Nodes are OSM nodes in driving order, from the last at or before FromM to the first at or after ToM.
	Nodes      []int64      `json:"nodes,omitempty"`
	Geometry   [][2]float64 `json:"geometry,omitempty"`
	Polyline6  string       `json:"polyline6,omitempty"`  // in the place of Geometry, where Config.Geometry asks for it
	WKT        string       `json:"wkt,omitempty"`        // the same
	Inferred   bool         `json:"inferred,omitempty"`   // bridged: no observation on it
	Private    bool         `json:"private,omitempty"`    // only for those with business there (M30)
	Contraflow bool         `json:"contraflow,omitempty"` // against a one-way street (M27)
	Entered    string       `json:"entered,omitempty"`    // how FromM was reached, where that is worth a word
}

// How spans are entered.
const (
	EnteredUTurn  = "u_turn"
	EnteredBanned = "banned_turn" // against a turn restriction (M28)
)

// DecodeEvent reads an output's value.
func DecodeEvent(b []byte) (Event, error) {
	var e Event
	if err := json.Unmarshal(b, &e); err != nil {
		return Event{}, fmt.Errorf("decode matched event: %w", err)
	}
	if e.Schema != EventSchema {
		return Event{}, fmt.Errorf("decode matched event: schema %d, this reads %d", e.Schema, EventSchema)
	}
	return e, nil
}
