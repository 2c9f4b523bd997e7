package loop

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
)

// Session is a labelled session: one line of a corpus.
type Session struct {
	ID   string `json:"id"`
	Kind string `json:"kind"`
	// Loop is the label. Onset counts the honest events before the loop, Period the events of one round of it.
	Loop   bool    `json:"loop"`
	Onset  int     `json:"onset"`
	Period int     `json:"period"`
	Events []Event `json:"events"`
}

// ErrRead is what ended the reading of sessions before their end.
var ErrRead = errors.New("cannot read on")

// maxLine bounds a session's line.
const maxLine = 64 << 20

// ReadSessions reads labelled sessions, a JSON object a line. An error names the line; what follows it is read on.
func ReadSessions(r io.Reader) iter.Seq2[Session, error] {
	return func(yield func(Session, error) bool) {
		lines := bufio.NewScanner(r)
		lines.Buffer(make([]byte, 0, 64<<10), maxLine)
		for n := 1; lines.Scan(); n++ {
			if len(bytes.TrimSpace(lines.Bytes())) == 0 {
				continue
			}
			s, err := readSession(lines.Bytes())
			if err != nil {
				err = fmt.Errorf("line %d: %w", n, err)
			}
			if !yield(s, err) {
				return
			}
		}
		if err := lines.Err(); err != nil {
			yield(Session{}, fmt.Errorf("%w: %w", ErrRead, err))
		}
	}
}

func readSession(line []byte) (Session, error) {
	var s Session
	if err := json.Unmarshal(line, &s); err != nil {
		return Session{}, fmt.Errorf("not a session: %w", err)
	}
	switch {
	case len(s.Events) == 0:
		return Session{}, fmt.Errorf("session %q has no events", s.ID)
	case s.Loop && (s.Period < 1 || s.Onset < 0 || s.Onset >= len(s.Events)):
		return Session{}, fmt.Errorf("session %q is labelled a loop with onset %d and period %d, and has %d events: onset counts the events before the loop, a period is 1 or more",
			s.ID, s.Onset, s.Period, len(s.Events))
	}
	return s, nil
}

// Judgement is of one labelled session. Events are counted from 1; 0: none.
type Judgement struct {
	ID         string `json:"id"`
	Kind       string `json:"kind"`
	Loop       bool   `json:"loop"`
	Suspicious int    `json:"suspicious"` // the first event that is suspicious, in a loop the first one after its onset
	Tripped    int    `json:"tripped"`
	// Periods tells how many periods of the loop had begun when it tripped; 0: it did not, or is none.
	Periods float64 `json:"periods,omitempty"`
	// Early: it tripped before the loop began.
	Early   bool    `json:"early,omitempty"`
	Verdict Verdict `json:"verdict"` // of the event that tripped, else of the last one
}

// Judge runs a detector over a session.
func Judge(s *Session) Judgement {
	out := Judgement{ID: s.ID, Kind: s.Kind, Loop: s.Loop}
	var d Detector
	for i, e := range s.Events {
		out.Verdict = d.Step(e)
		if out.Verdict.State != Progressing && out.Suspicious == 0 && (!s.Loop || i >= s.Onset) {
			out.Suspicious = i + 1
		}
		if out.Verdict.State == Tripped {
			out.Tripped = i + 1
			break
		}
	}
	if out.Tripped > 0 && s.Loop {
		out.Early = out.Tripped <= s.Onset
		if !out.Early {
			out.Periods = float64(out.Tripped-s.Onset) / float64(s.Period)
		}
	}
	return out
}

// Score counts judgements. A loop that tripped before it began counts as a false alarm and as a miss.
type Score struct {
	Loops      int     `json:"loops"`
	Honest     int     `json:"honest"`
	Caught     int     `json:"caught"`
	FalseTrips int     `json:"false_trips"`
	Precision  float64 `json:"precision"`
	Recall     float64 `json:"recall"`
	// MeanPeriods and MaxPeriods are until the trip, of the loops that were caught.
	MeanPeriods float64 `json:"mean_periods"`
	MaxPeriods  float64 `json:"max_periods"`
}

// Add counts one more judgement.
func (s *Score) Add(j *Judgement) {
	caught := j.Loop && j.Tripped > 0 && !j.Early
	switch {
	case j.Loop:
		s.Loops++
	default:
		s.Honest++
	}
	if caught {
		s.MeanPeriods = (s.MeanPeriods*float64(s.Caught) + j.Periods) / float64(s.Caught+1)
		s.MaxPeriods = max(s.MaxPeriods, j.Periods)
		s.Caught++
	}
	if j.Tripped > 0 && !caught {
		s.FalseTrips++
	}
	s.Precision, s.Recall = ratio(s.Caught, s.Caught+s.FalseTrips), ratio(s.Caught, s.Loops)
}

// ratio of nothing to nothing is 1: nobody was wronged.
func ratio(part, of int) float64 {
	if of == 0 {
		return 1
	}
	return float64(part) / float64(of)
}
