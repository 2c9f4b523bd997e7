package partition

import (
	"fmt"
	"slices"
	"testing"

	"milepost/internal/commit"
	"milepost/internal/stream"
)

// talkative is a toy whose reasons come from the records themselves: what no closed list foresees.
type talkative struct{ toy }

func (w talkative) Decode(r *stream.Record) (Observation, error) {
	if r.Offset%7 == 0 {
		return Observation{}, &commit.PoisonError{Reason: string(r.Value)}
	}
	return w.toy.Decode(r)
}

func (w talkative) Open(k KeyState, o Observation, _ ...Observation) Opening {
	switch o.Identity.Revision.Offset % 3 {
	case 0:
		return Opening{Local: &Decision{Kind: Terminal, Reason: o.Value.(string)}}
	case 1:
		return Opening{Local: &Decision{Kind: Reset, Reason: o.Value.(string)}}
	}
	return w.toy.Open(k, o)
}

func (w talkative) Plan(k KeyState, o Observation, d Decision) (commit.Plan, error) {
	p, err := w.toy.Plan(k, o, d)
	if d.Kind == Solved {
		p.Reset = o.Value.(string) // rides on a solved observation
	}
	return p, err
}

// A3, A11, A17: each part of a counter has a reason of its closed list, whatever records and solvers say, and the parts add up.
func TestReasonsAreOfClosedLists(t *testing.T) {
	cfg := DefaultConfig()
	cfg.KeyQueue, cfg.WindowRecords = 4, 16
	cfg.Reasons = Lists{Poison: []string{"w7"}, Terminal: []string{"w9"}, Reset: []string{"w10", "w11"}}
	w := newInstant(cfg)
	w.m = New(cfg, talkative{}, Start{
		Tenure: toyTenure(1), Frontier: stream.Frontier{Next: stream.Revision{Generation: 1}, LeaderEpoch: -1}, Done: []int64{5},
	}, w.now)
	var records []stream.Record
	for i := range int64(500) {
		records = append(records, toyRecord(i, fmt.Sprintf("k%d", i%40), fmt.Sprintf("w%d", i)))
	}
	w.give(Arrived{Records: records})
	w.give(Arrived{Records: records})
	for i := range 20 {
		w.give(Result{Key: stream.Key(fmt.Sprintf("stranger%d", i)), Decision: Decision{Kind: Solved, Reason: fmt.Sprint(i)}})
	}
	v := w.m.View()
	parts := map[string]int64{}
	for by, n := range v.Reasons {
		if list := cfg.Reasons.Reasons(by.Counter); !slices.Contains(list, by.Reason) {
			t.Errorf("%s has a reason %q that its list %v does not", by.Counter, by.Reason, list)
		}
		parts[by.Counter] += n
	}
	for name, n := range v.Stats.All() {
		switch {
		case cfg.Reasons.Reasons(name) == nil:
		case parts[name] != n:
			t.Errorf("the reasons of %s add up to %d, want %d", name, parts[name], n)
		case n == 0:
			t.Errorf("nothing was %s: the test shows nothing of it", name)
		}
	}
	sum := v.Reasons.Plus(v.Reasons)
	if got, want := sum[ByReason{"suppressed", Covered}], 2*v.Reasons[ByReason{"suppressed", Covered}]; got != want || got == 0 {
		t.Errorf("added up %d, want %d", got, want)
	}
}
