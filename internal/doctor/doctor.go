package doctor

import "fmt"

// State is how good a finding is.
type State string

// The states.
const (
	OK   State = "ok"
	Warn State = "warn"
	Fail State = "fail"
)

// Finding is one line of an examination.
type Finding struct {
	Area   string `json:"area"` // kafka, topics, postgres
	Name   string `json:"name"` // of the check
	State  State  `json:"state"`
	Found  string `json:"found"`
	Remedy string `json:"remedy,omitempty"`
}

// Examination gathers findings of one area.
type Examination struct {
	Area     string
	Findings []Finding
}

// OK notes what is as it should be.
func (e *Examination) OK(name, format string, args ...any) { e.add(name, OK, "", format, args...) }

// Warn notes what will hurt one day.
func (e *Examination) Warn(name, remedy, format string, args ...any) {
	e.add(name, Warn, remedy, format, args...)
}

// Fail notes what cannot stay so.
func (e *Examination) Fail(name, remedy, format string, args ...any) {
	e.add(name, Fail, remedy, format, args...)
}

// Check notes a finding as OK when it is good, else with the state and the remedy.
func (e *Examination) Check(name string, good bool, otherwise State, remedy, format string, args ...any) {
	if good {
		otherwise, remedy = OK, ""
	}
	e.add(name, otherwise, remedy, format, args...)
}

func (e *Examination) add(name string, s State, remedy, format string, args ...any) {
	e.Findings = append(e.Findings, Finding{Area: e.Area, Name: name, State: s, Found: fmt.Sprintf(format, args...), Remedy: remedy})
}

// Count gives how many findings are of a state.
func Count(fs []Finding, s State) int {
	n := 0
	for _, f := range fs {
		if f.State == s {
			n++
		}
	}
	return n
}
