package partition

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"milepost/internal/commit"
	"milepost/internal/stream"
)

// request is an operator's request in the simulated world.
type request struct {
	commit.Request
	answer *commit.Answer
}

// ask writes a request, unless one of the key waits.
func (w *world) ask(kind commit.RequestKind, k stream.Key) {
	for _, r := range w.requests {
		if r.Key == k && r.answer == nil {
			return
		}
	}
	w.requests = append(w.requests, &request{Request: commit.Request{ID: int64(len(w.requests)), Kind: kind, Key: k}})
}

// last gives the key's last request, nil without one.
func (w *world) last(k stream.Key) *request {
	for _, r := range slices.Backward(w.requests) {
		if r.Key == k {
			return r
		}
	}
	return nil
}

func (w *world) asides(e ReadAsides) []commit.Aside {
	r := w.row(e.Key)
	var rows []commit.Aside
	for _, offset := range slices.Sorted(maps.Keys(r.aside)) {
		rev := stream.Revision{Generation: 1, Offset: offset}
		if rev.Compare(e.After) > 0 && !r.current.Revision.Covers(rev) && len(rows) < e.Limit {
			rows = append(rows, commit.Aside{Revision: rev, Record: r.aside[offset]})
		}
	}
	return rows
}

func (w *world) discard(t *commit.Tenure, k stream.Key) (commit.Discarded, error) {
	if err := w.fenced(t); err != nil {
		return commit.Discarded{}, err
	}
	r := w.row(k)
	d := commit.Discarded{Rows: len(r.aside)}
	for offset := range r.aside {
		if rev := (stream.Revision{Generation: 1, Offset: offset}); rev.Compare(r.discarded) > 0 {
			r.discarded = rev
		}
		if r.prepared != nil && r.prepared.Revision.Offset == offset {
			if w.isPublished(k, r.prepared.Revision) {
				w.fault("%s of %q is discarded after its publication", r.prepared.Revision, k)
			}
			r.prepared = nil
		}
		w.discarded[offset] = true
		delete(w.aside, offset)
	}
	r.aside = nil
	d.Until = r.discarded
	return d, nil
}

// leave takes the row of an observation that became current out of quarantine, in the same statement.
func (w *world) leave(k stream.Key, rev stream.Revision) {
	if _, ok := w.row(k).aside[rev.Offset]; ok {
		delete(w.row(k).aside, rev.Offset)
		delete(w.aside, rev.Offset)
	}
}

// operate is what an operator does now and then; at the end, when all else is done, everything that is still in quarantine
// is released once its cause is mended, and what then fails again is discarded.
func (s *sim) operate(o *owner) {
	if !s.operator {
		return
	}
	s.world.mended = s.world.mended || s.rng.IntN(100) == 0
	if s.rng.IntN(6) == 0 {
		kind := commit.RequestRelease
		if s.rng.IntN(3) == 0 {
			kind = commit.RequestDiscard
		}
		s.world.ask(kind, stream.Key(s.keys[s.rng.IntN(len(s.keys))]))
	}
	for _, r := range s.world.requests {
		if r.answer == nil && s.rng.IntN(2) == 0 {
			s.give(o, Operate{Request: r.Request})
		}
	}
}

// cleared reports whether the operator has nothing left to do.
func (s *sim) cleared() bool {
	if !s.operator {
		return true
	}
	s.world.mended = true
	done := true
	for _, k := range s.keys {
		last := s.world.last(stream.Key(k))
		done = done && (last == nil || last.answer != nil)
		if len(s.world.row(stream.Key(k)).aside) == 0 {
			continue
		}
		done = false
		kind := commit.RequestRelease
		if last != nil && last.Kind == commit.RequestRelease && last.answer != nil && last.answer.Failed {
			kind = commit.RequestDiscard
		}
		s.world.ask(kind, stream.Key(k))
	}
	return done
}

func (s *sim) readAsides(o *owner, e ReadAsides) {
	in := AsidesRead{Key: e.Key, Err: s.trouble()}
	if in.Err == nil {
		in.Rows = s.world.asides(e)
	}
	s.soon(func() { s.give(o, in) })
}

func (s *sim) discard(o *owner, e Discard) {
	in := DiscardDone{Key: e.Key, Err: s.trouble()}
	if in.Err == nil {
		in.Discarded, in.Err = s.world.discard(o.tenure, e.Key)
	}
	if s.happens(1) && in.Err == nil {
		in = DiscardDone{Key: e.Key, Err: errors.New("the answer was lost")}
	}
	s.soon(func() { s.give(o, in) })
}

func (s *sim) answer(o *owner, e Answer) {
	if s.happens(1) || s.world.fenced(o.tenure) != nil {
		return
	}
	if r := s.world.requests[e.Answer.Request]; r.answer == nil {
		r.answer = &e.Answer
	}
}

// judgeOperated judges a key of whose quarantined records an operator disposed: each record is published in order, discarded,
// or a dead letter, and never two of them.
func (s *sim) judgeOperated(k string, records []stream.Record) error {
	published := s.world.observed[stream.Key(k)]
	state := KeyState{}
	for _, r := range records {
		rev := stream.Revision{Generation: 1, Offset: r.Offset}
		out := len(published) > 0 && published[0].Revision == rev
		dead, gone := s.world.dead[r.Offset], s.world.discarded[r.Offset]
		switch {
		case s.world.compacted[r.Offset] && dead == 0 && !out && !gone:
		case s.world.aside[r.Offset] > 0:
			return fmt.Errorf("%s: %d is left in quarantine", k, r.Offset)
		case out:
			if dead > 0 || gone {
				return fmt.Errorf("%s: %d is published, dead letters %d, discarded %t", k, r.Offset, dead, gone)
			}
			next, err := s.follow(state, r, published[0])
			if err != nil {
				return fmt.Errorf("%s: %w", k, err)
			}
			published, state = published[1:], next
		// A dead letter that a crash left without its frontier may have been discarded too.
		case dead > 1, dead == 0 && !gone:
			return fmt.Errorf("%s: %d has %d dead letters, discarded %t, published next: %s", k, r.Offset, dead, gone, head(published))
		case dead == 1 && !strings.HasPrefix(string(r.Value), "?") && s.cfg.QuarantineBound > 1000 && s.pace == 0:
			return fmt.Errorf("%s: %d is a dead letter although there was room", k, r.Offset)
		}
	}
	if len(published) > 0 {
		return fmt.Errorf("%s: too much is published: %s", k, head(published))
	}
	return s.judgeRow(k, state)
}

// H10, A19, F18, F30: TestSim runs half of its seeds with an operator, who releases and discards while all else goes wrong; testdata
// tells the same as stories (release, discard, ...). This test pins that those seeds do something.
func TestSimOperates(t *testing.T) {
	released, discarded, failed := 0, 0, 0
	for seed := uint64(1); seed < 120; seed++ {
		s, err := simulated(t, seed)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		discarded += len(s.world.discarded)
		for _, r := range s.world.requests {
			if r.answer != nil && r.answer.Failed {
				failed++
			}
			if r.answer != nil && r.Kind == commit.RequestRelease && !r.answer.Failed && r.answer.Outcome[0] > '0' && r.answer.Outcome[0] <= '9' {
				released++
			}
		}
	}
	if released < 10 || discarded < 20 || failed < 5 {
		t.Errorf("%d releases, %d discarded observations, %d failed requests: the operator does too little", released, discarded, failed)
	}
}
