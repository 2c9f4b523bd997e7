package loop

import (
	"regexp"
	"slices"
	"strings"
)

// What carries no information in an event: names of values that differ with every call, and values that look it.
// The lists are of the language that tools and models speak to each other; they are data, chosen on the tuning part of the corpus.
var (
	uuid         = regexp.MustCompile(`(?i)\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b`)
	moment       = regexp.MustCompile(`\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:?\d\d)?\b|\b\d{1,2}:\d\d:\d\d(\.\d+)?\b`)
	hex          = regexp.MustCompile(`(?i)\b(0x)?[0-9a-f]{7,64}\b`)
	tagged       = regexp.MustCompile(`(?i)\b(req|request|trace|corr|call|nonce|txn|ref|rid|span|evt|msg|session|sess|run|inv|x)[-_:#=]+[0-9a-z]*\d[0-9a-z]*\b`)
	duration     = regexp.MustCompile(`(?i)\b\d+(\.\d+)?\s?(ms|µs|us|ns|s|sec|secs|second|seconds|min|mins|minutes)\b`)
	opaque       = regexp.MustCompile(`\b[A-Za-z0-9+/_-]{16,}={0,2}`)
	sleepCommand = regexp.MustCompile(`:\s*"sleep [0-9.]+[smh]?"\s*}$`)
	noneOf       = regexp.MustCompile(`\b(errors?|failed|failures?|missing|rejected|conflicts?|timeouts?): (0|false|null|none)?(\s|$)`) // no errors
	lexeme       = regexp.MustCompile(`[\pL][\pL'_]*|[0-9]+([.][0-9]+)?%?|[一-龥]`)
)

func noisyKey(k string) bool {
	k = strings.ToLower(strings.ReplaceAll(k, "-", "_"))
	return isNonceKey(k)
}

// isEpoch tells a time in seconds, milliseconds, microseconds or nanoseconds since 1970, of the years 2001 to 2065.
func isEpoch(digits string) bool {
	whole, _, _ := strings.Cut(digits, ".")
	switch len(whole) {
	case 10, 13, 16, 19:
		return whole[0] >= '1' && whole[0] <= '2' && strings.Trim(whole, "0123456789") == ""
	}
	return false
}

// counts says whether a word or path beside a number tells that the number counts something.
func counts(beside string) bool {
	found := lexeme.FindAllString(strings.ToLower(strings.ReplaceAll(beside, "_", " ")), -1)
	return slices.ContainsFunc(found, isCountWord)
}

func mentions(text string, is func(word string) bool) bool {
	for _, w := range strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return !isLetter(r) && r != '-' && r != '_' }) {
		if is(w) || slices.ContainsFunc(strings.FieldsFunc(w, func(r rune) bool { return r == '-' || r == '_' }), func(p string) bool { return is(p) }) {
			return true
		}
	}
	return false
}

func isLetter(r rune) bool { return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r > 127 }

// mask replaces what is different each time by nothing.
func mask(s string, durations bool) string {
	s = uuid.ReplaceAllString(s, " ")
	s = moment.ReplaceAllString(s, " ")
	s = tagged.ReplaceAllString(s, " ")
	s = opaque.ReplaceAllStringFunc(s, func(w string) string {
		if random(w) {
			return " "
		}
		return w
	})
	s = hex.ReplaceAllStringFunc(s, func(w string) string {
		if strings.ContainsAny(w, "0123456789") && strings.ContainsAny(strings.ToLower(w), "abcdef") {
			return " "
		}
		return w
	})
	if durations {
		s = duration.ReplaceAllString(s, " ")
	}
	return s
}

// random tells an opaque token from a long word or a path: digits and letters change places often.
func random(w string) bool {
	changes, class := 0, 0
	for _, r := range w {
		c := 1
		switch {
		case r >= '0' && r <= '9':
			c = 2
		case r >= 'A' && r <= 'Z':
			c = 3
		case !isLetter(r):
			c = class // a separator changes nothing
		}
		if class != 0 && c != class {
			changes++
		}
		class = c
	}
	return changes*4 >= len(w) && strings.ContainsAny(w, "0123456789")
}

// text takes words and numbers of a text apart. A text of its own, beside no call, has its filler taken out as well.
func (c *collector) text(path, s string, prose bool) {
	if prose || strings.Count(s, " ") >= 2 && !strings.ContainsAny(s, "/\\=<>{}") {
		c.s.prose = true
	}
	s = strings.ToLower(mask(s, c.durations))
	before := []string{path}
	var said []string
	found := lexeme.FindAllString(s, -1)
	for i, w := range found {
		if w[0] >= '0' && w[0] <= '9' {
			beside := strings.Join(before[max(0, len(before)-2):], " ")
			if i+1 < len(found) {
				beside += " " + found[i+1]
			}
			if strings.HasSuffix(w, "%") {
				beside += " percent"
			}
			if !isAttemptWord(before[len(before)-1]) {
				c.number(path, strings.TrimSuffix(w, "%"), beside)
			}
			continue
		}
		c.plain.WriteString(" " + w)
		before = append(before, w)
		if prose && isFiller(w) {
			continue
		}
		said = append(said, w)
		c.s.words = append(c.s.words, hashOf(w))
	}
	if len(said) > 0 {
		c.s.facts = append(c.s.facts, hashOf(path, strings.Join(said, " ")))
	}
}

// resultKind is what a result tells by its words.
type resultKind uint8

const (
	rich    resultKind = iota // says something
	ack                       // says that it is done
	failing                   // says that it failed, or found nothing
	pending                   // says that something else is not done yet
)

func kindOf(plain string, facts int) resultKind {
	plain = noneOf.ReplaceAllString(plain, " ")
	found := lexeme.FindAllString(strings.ReplaceAll(plain, "_", " "), -1)
	var acks, fails, waits, other int
	for _, w := range found {
		switch {
		case isFailWord(w):
			fails++
		case isPendingWord(w):
			waits++
		case isAckWord(w):
			acks++
		case w[0] >= '0' && w[0] <= '9', isFiller(w):
		default:
			other++
		}
	}
	for _, p := range emptyPhrases() {
		if strings.Contains(plain, p) {
			fails++
		}
	}
	switch {
	case facts == 0 && len(found) == 0, plain == "":
		return failing // nothing came back
	case fails > 0 && len(found) < 40:
		return failing
	case waits > 0 && len(found) < 24:
		return pending
	case acks > 0 && other <= 2+acks, acks == 0 && other <= 1 && facts <= 1 && !strings.ContainsAny(plain, "0123456789"):
		return ack
	}
	return rich
}
