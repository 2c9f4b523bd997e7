package pgstore_test

import (
	"fmt"
	"slices"

	"github.com/anishathalye/porcupine"
)

// What the store promises, as a sequential object that a history is judged by: the owner row of one partition, a lock
// with a fence, together with one register of it: a key's row (a CAS register under the fence) or the partition's
// frontier (a register that only rises, under the fence).

type linKind string

const (
	linEpochs  linKind = "epochs"
	linAcquire linKind = "acquire"
	linHolds   linKind = "holds"
	linFenced  linKind = "passes the fence" // what a verdict of a statement whose fence held says besides
	linPrepare linKind = "prepare"
	linPromote linKind = "promote"
	linPersist linKind = "persist"
	linRestore linKind = "restore"
	linSave    linKind = "save frontier"
	linStart   linKind = "start"
)

// linInput is an operation as it was asked for.
type linInput struct {
	Kind      linKind
	Register  string // a key, or frontierRegister; empty: the owner row alone
	Epoch     int64  // of the tenure; of an acquisition: the expected one
	Nonce     byte   // of the tenure; of an acquisition: the new one
	Base, Rev int64  // offsets; 0: none
	ID        string // the commit, by its state
}

const frontierRegister = "frontier"

type linVerdict string

const (
	linOK       linVerdict = "ok"
	linNo       linVerdict = "no" // lost the acquisition, holds no more
	linCurrent  linVerdict = "current"
	linConflict linVerdict = "conflict"
	linBusy     linVerdict = "busy"
	linRefused  linVerdict = "fenced"
	linUnknown  linVerdict = "unknown" // no answer: done, not done, or done later
)

// linOutput is what the store answered.
type linOutput struct {
	Verdict   linVerdict
	Epoch     int64 // read: the owner's
	Rev, Prep int64 // read: the row's current and prepared revision; Rev: a conflict's actual one, or the frontier
	Cur, Next string
}

// linState is the owner row with one register. All zero: never owned, no row.
type linState struct {
	epoch     int64
	nonce     byte
	rev, prep int64
	cur, next string // commits, by their states
	frontier  int64
}

func (s linState) holds(in linInput) bool { return s.epoch == in.Epoch && s.nonce == in.Nonce }

// linModel judges each register with a copy of what happened to the owner row.
func linModel() porcupine.Model {
	return porcupine.Model{
		Partition: func(history []porcupine.Operation) [][]porcupine.Operation {
			var owner []porcupine.Operation
			registers := map[string][]porcupine.Operation{}
			var names []string
			for _, op := range history {
				name := op.Input.(linInput).Register
				if name == "" {
					owner = append(owner, op)
					continue
				}
				if registers[name] == nil {
					names = append(names, name)
				}
				registers[name] = append(registers[name], op)
			}
			slices.Sort(names)
			parts := make([][]porcupine.Operation, 0, len(names))
			for _, name := range names {
				parts = append(parts, append(slices.Clone(owner), registers[name]...))
			}
			return parts
		},
		Init: func() any { return linState{} },
		Step: func(state, in, out any) (bool, any) {
			return linStep(state.(linState), in.(linInput), out.(linOutput))
		},
		DescribeOperation: func(in, out any) string { return fmt.Sprintf("%+v: %+v", in, out) },
		DescribeState:     func(s any) string { return fmt.Sprintf("%+v", s) },
	}
}

// linStep says whether the operation could have had this answer in this state, and what the state is then. An operation without an
// answer is done if it can be: one that was never done may stand at the end of the history, where nobody sees it.
func linStep(s linState, in linInput, out linOutput) (bool, linState) {
	if out.Verdict == linRefused {
		return !s.holds(in) && (out.Epoch == 0 || out.Epoch == s.epoch), s
	}
	switch in.Kind {
	case linEpochs:
		return s.epoch == out.Epoch, s
	case linHolds:
		return s.holds(in) == (out.Verdict == linOK), s
	case linFenced:
		return s.holds(in), s
	case linAcquire:
		return linAcquired(s, in, out)
	case linPrepare:
		return linPrepared(s, in, out)
	case linPromote:
		return linPromoted(s, in, out)
	case linPersist:
		return linPersisted(s, in, out)
	case linRestore:
		return s.rev == out.Rev && s.prep == out.Prep && s.cur == out.Cur && s.next == out.Next, s
	case linSave:
		if s.holds(in) {
			s.frontier = max(s.frontier, in.Rev)
			return true, s
		}
		return out.Verdict == linUnknown, s
	case linStart:
		return s.holds(in) && s.frontier == out.Rev, s
	}
	panic("unknown operation " + in.Kind)
}

func linAcquired(s linState, in linInput, out linOutput) (bool, linState) {
	if s.epoch != in.Epoch {
		return out.Verdict != linOK, s
	}
	if out.Verdict == linNo {
		return false, s
	}
	s.epoch, s.nonce = in.Epoch+1, in.Nonce
	if s.frontier == 0 {
		s.frontier = firstFrontier
	}
	return true, s
}

// firstFrontier is what claimOf names.
const firstFrontier = 100

func linPrepared(s linState, in linInput, out linOutput) (bool, linState) {
	there := s.next == in.ID && s.prep == in.Rev
	current := s.cur == in.ID && s.rev == in.Rev
	standing := s.rev
	if s.prep != 0 {
		standing = s.prep
	}
	switch {
	case out.Verdict == linCurrent:
		return current, s
	case out.Verdict == linConflict:
		return s.prep == 0 && s.rev == out.Rev && s.rev != in.Base && !current, s
	case out.Verdict == linBusy:
		return s.prep == out.Prep && s.prep != in.Base && !there, s
	case there:
		return true, s
	case s.holds(in) && standing == in.Base:
		if s.prep != 0 {
			s.rev, s.cur = s.prep, s.next
		}
		s.prep, s.next = in.Rev, in.ID
		return true, s
	}
	return out.Verdict == linUnknown, s
}

func linPromoted(s linState, in linInput, out linOutput) (bool, linState) {
	there := s.next == in.ID && s.prep == in.Rev
	if out.Verdict == linConflict {
		return !there && s.rev == out.Rev && s.rev < in.Rev, s
	}
	switch {
	case there && s.holds(in):
		s.rev, s.cur, s.prep, s.next = s.prep, s.next, 0, ""
		return true, s
	case s.rev >= in.Rev:
		return true, s
	}
	return out.Verdict == linUnknown, s
}

func linPersisted(s linState, in linInput, out linOutput) (bool, linState) {
	current := s.cur == in.ID && s.rev == in.Rev
	switch {
	case out.Verdict == linConflict:
		return s.prep == 0 && s.rev == out.Rev && s.rev != in.Base && !current, s
	case out.Verdict == linBusy:
		return s.prep != 0 && s.prep == out.Prep, s
	case s.prep == 0 && current:
		return true, s
	case s.prep == 0 && s.holds(in) && s.rev == in.Base:
		s.rev, s.cur = in.Rev, in.ID
		return true, s
	}
	return out.Verdict == linUnknown, s
}
