package fleet

import (
	"encoding/hex"
	"errors"
	"fmt"
	"slices"

	"milepost/internal/commit"
	"milepost/internal/mapmatch"
	"milepost/internal/partition"
	"milepost/internal/stream"
	"milepost/internal/wire"
)

// MatchedType and DeadLetterType are the outputs' ce_type.
const (
	MatchedType    = "milepost.fleet.matched.v1"
	DeadLetterType = "milepost.fleet.dead_letter.v1"
)

// Plan turns a decision into the observation's one output event and the next checkpoint. An error is of class Permanent.
func (w *Workload) Plan(k partition.KeyState, o partition.Observation, d partition.Decision) (commit.Plan, error) {
	event, next, err := w.Apply(k, o, d)
	if err != nil {
		return commit.Plan{}, err
	}
	plan := commit.Plan{Next: next, Outputs: []commit.Output{w.output(k.Epoch, o, &event)}}
	if slices.Contains(TerminalReasons(), event.Disposition) {
		plan.Terminal = event.Disposition
	}
	if event.Reset != nil {
		plan.Reset = event.Reset.Reason
	}
	return plan, nil
}

// Apply is Plan before its event is encoded.
func (w *Workload) Apply(k partition.KeyState, o partition.Observation, d partition.Decision) (Event, commit.Checkpoint, error) {
	fix, ok := o.Value.(Fix)
	if !ok {
		return Event{}, commit.Checkpoint{}, permanent("the observation is not a fix: %T", o.Value)
	}
	p := planner{w: w, k: k, fix: fix, event: Event{
		Schema: EventSchema, ID: o.Identity.OutputID(0), Vehicle: string(o.Key), Revision: o.Identity.Revision.String(),
		Time: fix.Time, Lon: fix.Point.Lon, Lat: fix.Point.Lat,
	}}
	var (
		state []byte
		err   error
	)
	switch d.Kind {
	case partition.Solved:
		state, err = p.solved(d.Answer)
	case partition.Terminal:
		state, err = p.terminal(d.Reason)
	case partition.Reset:
		state, err = p.reset(d.Reason)
	default:
		err = fmt.Errorf("unknown kind of decision %d", d.Kind)
	}
	if err != nil {
		return Event{}, commit.Checkpoint{}, permanent("plan observation %s: %w", o.Identity.Revision, err)
	}
	return p.event, commit.Checkpoint{Revision: o.Identity.Revision, Segment: p.event.Segment, State: state}, nil
}

// End gives what becomes final when a vehicle's trip ends at a checkpoint: for traces, which have an end. Nil: nothing was open. The
// checkpoint stays as it is, so a trip may go on after all.
func (w *Workload) End(s *Solver, c commit.Checkpoint) (*Final, error) {
	state, err := decodeState(c.State)
	if err != nil || state.matcher == nil {
		return nil, err
	}
	r, err := s.matcher.Flush(state.matcher)
	if err != nil {
		return nil, fmt.Errorf("flush: %w", err)
	}
	m := wireChange(&r)
	points, err := finalPoints(m.GetFinalPoints(), state.nextFinal)
	if err != nil {
		return nil, err
	}
	path, err := eventSpans(m.GetFinalPath())
	if err != nil {
		return nil, err
	}
	return &Final{Segment: c.Segment, Points: points, Path: path}, nil
}

func permanent(format string, args ...any) error {
	return fmt.Errorf("fleet: %w: %w", commit.ErrPermanent, fmt.Errorf(format, args...))
}

func (w *Workload) output(epoch stream.Epoch, o partition.Observation, e *Event) commit.Output {
	return commit.Output{
		Topic: w.cfg.MatchedTopic, Key: []byte(o.Key), Value: e.AppendJSONWith(nil, w.cfg.Geometry.Member()),
		Headers: stream.CloudEvent{
			Type: MatchedType, Group: w.cfg.Group, Identity: o.Identity, Subject: o.Key, Time: e.Time, Epoch: epoch,
			ContentType: ContentTypeJSON,
		}.Headers(),
	}
}

// planner fills one observation's event.
type planner struct {
	w     *Workload
	k     partition.KeyState
	fix   Fix
	event Event
}

// announce writes the segment, and the reset where there is one, into the event.
func (p *planner) announce(previous int64, reason string) {
	p.event.Segment = max(previous, 1)
	if reason != "" {
		p.event.Segment = previous + 1
		p.event.Reset = &SegmentReset{Reason: reason, PreviousSegment: previous}
	}
}

func (p *planner) retract(j *judgement) {
	if j.retract {
		p.event.Retracted = &Retraction{Segment: j.previous, FromSeq: j.fromSeq}
	}
}

// terminal keeps the open stretch; a reset that the restore left rides on it (A5, F9).
func (p *planner) terminal(reason string) ([]byte, error) {
	if !slices.Contains(TerminalReasons(), reason) {
		reason = TerminalInternal
	}
	j := p.w.restore(p.k)
	p.announce(j.previous, j.reset)
	p.retract(&j)
	p.event.Disposition = reason
	if reason == TerminalRegression && j.reset == "" {
		return p.k.Checkpoint.State, nil // untouched (A6)
	}
	if j.reset != "" { // the new segment has seen nothing yet: no gap or jump is measured from before it
		j.state = &vehicleState{lastEvent: j.state.lastEvent, pin: j.state.pin}
	}
	if reason == TerminalUnsupported && j.state.pin.region == "" && j.state.matcher == nil {
		j.state.pin = p.w.atlas.pinTo(0)
	}
	if p.fix.Time.After(j.state.lastEvent) {
		j.state.lastEvent = p.fix.Time
	}
	return j.state.encode()
}

