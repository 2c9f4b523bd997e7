package loop

import (
	"math"
	"slices"
)

// relation of a step to the one a period before it.
type relation uint8

const (
	progress         relation = iota // another thing, or something was learnt
	repeats                          // the same, for nothing
	repeatsPatiently                 // the same, for a reason
)

// compare judges a step beside the one a period before, and the one a period before that where there is one. A text is aside when calls are
// made between it and the one before.
func compare(aside bool, further, before, s *step, learnt bool) relation {
	if before.text != s.text {
		return progress
	}
	if s.text {
		if aside && overlap(before.call.words, s.call.words) >= 0.25 {
			return repeats // what is said between calls that repeat may be said in other words
		}
		return compareTexts(further, before, s, learnt)
	}
	if before.call.shape != s.call.shape || before.kind != s.kind {
		return progress
	}
	same := before.call.exact == s.call.exact
	alike := same || slices.Equal(before.call.facts, s.call.facts) // but for numbers
	switch {
	case learnt:
		return progress
	case same && s.kind == rich && slices.Equal(s.result.facts, before.result.facts) && s.result.exact != before.result.exact:
		return progress // a gauge is read
	case same:
		return patient(s)
	case alike:
		return compareNumbers(further, before, s)
	}
	return compareWords(before, s)
}

func patient(s *step) relation {
	if s.excused {
		return repeatsPatiently
	}
	return repeats
}

// compareNumbers is for calls that differ by numbers alone, and gave nothing new.
func compareNumbers(further, before, s *step) relation {
	if s.kind == ack {
		return progress // row by row
	}
	if moves(further, before, s, false) {
		return repeatsPatiently // it goes on to somewhere, so far in vain
	}
	if s.kind == rich && s.result.exact != before.result.exact {
		return progress
	}
	return patient(s)
}

// compareWords is for calls of a tool that differ by words, and gave nothing new: paraphrases of one question, if they share most of
// their words and the answer is the same.
func compareWords(before, s *step) relation {
	if s.kind == ack || s.result.exact != before.result.exact && s.kind != failing {
		return progress
	}
	if !s.call.prose || len(s.call.words) < 3 || overlap(before.call.words, s.call.words) < 0.5 {
		return progress
	}
	return patient(s)
}

func compareTexts(further, before, s *step, learnt bool) relation {
	if len(s.call.words) == 0 && len(before.call.words) == 0 {
		return repeats // filler after filler
	}
	if learnt || shared(before.call.words, s.call.words) < 0.6 {
		return progress
	}
	if s.call.counted && moves(further, before, s, true) {
		return progress
	}
	return repeats
}

// moves says whether a number moves on in one direction from step to step, and, unless it may do so unevenly, by about as much each time. With
// two steps alone any move will do.
func moves(further, before, s *step, unevenly bool) bool {
	for i, n := range s.call.numbers {
		if i >= len(before.call.numbers) || before.call.numbers[i].place != n.place {
			continue
		}
		move := n.value - before.call.numbers[i].value
		if move == 0 {
			continue
		}
		if further == nil || i >= len(further.call.numbers) || further.call.numbers[i].place != n.place {
			return true
		}
		last := before.call.numbers[i].value - further.call.numbers[i].value
		if last*move > 0 && (unevenly || math.Abs(last-move) <= max(2, math.Abs(last)/4)) {
			return true
		}
	}
	return false
}

// overlap is the share of common elements of two sorted sets (Jaccard), 1 for two empty ones.
func overlap(a, b []uint64) float64 {
	common, i, j := 0, 0, 0
	for i < len(a) && j < len(b) {
		switch {
		case a[i] == b[j]:
			common, i, j = common+1, i+1, j+1
		case a[i] < b[j]:
			i++
		default:
			j++
		}
	}
	all := len(a) + len(b) - common
	if all == 0 {
		return 1
	}
	return float64(common) / float64(all)
}

// shared is the share of the smaller set that the other one has too.
func shared(a, b []uint64) float64 {
	if o, small := overlap(a, b), min(len(a), len(b)); small > 0 {
		return o * float64(len(a)+len(b)) / (1 + o) / float64(small)
	}
	return 0
}

// distance of two steps in what they say, from 0 to 1.
func distance(a, b *step) float64 {
	if a.text != b.text {
		return 1
	}
	if a.call.exact == b.call.exact && a.result.exact == b.result.exact {
		return 0
	}
	if a.call.shape != b.call.shape {
		return 1
	}
	return 1 - (overlap(a.call.words, b.call.words)+overlap(a.result.words, b.result.words))/2
}
