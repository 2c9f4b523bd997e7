package loop

import (
	"slices"
	"strconv"
)

// State is what a detector thinks of a session.
type State string

// States.
const (
	Progressing State = "progressing"
	Suspicious  State = "suspicious"
	Tripped     State = "tripped"
)

// Verdict is of one event, in the light of those before it.
type Verdict struct {
	State State `json:"state"`
	// Delta tells how new the event is beside the most similar of the last events, from 0 (the same) to 1.
	Delta float64 `json:"delta"`
	// Streak counts the last events that repeated the ones a period before and learnt nothing.
	Streak int `json:"streak"`
	// Period is of what repeats, in events; 0 while nothing does.
	Period int `json:"period,omitempty"`
}

// Limits (L3), chosen on the tuning part of the corpus.
const (
	maxPeriod   = 12
	maxWindow   = 2 * maxPeriod // events that are kept to compare with
	maxKnown    = 4096          // results and words that are known
	patience    = 3             // periods until a trip
	morePatient = 8             // the same for what says itself that it waits, or counts as it goes
)

// Detector watches one session. Its zero value is ready.
type Detector struct {
	window  []step
	streak  [maxPeriod + 1]int // by period: how many of the last events repeat the ones a period before and learn nothing
	easy    [maxPeriod + 1]int // of these, those that have a reason to be patient
	known   memory             // what was learnt: results by their calls, words of texts
	tripped bool
}

// memory is a bounded set that forgets the oldest.
type memory struct {
	has   map[uint64]bool
	order []uint64
}

func (m *memory) add(h uint64) (added bool) {
	if m.has[h] {
		return false
	}
	if m.has == nil {
		m.has = map[uint64]bool{}
	}
	if len(m.order) >= maxKnown {
		for _, old := range m.order[:maxKnown/4] {
			delete(m.has, old)
		}
		m.order = slices.Delete(m.order, 0, maxKnown/4)
	}
	m.has[h] = true
	m.order = append(m.order, h)
	return true
}

// Reset forgets the session: after a trip that was answered by injecting a message.
func (d *Detector) Reset() { *d = Detector{} }

// Step judges the next event of the session.
func (d *Detector) Step(e Event) Verdict {
	if e.Tool != "" && waits(&e) {
		return d.verdict(1)
	}
	s := read(&e)
	s.excused = s.excused || d.varied(&s)
	learnt := d.learn(&s)
	delta := 1.0
	for p := 1; p <= maxPeriod; p++ {
		d.streak[p], d.easy[p] = d.follow(p, &s, learnt)
	}
	for i := max(0, len(d.window)-maxPeriod); i < len(d.window); i++ {
		delta = min(delta, distance(&d.window[i], &s))
	}
	d.window = append(d.window, s)
	if len(d.window) > maxWindow {
		d.window = slices.Delete(d.window, 0, 1)
	}
	return d.verdict(delta)
}

// follow gives the streak of a period with another step at its end, and how many of it are patient.
func (d *Detector) follow(p int, s *step, learnt bool) (streak, easy int) {
	if len(d.window) < p {
		return 0, 0
	}
	before := &d.window[len(d.window)-p]
	var further *step // a period before that
	if len(d.window) >= 2*p {
		further = &d.window[len(d.window)-2*p]
	}
	aside := slices.ContainsFunc(d.window[len(d.window)-p:], func(w step) bool { return !w.text })
	switch compare(aside, further, before, s, learnt) {
	case repeats:
		return d.streak[p] + 1, d.easy[p]
	case repeatsPatiently:
		return d.streak[p] + 1, d.easy[p] + 1
	case progress:
	}
	return 0, 0
}

// verdict looks for the shortest period that has repeated for long enough.
func (d *Detector) verdict(delta float64) Verdict {
	v := Verdict{State: Progressing, Delta: delta}
	for p := 1; p <= maxPeriod; p++ {
		streak, easy := d.streak[p], d.easy[p]
		need := patience
		if 2*easy > streak { // most of what repeats has a reason
			need = morePatient
		}
		if v.Period == 0 && streak >= p {
			v.State, v.Streak, v.Period = Suspicious, streak, p
		}
		if streak >= (need-1)*p {
			v.State, v.Streak, v.Period = Tripped, streak, p
			d.tripped = true
			break
		}
	}
	if d.tripped {
		v.State = Tripped
	}
	return v
}

// varied says whether a call has had three different results so far: then the same once more is a reading, and there is patience with it.
func (d *Detector) varied(s *step) bool {
	for i := range 3 {
		if !d.known.has[hashOf("varied", strconv.Itoa(i))^s.call.exact] {
			return false
		}
	}
	return !s.text
}

// vary counts the different results of a call, up to three.
func (d *Detector) vary(s *step) {
	if d.known.add(hashOf("result") ^ s.call.exact ^ s.result.exact*31) {
		for i := range 3 {
			if d.known.add(hashOf("varied", strconv.Itoa(i)) ^ s.call.exact) {
				return
			}
		}
	}
}

// learn notes what a step says, and tells whether any of it is new to the session.
func (d *Detector) learn(s *step) bool {
	learnt := false
	if s.text {
		fresh := 0
		for _, w := range s.call.words {
			if d.known.add(hashOf("said") ^ w) {
				fresh++
			}
		}
		return fresh > 0 && fresh*3 >= len(s.call.words)
	}
	d.vary(s)
	again := !d.known.add(hashOf("called") ^ s.call.exact)
	for _, f := range s.result.facts {
		if d.known.add(s.call.shape ^ f*31) {
			learnt = true
		}
	}
	if s.kind == failing || s.kind == ack && again { // the number of a failure, or of one more copy of the same, is noise
		return learnt
	}
	for _, n := range s.result.numbers {
		if d.known.add(s.call.shape ^ n.place*31 ^ n.digits) {
			learnt = true
		}
	}
	return learnt
}
