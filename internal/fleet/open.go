package fleet

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"math"
	"time"

	"milepost/internal/mapmatch"
	"milepost/internal/partition"
	"milepost/internal/roadnet"
)

// Workload is the fleet workload: it turns vehicles' positions into paths. It is immutable and pure, so any number of partitions
// may share one.
type Workload struct {
	cfg   Config
	atlas *Atlas
}

// New makes the workload over an atlas: OneMap, or NewAtlas of a catalog.
func New(cfg Config, a *Atlas) (*Workload, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	return &Workload{cfg: cfg, atlas: a}, nil
}

// Open decides an observation's way: a time that goes back and a place outside the map are terminals of the workload's own, in this
// order; everything else is a solver's. Of the observations behind it the job takes those that go the same way: the same terminal, or plainly
// on in the same stretch.
func (w *Workload) Open(k partition.KeyState, o partition.Observation, more ...partition.Observation) partition.Opening {
	fix, ok := o.Value.(Fix)
	if !ok {
		return partition.Opening{Local: &partition.Decision{Kind: partition.Terminal, Reason: TerminalInternal}}
	}
	j := w.judge(k, fix)
	if j.terminal != "" {
		d := partition.Decision{Kind: partition.Terminal, Reason: j.terminal}
		return partition.Opening{Local: &d, Count: 1 + w.alike(k, o, d, more)}
	}
	asked := w.request(k, o, fix, j)
	asked.More = w.plainly(j.region, fix, more)
	request, err := encodeRequest(asked)
	if err != nil { // cannot be: the key is valid UTF-8 and everything else is numbers
		return partition.Opening{Local: &partition.Decision{Kind: partition.Terminal, Reason: TerminalInternal}}
	}
	r := &w.atlas.regions[j.region]
	return partition.Opening{
		Request: request, Short: short(k, asked), Count: 1 + len(asked.More), Region: r.ID, Budget: r.FreshnessBudget,
	}
}

// short gives the request without the trip, nil where nobody may hold one or the stretch begins anew.
func short(k partition.KeyState, r *Request) []byte {
	if !k.Sticky || r.State == nil || r.Closing != nil {
		return nil
	}
	without, digest := *r, sha256.Sum256(r.State)
	without.State, without.StateDigest = nil, digest[:]
	b, err := encodeRequest(&without)
	if err != nil { // cannot be, as above
		return nil
	}
	return b
}

// judgement is what a checkpoint and an observation say before any solver is asked. Open and Plan both make it, so nothing of it
// has to be carried between them, and a rolled-back commit leaves nothing behind (A5).
type judgement struct {
	state    *vehicleState         // what goes on; without matcher state where history is void
	region   int                   // number of the region that serves the observation, unless it is a terminal
	closing  []byte                // matcher state of the stretch that the reset ends; nil: nothing to flush
	foreign  []byte                // graph of the closing stretch, where it is not the region's
	seed     *mapmatch.Observation // last one of the closing stretch, to begin the next with
	reset    string                // reason; empty: none
	previous int64                 // the checkpoint's segment, 0: never seen
	segment  int64                 // the observation's
	terminal string                // reason; empty: a solver decides
	// retract: announced provisional parts of the previous segment are void. fromSeq is nil where the state is unreadable.
	retract bool
	fromSeq *int64
}

func (w *Workload) judge(k partition.KeyState, fix Fix) judgement {
	return w.judgeOver(w.restore(k), fix)
}

// judgeOver is judge once the checkpoint is read.
func (w *Workload) judgeOver(j judgement, fix Fix) judgement {
	if !j.state.lastEvent.IsZero() && !fix.Time.After(j.state.lastEvent) {
		j.terminal = TerminalRegression
	} else if n, served := w.atlas.resolve(j.state.pin, fix.Point, w.cfg.CoverageMarginM); !served {
		j.terminal = TerminalUnsupported
	} else {
		j.region = n
		w.judgeMove(&j, fix)
	}
	j.segment = max(j.previous, 1)
	if j.reset != "" {
		j.segment = j.previous + 1
	}
	return j
}

// restore reads the key's checkpoint. Never seen, expired and lost are three things.
func (w *Workload) restore(k partition.KeyState) judgement {
	j := judgement{state: &vehicleState{}}
	if k.Checkpoint.Revision.IsZero() {
		return j
	}
	j.previous = k.Checkpoint.Segment
	s, err := decodeState(k.Checkpoint.State)
	switch {
	case k.Expired:
		j.reset, j.retract = cmp.Or(k.Anew, ResetExpired), true
		if err == nil && k.Anew != ResetOperator { // as below
			j.state.lastEvent = s.lastEvent
		}
		return j
	case err != nil:
		j.reset, j.retract = ResetStateLost, true
		return j
	case k.Anew != "":
		j.reset = k.Anew
	case s.pendingReset != "":
		j.reset = s.pendingReset
	case len(s.matcher) > 0 && !w.atlas.knows(s.pin.graph) && (s.pin.region == "" || s.pin.version == w.atlas.version):
		// No catalog moved it: the map was replaced under it. Where one did, the next served observation finds out.
		j.reset = ResetStateLost
	}
	j.state = s
	if j.reset != "" {
		j.void()
	}
	if k.Anew == ResetOperator {
		// A replay: what it brings lies before all that was seen.
		j.state.lastEvent, j.state.served = time.Time{}, time.Time{}
	}
	return j
}

