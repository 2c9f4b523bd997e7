package partition

import (
	"fmt"
	"strings"

	"milepost/internal/commit"
	"milepost/internal/stream"
)

// judge compares what the world has with the naive model: each key's words one after another.
func (s *sim) judge() error {
	byKey := map[string][]stream.Record{}
	for _, r := range s.world.log {
		byKey[string(r.Key)] = append(byKey[string(r.Key)], r)
	}
	if got := s.world.saved.Frontier.Next.Offset; got < s.next {
		return fmt.Errorf("the frontier ended at %d, the log at %d", got, s.next)
	}
	for _, k := range s.keys {
		judge := s.judgeKey
		if s.operator {
			judge = s.judgeOperated
		}
		if err := judge(k, byKey[k]); err != nil {
			return err
		}
	}
	for _, r := range byKey[""] {
		if n := s.world.dead[r.Offset]; n != 1 && !s.world.compacted[r.Offset] {
			return fmt.Errorf("keyless %d has %d dead letters", r.Offset, n)
		}
	}
	return nil
}

func (s *sim) judgeKey(k string, records []stream.Record) error {
	published := s.world.observed[stream.Key(k)]
	state, stopped, known := KeyState{}, false, false
	for _, r := range records {
		word := string(r.Value)
		rev := stream.Revision{Generation: 1, Offset: r.Offset}
		dead, aside := s.world.dead[r.Offset], s.world.aside[r.Offset]
		out := len(published) > 0 && published[0].Revision == rev
		lost := s.world.compacted[r.Offset]
		if aside > 0 {
			known = true
		}
		if stopped && out && !known {
			// Nothing of the key found room in the quarantine: all was dead-lettered, and a later owner goes on.
			stopped = false
		}
		switch {
		case lost && dead+aside == 0 && !out:
		case strings.HasPrefix(word, "?"):
			// The quarantine takes a poison record of a key only where its dead letter cannot be published.
			if out || dead != 1 {
				return fmt.Errorf("%s: poison %d has %d dead letters, aside %d, published %t", k, r.Offset, dead, aside, out)
			}
		case stopped || strings.HasPrefix(word, "!"):
			// Over the bound of the quarantine a record is dead-lettered; a crash between the two may leave both.
			if out || dead+aside < 1 || dead > 1 {
				return fmt.Errorf("%s: %d of a quarantined key has %d dead letters, aside %d, published %t", k, r.Offset, dead, aside, out)
			}
			stopped = true
		case !out:
			return fmt.Errorf("%s: %d is not published next: %s", k, r.Offset, head(published))
		default:
			next, err := s.follow(state, r, published[0])
			if err != nil {
				return fmt.Errorf("%s: %w", k, err)
			}
			published, state = published[1:], next
			if dead+aside > 0 {
				return fmt.Errorf("%s: %d is published, dead letters %d, aside %d", k, r.Offset, dead, aside)
			}
		}
	}
	if len(published) > 0 {
		return fmt.Errorf("%s: too much is published: %s", k, head(published))
	}
	return s.judgeRow(k, state)
}

func (s *sim) judgeRow(k string, state KeyState) error {
	r := s.world.row(stream.Key(k))
	if r.prepared != nil && !s.world.cursed(*r.prepared) {
		return fmt.Errorf("%s: %s is left prepared", k, r.prepared.Revision)
	}
	got, want := string(r.current.State), string(state.Checkpoint.State)
	diverged := s.mayDiverge(k) && (garbled(r.current) || s.world.compacted[state.Checkpoint.Revision.Offset])
	if got != want && !diverged {
		return fmt.Errorf("%s: the row is %s, the model says %s", k, got, want)
	}
	return nil
}

// mayDiverge reports whether a rebuilt state of the key may differ from what was published: another owner decides otherwise, or the
// log has lost a record.
func (s *sim) mayDiverge(k string) bool {
	if s.mode == prepared {
		return false
	}
	for _, c := range s.world.observed[stream.Key(k)] {
		if s.world.compacted[c.Revision.Offset] {
			return true
		}
	}
	return s.fickle
}

// follow checks what was published of a record against the model and gives the state behind it. Where a rebuilt state differed, a reset
// must have been announced first, in a segment above all before.
func (s *sim) follow(state KeyState, r stream.Record, c commit.Commit) (KeyState, error) {
	states := []KeyState{state}
	if s.mayDiverge(string(r.Key)) && !state.Checkpoint.Revision.IsZero() {
		lost := state
		lost.Checkpoint.State = []byte("garbled")
		states = append(states, lost)
	}
	got, wants := told(c.Outputs), []string{}
	for i, from := range states {
		for flavour := range 2 {
			if flavour > 0 && !s.fickle {
				break
			}
			want, next, err := naive(from, r, flavour)
			if err != nil {
				return state, err
			}
			if got != want {
				wants = append(wants, want)
				continue
			}
			is := c.Next.Segment
			if before := state.Checkpoint.Segment; i == 0 && is != next.Checkpoint.Segment || i > 0 && is <= before {
				return state, fmt.Errorf("%d published in segment %d, the one before in %d", r.Offset, is, before)
			}
			next.Checkpoint.Segment = is
			return next, nil
		}
	}
	return state, fmt.Errorf("%d published %q, the model says %q", r.Offset, got, wants)
}

// told joins outputs.
func told(outputs []commit.Output) string {
	var all []string
	for _, o := range outputs {
		all = append(all, string(o.Value))
	}
	return strings.Join(all, ", ")
}

// naive decides one record over a state as anybody would.
func naive(k KeyState, r stream.Record, flavour int) (output string, next KeyState, err error) {
	o, err := toy{}.Decode(&r)
	if err != nil {
		return "", next, err
	}
	o.Identity = stream.Identity{Partition: r.Partition, Revision: stream.Revision{Generation: 1, Offset: r.Offset}}
	opening := toy{}.Open(k, o)
	var d Decision
	if opening.Local != nil {
		d = *opening.Local
	} else if d, err = toySolve(opening.Request, flavour); err != nil {
		return "", next, err
	}
	p, err := toy{}.Plan(k, o, d)
	if err != nil {
		return "", next, err
	}
	return told(p.Outputs), KeyState{Checkpoint: p.Next}, nil
}

func head(cs []commit.Commit) string {
	if len(cs) == 0 {
		return "nothing"
	}
	return fmt.Sprintf("%s %s", cs[0].Revision, cs[0].Outputs[0].Value)
}
