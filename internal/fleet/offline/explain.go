package offline

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"milepost/internal/fleet"
	"milepost/internal/mapmatch"
	"milepost/internal/roadnet"
)

// maxExplained explanations wait for their places to become final: each has a dozen candidates.
const maxExplained = 1 << 14

// Explained is what was weighed for one observation. Costs are in nats, the lower the better.
type Explained struct {
	Vehicle     string           `json:"vehicle"`
	Seq         int64            `json:"seq"` // of the vehicle's fixes, from 0
	Time        time.Time        `json:"time"`
	Lon         float64          `json:"lon"` // as observed
	Lat         float64          `json:"lat"`
	Segment     int64            `json:"segment"`
	Disposition string           `json:"disposition"`
	Why         string           `json:"why"`
	SigmaM      float64          `json:"sigma_m,omitempty"`  // the standard deviation that was believed
	RadiusM     float64          `json:"radius_m,omitempty"` // within which roads were sought
	CrowM       float64          `json:"crow_m,omitempty"`   // from the observation that the candidates are linked to
	ScaleM      float64          `json:"scale_m,omitempty"`  // of difference between way and straight distance that costs one nat
	Candidates  []ExplainedPlace `json:"candidates"`
	Flags       []string         `json:"flags,omitempty"` // of the way driven to the final place
	Final       *fleet.Place     `json:"final,omitempty"` // the place in the end; absent where there is none
}

// ExplainedPlace is a place that the observation may have been at.
type ExplainedPlace struct {
	Way         int64         `json:"way"`
	From        int64         `json:"from"`
	To          int64         `json:"to"`
	OffsetM     float64       `json:"offset_m"`
	DistM       float64       `json:"dist_m"` // from the observation to the road
	Emission    float64       `json:"emission"`
	Linked      *ExplainedWay `json:"linked,omitempty"` // absent at the begin of a stretch
	Total       float64       `json:"total"`            // above the best of this observation, all that came before included
	Probability float64       `json:"probability"`      // by all observations so far
	Rejected    string        `json:"rejected,omitempty"`
	Best        bool          `json:"best,omitempty"`   // by this and the observations before
	Chosen      bool          `json:"chosen,omitempty"` // in the end, by the later ones too
}

// ExplainedWay is the cheapest way to a candidate from those of the observation before.
type ExplainedWay struct {
	Way        int64   `json:"way"`
	From       int64   `json:"from"`
	To         int64   `json:"to"`
	OffsetM    float64 `json:"offset_m"`
	RouteM     float64 `json:"route_m"`
	Transition float64 `json:"transition"`
}

// explain writes what was weighed for each observation, when its place is final, in the input's order.
type explain struct {
	waiting
	w        *bufio.Writer
	of       func() *mapmatch.Explanation
	put      func(w io.Writer, x *Explained) error
	vehicles map[string]*marks
}

// marks are a vehicle's driven spans that have something to say, not yet told.
type marks struct {
	spans []fleet.Span
}

// NewExplainText makes a sink for people; the run must have Options.Explain.
func NewExplainText(w io.Writer, r *Run) Sink { return newExplain(w, r, writeExplained) }

// NewExplainJSON is NewExplainText for scripts: an Explained a line.
func NewExplainJSON(w io.Writer, r *Run) Sink {
	return newExplain(w, r, func(w io.Writer, x *Explained) error { return json.NewEncoder(w).Encode(x) })
}

func newExplain(w io.Writer, r *Run, write func(io.Writer, *Explained) error) Sink {
	e := &explain{w: bufio.NewWriterSize(w, 64<<10), of: r.Explanation, put: write, vehicles: map[string]*marks{}}
	e.waiting = newWaiting(r.Settle, e.row)
	e.bound = maxExplained
	return e
}

// Observed takes a fix's event.
func (e *explain) Observed(seq int64, ev *fleet.Event) error {
	m := e.vehicles[ev.Vehicle]
	if m == nil {
		m = &marks{}
		e.vehicles[ev.Vehicle] = m
	}
	m.add(ev.Closed)
	m.add(ev.Final)
	e.next = e.of()
	return e.observed(seq, ev)
}

// Ended takes a vehicle's last event.
func (e *explain) Ended(ev *fleet.Event) error {
	if m := e.vehicles[ev.Vehicle]; m != nil {
		m.add(ev.Final)
	}
	return e.ended(ev)
}

// Close writes what is left.
func (e *explain) Close() error {
	if err := e.w.Flush(); err != nil {
		return fmt.Errorf("write explanations: %w", err)
	}
	return nil
}

func (m *marks) add(f *fleet.Final) {
	if f == nil {
		return
	}
	for i := range f.Path {
		s := f.Path[i]
		s.Geometry, s.Nodes = nil, nil
		if len(Flags(&s)) > 0 {
			m.spans = append(m.spans, s)
		}
	}
}

// take gives the flags of what was driven until then.
func (m *marks) take(until time.Time) []string {
	var flags []string
	for len(m.spans) > 0 && m.spans[0].Start.Before(until) {
		flags = append(flags, Flags(&m.spans[0])...)
		m.spans = m.spans[1:]
	}
	slices.Sort(flags)
	return slices.Compact(flags)
}

