package mapmatch

import (
	"errors"
	"time"

	"milepost/internal/roadnet"
)

// Observation is one position of a vehicle.
type Observation struct {
	Time      time.Time
	Point     roadnet.Point
	AccuracyM float64 // NaN: not given
	SpeedMPS  float64 // NaN: not given
	Heading   float64 // degrees clockwise from north, NaN: not given
}

// Disposition says what became of an observation.
type Disposition uint8

// The dispositions.
const (
	Matched      Disposition = iota + 1
	Standing                 // at rest, within the noise of the last position
	Interpolated             // too near the last used point to be a layer of its own: its position follows when its span is final
	OffRoad                  // no road near enough
	Outlier                  // physically impossible beside its neighbours
	Regressed                // not after the last observation: state untouched
)

// Break says why a match could not go on from the points before.
type Break uint8

// The reasons for a break.
const (
	NoBreak      Break = iota
	BreakGap           // too long without an observation
	BreakJump          // no path that a vehicle could have driven
	BreakOffRoad       // the vehicle left the network
)

// Position is a place on the network.
type Position struct {
	Seq         int64 // of the observation within the state's life, from 0
	Time        time.Time
	Key         roadnet.EdgeKey
	OffsetM     float64 // from the edge's first node, along its geometry
	Snapped     roadnet.Point
	Heading     float64 // of the road there
	Confidence  float64 // [0,1]
	Disposition Disposition
}

// Span is a stretch driven on one edge. Stretches put out one after the other on the same edge touch: the second's
// FromM is the first's ToM, and the node pair that it begins in is the one that the first ended in (see AppendPairs). One that has no
// length tells of a turn, U-turn or banned, at the very place of an observation: Entered has it, and what is driven on from there follows.
type Span struct {
	Key        roadnet.EdgeKey
	FromM, ToM float64 // offsets along the edge
	Start, End time.Time
	Nodes      []int64         // OSM nodes in driving order, from the last at or before FromM to the first at or after ToM: at least two
	Geometry   []roadnet.Point // from FromM to ToM
	Inferred   bool            // bridged: no observation on it
	Private    bool            // only for those with business there (M30)
	Contraflow bool            // against a one-way street (M27)
	Entered    roadnet.Turn    // how the edge was entered at FromM: TurnU also in the middle of a road
}

// Result is what one observation changed.
type Result struct {
	Seq         int64 // of the observation; -1 where it was Regressed
	Disposition Disposition
	// AccuracyClamped says that the observation is vaguer than the search for candidates is wide (M38).
	AccuracyClamped bool
	Break           Break // before this observation: what is not final of the stretch before it became final in Final
	// Provisional is the newest best position; nil where there is none (off road, outlier). Path is the way to it from
	// the point before Supersedes (an observation's seq): earlier provisional points from Supersedes on are replaced.
	Provisional *Position
	Supersedes  int64
	Path        []Span
	// Final is what will never change again: positions of observations, in order, and the spans driven between them. Final spans
	// partition a drive exactly once, in order.
	FinalPoints []Position
	FinalPath   []Span
}

// ErrForeignState says that a state was made by another graph, configuration or version, or is damaged.
var ErrForeignState = errors.New("state of another graph, configuration or version")
