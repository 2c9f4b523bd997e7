package partition

import (
	"errors"
	"fmt"
	"strings"

	"milepost/internal/commit"
)

// solve is one of three replicas that keep the trips of what they answered. A request without the trip is that replica's
// alone; it may have forgotten.
func (s *sim) solve(o *owner, e Dispatch) Result {
	in := Result{Job: e.Job, Key: e.Key, Revision: e.Revision}
	if s.remote {
		in.Replica = fmt.Sprintf("r%d", (int(e.Key[len(e.Key)-1])+e.Attempt)%3)
	}
	request := string(e.Request)
	if e.Replica != "" {
		in.Replica = e.Replica
		trip, word, _ := strings.Cut(request, " ")
		state, ok := s.trips[e.Replica+"/"+string(e.Key)]
		delete(s.trips, e.Replica+"/"+string(e.Key)) // taken on use
		if !ok || fmt.Sprintf("#%08x", digest(state)) != trip || s.happens(1) {
			in.TripMiss = true
			return in
		}
		request = state + " " + word
	}
	in.Decision, in.Err = toySolve([]byte(request), s.flavour(o.tenure.Epoch))
	if n := len(in.Decision.More); n > 0 && s.happens(1) { // it stops early
		in.Decision.More = in.Decision.More[:s.rng.IntN(n)]
	}
	if in.Err == nil && in.Replica != "" {
		state, words, _ := strings.Cut(request, " ")
		for i, word := range strings.Split(words, " ")[:1+len(in.Decision.More)] {
			state = toyFold(state, word, string((&job{run: i + 1, decision: in.Decision}).about(i).Answer))
		}
		s.trips[in.Replica+"/"+string(e.Key)] = state
	}
	return in
}

// commit is the commit stages: prepare, later publish, later the answer.
func (s *sim) commit(o *owner, c commit.Commit) {
	content := fmt.Sprintf("%s %s %v %v", c.Base, c.Revision, c.Next, c.Outputs)
	if was, ok := o.commits[c.ID]; ok && was != content {
		s.world.fault("commit %s of %q was sent with other bytes (I7)", c.ID, c.Key)
	}
	o.commits[c.ID] = content
	if c.Key != "" {
		if o.inside[c.Key]++; o.inside[c.Key] > 1 {
			s.world.fault("two commits of %q are in the stages (I1)", c.Key)
		}
	}
	answer := func(position int64, err error) {
		s.soon(func() {
			o.inside[c.Key]--
			s.give(o, Committed{Key: c.Key, Revision: c.Revision, ID: c.ID, Position: position, Err: err})
		})
	}
	s.soon(func() {
		switch {
		case c.NoRow, c.Deferred:
		case s.happens(0.5):
			answer(0, errors.New("database away"))
			return
		// As if somebody had changed the row and put it back: never where our own commit stands, which Postgres would know.
		case !s.world.stands(c) && s.happens(0.5):
			if s.happens(0.6) {
				answer(0, &commit.ConflictError{Key: c.Key, Want: c.Base})
			} else {
				answer(0, &commit.BusyError{Key: c.Key})
			}
			return
		default:
			current, err := s.world.prepare(c)
			if err != nil || current {
				answer(-1, err)
				return
			}
		}
		s.soon(func() {
			switch {
			case s.world.cursed(c):
				answer(0, fmt.Errorf("too large: %w", commit.ErrPermanent))
			case s.happens(0.7):
				answer(0, errors.New("broker away"))
			default:
				answer(s.world.publish(o.tenure, c))
			}
		})
	})
}

// persist writes checkpoints; a whole answer may be lost, and a verdict may be that of a row that somebody changed and put back.
func (s *sim) persist(o *owner, e Persist) {
	in := Persisted{Persists: e.Persists, Err: s.trouble()}
	if in.Err == nil {
		for _, p := range e.Persists {
			var err error
			if s.happens(0.9) {
				err = []error{
					&commit.ConflictError{Key: p.Key, Want: p.Base}, &commit.BusyError{Key: p.Key}, errors.New("row locked"),
				}[s.rng.IntN(3)]
			}
			if err == nil || s.world.fenced(o.tenure) != nil {
				err = s.world.persist(p)
			}
			in.Errs = append(in.Errs, err)
		}
		if s.happens(1) {
			in.Errs, in.Err = nil, errors.New("the answer was lost")
		}
	}
	s.soon(func() { s.give(o, in) })
}

func (s *sim) promote(o *owner, e Promote) {
	in := Promoted{Promotions: e.Promotions, Err: s.trouble()}
	if in.Err == nil {
		for _, p := range e.Promotions {
			in.Errs = append(in.Errs, s.world.promote(p))
		}
	}
	s.soon(func() { s.give(o, in) })
}

func (s *sim) quarantine(o *owner, e Quarantine) {
	in := QuarantineSaved{Rows: e.Rows, Err: s.trouble()}
	if in.Err == nil {
		for _, q := range e.Rows {
			var err error
			if n := len(in.Errs); n > 0 && in.Errs[n-1] != nil {
				err = in.Errs[n-1] // one statement: what follows a refused one is refused too
			} else {
				err = s.trouble()
			}
			if err == nil {
				err = s.world.quarantine(q, s.happens(0.2))
			}
			in.Errs = append(in.Errs, err)
		}
	}
	s.soon(func() { s.give(o, in) })
}

// refetch finds spilled offsets again; the log may have lost one to compaction.
func (s *sim) refetch(o *owner, e Refetch) {
	in := Arrived{Refetched: true, Err: s.trouble()}
	for _, offset := range e.Offsets {
		if in.Err != nil && s.rng.IntN(2) == 0 {
			break
		}
		for _, r := range s.world.log {
			switch {
			case r.Offset != offset:
			case s.world.compacted[offset] || s.happens(0.05):
				s.world.compacted[offset] = true
				in.Missing = append(in.Missing, offset)
			default:
				in.Records = append(in.Records, r)
			}
		}
	}
	s.soon(func() { s.give(o, in) })
}
