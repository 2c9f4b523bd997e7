package loop

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// B4: a line that is no labelled session is told by its number, and what follows it is judged.
func TestReadSessions(t *testing.T) {
	in := `{"id":"a","kind":"k","loop":true,"onset":1,"period":1,"events":[{"text":"x"},{"text":"y"}]}
not json

{"id":"b","events":[]}
{"id":"c","loop":true,"onset":2,"period":1,"events":[{"text":"x"},{"text":"y"}]}
{"id":"d","events":[{"tool":"t","args":1}]}`
	var ids, errs []string
	for s, err := range ReadSessions(strings.NewReader(in)) {
		if err != nil {
			errs = append(errs, strings.SplitN(err.Error(), ":", 2)[0])
			continue
		}
		ids = append(ids, s.ID)
	}
	if d := cmp.Diff([]string{"a", "d"}, ids); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]string{"line 2", "line 4", "line 5"}, errs); d != "" {
		t.Error(d)
	}
}

// B4: a loop that trips before its onset is a false alarm and a miss; periods count from the onset.
func TestScore(t *testing.T) {
	var s Score
	for _, j := range []Judgement{
		{Loop: true, Tripped: 7, Periods: 3}, {Loop: true, Tripped: 2, Early: true}, {Loop: true}, {Tripped: 4}, {},
	} {
		s.Add(&j)
	}
	want := Score{Loops: 3, Honest: 2, Caught: 1, FalseTrips: 2, Precision: 1. / 3, Recall: 1. / 3, MeanPeriods: 3, MaxPeriods: 3}
	if d := cmp.Diff(want, s); d != "" {
		t.Error(d)
	}
}