// Flags are what is worth a word of a span, by their names in events.
func Flags(s *fleet.Span) []string {
	var flags []string
	for _, f := range [...]struct {
		name string
		set  bool
	}{{"inferred", s.Inferred}, {"private", s.Private}, {"contraflow", s.Contraflow}, {s.Entered, s.Entered != ""}} {
		if f.set {
			flags = append(flags, f.name)
		}
	}
	return flags
}

func (e *explain) row(r *row) error {
	x := &Explained{
		Vehicle: r.vehicle, Seq: r.seq, Time: r.time, Lon: r.lon, Lat: r.lat, Segment: r.segment, Disposition: r.disposition, Final: r.place,
		Why: reasonFor(r.disposition), Candidates: []ExplainedPlace{},
	}
	if r.place != nil {
		x.Flags = e.vehicles[r.vehicle].take(r.time)
	}
	if r.clamped {
		x.Flags = append(x.Flags, "accuracy_clamped")
	}
	if r.why != nil {
		x.Why = r.why.Why
		x.SigmaM, x.RadiusM, x.CrowM, x.ScaleM = r.why.SigmaM, r.why.RadiusM, r.why.CrowM, r.why.ScaleM
		for i := range r.why.Candidates {
			x.Candidates = append(x.Candidates, placeOf(&r.why.Candidates[i], i == 0, r.place))
		}
	}
	if err := e.put(e.w, x); err != nil {
		return fmt.Errorf("write an explanation: %w", err)
	}
	return nil
}

// reasonFor is why an observation came before no matcher.
func reasonFor(disposition string) string {
	switch disposition {
	case fleet.TerminalRegression:
		return "not after the vehicle's last observation"
	case fleet.TerminalUnsupported:
		return "off the map"
	}
	return "decided without the matcher"
}

func placeOf(c *mapmatch.Candidate, first bool, final *fleet.Place) ExplainedPlace {
	p := ExplainedPlace{
		Way: c.Key.Way, From: c.Key.From, To: c.Key.To, OffsetM: c.OffsetM, DistM: cents(c.DistM), Emission: c.Emission, Total: c.Total,
		Probability: c.Probability, Rejected: c.Rejected, Best: first && c.Rejected == "",
	}
	if c.From != (roadnet.EdgeKey{}) {
		p.Linked = &ExplainedWay{
			Way: c.From.Way, From: c.From.From, To: c.From.To, OffsetM: c.FromM, RouteM: cents(c.RouteM), Transition: c.Transition,
		}
	}
	p.Chosen = final != nil && c.Rejected == "" && final.Way == p.Way && final.From == p.From && final.To == p.To && math.Abs(final.OffsetM-p.OffsetM) < 0.5
	return p
}

func cents(x float64) float64 { return math.Round(x*100) / 100 }

// writeExplained writes for people.
func writeExplained(w io.Writer, x *Explained) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s #%d  %s  %.7f,%.7f  %s: %s\n", x.Vehicle, x.Seq, x.Time.UTC().Format(time.RFC3339Nano), x.Lon, x.Lat, x.Disposition, x.Why)
	if x.SigmaM > 0 {
		fmt.Fprintf(&b, "  believed to %.1f m, roads sought within %.0f m", x.SigmaM, x.RadiusM)
		if x.ScaleM > 0 {
			fmt.Fprintf(&b, "; %.0f m from the one before, each %.1f m of detour cost a nat", x.CrowM, x.ScaleM)
		}
		b.WriteByte('\n')
	}
	for i := range x.Candidates {
		writeCandidate(&b, &x.Candidates[i])
	}
	switch p := x.Final; {
	case p != nil:
		fmt.Fprintf(&b, "  in the end: way %d %d→%d at %.1f m, confidence %.3f", p.Way, p.From, p.To, p.OffsetM, p.Confidence)
	default:
		b.WriteString("  in the end: on no road")
	}
	if len(x.Flags) > 0 {
		fmt.Fprintf(&b, "; %s", strings.Join(x.Flags, ", "))
	}
	b.WriteString("\n")
	_, err := io.WriteString(w, b.String())
	return err
}

func writeCandidate(b *strings.Builder, c *ExplainedPlace) {
	fmt.Fprintf(b, "  way %d %d→%d at %.1f m, %.1f m off: ", c.Way, c.From, c.To, c.OffsetM, c.DistM)
	if c.Rejected != "" {
		fmt.Fprintf(b, "emission %.2f, no candidate: %s\n", c.Emission, c.Rejected)
		return
	}
	fmt.Fprintf(b, "+%.2f, p %.3f; emission %.2f", c.Total, c.Probability, c.Emission)
	if l := c.Linked; l != nil {
		fmt.Fprintf(b, ", transition %.2f over %.0f m from way %d %d→%d at %.1f m", l.Transition, l.RouteM, l.Way, l.From, l.To, l.OffsetM)
	}
	switch {
	case c.Best && c.Chosen:
		b.WriteString("  <- best, and chosen")
	case c.Best:
		b.WriteString("  <- best at the time")
	case c.Chosen:
		b.WriteString("  <- chosen by what came later")
	}
	b.WriteByte('\n')
}
