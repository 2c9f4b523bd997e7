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
	published := s.world.published[stream.Key(k)]
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
			got := string(published[0].Outputs[0].Value)
			want, next, err := naive(state, r, 0)
			if s.fickle && got != want && err == nil {
				want, next, err = naive(state, r, 1)
			}
			if err != nil {
				return err
			}
			if got != want {
				return fmt.Errorf("%s: %d published %q, the model says %q", k, r.Offset, got, want)
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
	if got, want := string(r.current.State), string(state.Checkpoint.State); got != want {
		return fmt.Errorf("%s: the row is %s, the model says %s", k, got, want)
	}
	return nil
}

// naive decides one record over a state as anybody would.
func naive(k KeyState, r stream.Record, flavour int) (output string, next KeyState, err error) {
	o, err := toy{}.Decode(&r)
	if err != nil {
		return "", next, err
	}
	o.Identity = stream.Identity{Partition: r.Partition, Revision: stream.Revision{Generation: 1, Offset: r.Offset}}
	opening := toy{}.Open(k, o)
	d := Decision{}
	if opening.Local != nil {
		d = *opening.Local
	} else if d, err = toySolve(opening.Request, flavour); err != nil {
		return "", next, err
	}
	p, err := toy{}.Plan(k, o, d)
	if err != nil {
		return "", next, err
	}
	return string(p.Outputs[0].Value), KeyState{Checkpoint: p.Next}, nil
}

func head(cs []commit.Commit) string {
	if len(cs) == 0 {
		return "nothing"
	}
	return fmt.Sprintf("%s %s", cs[0].Revision, cs[0].Outputs[0].Value)
}