// reset voids the key's history without matching the observation.
func (p *planner) reset(reason string) ([]byte, error) {
	if !slices.Contains(ResetReasons(), reason) {
		return nil, fmt.Errorf("unknown reset reason %q", reason)
	}
	j := p.w.restore(p.k)
	if j.reset == "" {
		j.void()
	}
	p.announce(j.previous, reason)
	p.retract(&j)
	p.event.Disposition = Voided
	next := &vehicleState{lastEvent: j.state.lastEvent, pin: j.state.pin}
	if p.fix.Time.After(next.lastEvent) {
		next.lastEvent = p.fix.Time
	}
	return next.encode()
}

// solved takes a solver's answer.
func (p *planner) solved(raw []byte) ([]byte, error) {
	a, err := decodeAnswer(raw)
	if err != nil {
		return nil, err
	}
	c := a.GetChange()
	if mapmatch.Disposition(c.GetDisposition()) == mapmatch.Regressed {
		return p.terminal(TerminalRegression)
	}
	j := p.w.judge(p.k, p.fix)
	if j.terminal != "" {
		return nil, fmt.Errorf("a solver answered what is a terminal: %s", j.terminal)
	}
	if a.GetStateLost() {
		j.void()
		if j.reset == "" {
			j.reset = ResetStateLost
		}
	}
	broke, err := p.reason(&j, c)
	if err != nil {
		return nil, err
	}
	p.announce(j.previous, j.reset)
	if err := p.closing(&j, a); err != nil {
		return nil, err
	}
	p.retract(&j)
	nextFinal, err := p.change(&j, c, broke)
	if err != nil {
		return nil, err
	}
	if err := p.provisional(&j, c); err != nil {
		return nil, err
	}
	next := &vehicleState{
		lastEvent: p.fix.Time, served: p.fix.Time, servedAt: p.fix.Point, pin: p.w.atlas.pinTo(j.region),
		matcher: a.GetState(), nextFinal: nextFinal, nextSeq: c.GetSeq() + 1,
	}
	return next.encode()
}

// reason turns the matcher's break into the reset that it is, and reports whether there was one. A stretch that has just begun has
// nothing to break from.
func (p *planner) reason(j *judgement, c *wire.SolvedChange) (bool, error) {
	reason, err := resetOf(mapmatch.Break(min(c.GetBreak(), 255)))
	if err != nil || reason == "" || j.state.matcher == nil {
		return false, err
	}
	j.reset = reason
	return true, nil
}

// closing announces what the end of the former segment's stretch made final, or retracts it where its state was lost.
func (p *planner) closing(j *judgement, a *wire.SolveAnswer) error {
	if j.closing == nil {
		return nil
	}
	if a.GetClosingLost() {
		j.void()
		return nil
	}
	if a.GetClosed() == nil { // it is not about this observation over this checkpoint
		return errors.New("the answer leaves the closing stretch out")
	}
	points, err := finalPoints(a.GetClosed().GetFinalPoints(), j.state.nextFinal)
	if err != nil {
		return err
	}
	path, err := eventSpans(a.GetClosed().GetFinalPath())
	if err != nil {
		return err
	}
	p.event.Closed = &Final{Segment: j.previous, Points: points, Path: path}
	return nil
}

// change fills in what became final and gives the first observation number of the segment that is not.
func (p *planner) change(j *judgement, c *wire.SolvedChange, broke bool) (int64, error) {
	continues := j.state.matcher != nil
	nextFinal := int64(0)
	if continues {
		nextFinal = j.state.nextFinal
		if c.GetSeq() < j.state.nextSeq {
			return 0, fmt.Errorf("observation number %d again, the next is %d", c.GetSeq(), j.state.nextSeq)
		}
	}
	points, err := finalPoints(c.GetFinalPoints(), nextFinal)
	if err != nil {
		return 0, err
	}
	path, err := eventSpans(c.GetFinalPath())
	if err != nil {
		return 0, err
	}
	if n := len(points); n > 0 {
		nextFinal = points[n-1].Seq + 1
	}
	if broke { // what became final is all of the former segment
		p.event.Closed = &Final{Segment: j.previous, Points: points, Path: path}
		return nextFinal, nil
	}
	if len(points)+len(path) > 0 {
		p.event.Final = &Final{Segment: p.event.Segment, Points: points, Path: path}
	}
	return nextFinal, nil
}

// provisional fills in the newest best position and the way to it.
func (p *planner) provisional(j *judgement, c *wire.SolvedChange) error {
	var err error
	e := &p.event
	if e.Disposition, err = dispositionOf(mapmatch.Disposition(min(c.GetDisposition(), 255))); err != nil {
		return err
	}
	e.Graph = hex.EncodeToString(p.w.atlas.maps[j.region].Hash[:8])
	e.AccuracyClamped = c.GetAccuracyClamped()
	seq, supersedes := c.GetSeq(), c.GetSupersedes()
	e.Seq = &seq
	if c.GetProvisional() != nil {
		e.Supersedes = &supersedes
		at, err := eventPosition(c.GetProvisional())
		if err != nil {
			return err
		}
		e.Provisional = &at
	}
	e.Path, err = eventSpans(c.GetPath())
	return err
}

// finalPoints decodes positions that became final; none may have been final before (I9).
func finalPoints(ms []*wire.SolvedPosition, next int64) ([]Position, error) {
	points := make([]Position, 0, len(ms))
	for _, m := range ms {
		if m.GetSeq() < next {
			return nil, fmt.Errorf("observation number %d is final already", m.GetSeq())
		}
		at, err := eventPosition(m)
		if err != nil {
			return nil, err
		}
		points, next = append(points, at), m.GetSeq()+1
	}
	return points, nil
}