// void gives up the open stretch: nothing of it can become final any more.
func (j *judgement) void() {
	if s := j.state; s.nextSeq > s.nextFinal {
		j.retract, j.fromSeq = true, &s.nextFinal
	}
	j.state = &vehicleState{lastEvent: j.state.lastEvent, served: j.state.served, servedAt: j.state.servedAt, pin: j.state.pin}
}

// judgeMove finds a gap, a teleport, or a region on another graph; such a reset goes before one that the restore left (A11).
func (w *Workload) judgeMove(j *judgement, fix Fix) {
	s := j.state
	moved := s.matcher != nil && string(s.pin.graph) != string(w.atlas.maps[j.region].Hash[:])
	reason := ""
	if !s.served.IsZero() {
		pause := fix.Time.Sub(s.served)
		if pause > w.cfg.Gap {
			reason = ResetGap
		} else if d := distance(s.servedAt, fix.Point); d > w.cfg.TeleportM && d > w.cfg.MaxSpeedMPS*pause.Seconds() {
			reason = ResetTeleport
		}
	}
	if reason == "" && moved {
		reason = ResetGraphChange
		if !s.served.IsZero() {
			// The way from the last place of the old graph to the first of the new one is found on the new one.
			j.seed = &mapmatch.Observation{Time: s.served, Point: s.servedAt, AccuracyM: math.NaN(), SpeedMPS: math.NaN(), Heading: math.NaN()}
		}
	}
	if reason == "" {
		return
	}
	j.reset = reason
	if s.matcher != nil {
		j.closing = s.matcher
		if moved {
			j.foreign = s.pin.graph
		}
		j.state = &vehicleState{lastEvent: s.lastEvent, nextFinal: s.nextFinal, nextSeq: s.nextSeq, pin: s.pin}
	}
}

// distance is the great-circle distance in metres.
func distance(a, b roadnet.Point) float64 {
	const radius = 6_371_008.8
	rad := math.Pi / 180
	dLat, dLon := (b.Lat-a.Lat)*rad, (b.Lon-a.Lon)*rad
	s1, s2 := math.Sin(dLat/2), math.Sin(dLon/2)
	h := s1*s1 + math.Cos(a.Lat*rad)*math.Cos(b.Lat*rad)*s2*s2
	return 2 * radius * math.Asin(math.Sqrt(min(1, h)))
}

func (w *Workload) request(k partition.KeyState, o partition.Observation, fix Fix, j judgement) *Request {
	r := &Request{
		Identity: o.Identity, Key: o.Key, Base: k.Checkpoint.Revision, Segment: j.segment,
		Region: w.atlas.regions[j.region].ID, Graph: w.atlas.maps[j.region].Hash,
		Closing: j.closing, Seed: j.seed, State: j.state.matcher, Observation: fix.Observation,
	}
	r.ClosingGraph = r.Graph
	if len(j.foreign) == len(r.ClosingGraph) {
		r.ClosingGraph = [32]byte(j.foreign)
	}
	return r
}

// dispositionOf gives the label of a matcher's disposition.
func dispositionOf(d mapmatch.Disposition) (string, error) {
	switch d {
	case mapmatch.Matched:
		return Matched, nil
	case mapmatch.Standing:
		return Standing, nil
	case mapmatch.Interpolated:
		return Interpolated, nil
	case mapmatch.OffRoad:
		return OffRoad, nil
	case mapmatch.Outlier:
		return Outlier, nil
	case mapmatch.Regressed:
		return TerminalRegression, nil
	}
	return "", fmt.Errorf("unknown disposition %d", d)
}

// resetOf gives the reason of a matcher's break, empty for none.
func resetOf(b mapmatch.Break) (string, error) {
	switch b {
	case mapmatch.NoBreak:
		return "", nil
	case mapmatch.BreakGap:
		return ResetGap, nil
	case mapmatch.BreakJump:
		return ResetTeleport, nil
	case mapmatch.BreakOffRoad:
		return ResetOffRoad, nil
	}
	return "", fmt.Errorf("unknown break %d", b)
}

// enteredOf gives the label of a turn that a span was entered by, empty for a plain one.
func enteredOf(t roadnet.Turn) (string, error) {
	switch t {
	case roadnet.TurnFree:
		return "", nil
	case roadnet.TurnBanned, roadnet.TurnClosed: // no search leads past a closed barrier
		return EnteredBanned, nil
	case roadnet.TurnU:
		return EnteredUTurn, nil
	}
	return "", fmt.Errorf("unknown turn %d", t)
}
