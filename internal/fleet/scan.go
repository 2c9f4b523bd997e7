package fleet

import (
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"
)

// maxDepth bounds the nesting of ignored fields; deeper input is refused before it can cost a stack.
const maxDepth = 16

type valueKind uint8

const (
	stringValue valueKind = iota + 1
	numberValue
	boolValue
	nullValue
	nonFiniteValue // NaN, Infinity, -Infinity: not JSON, but what several encoders write
	nestedValue
)

// value is one field's value; raw points into the input.
type value struct {
	kind valueKind
	raw  []byte
}

var (
	errSyntax = errors.New("not a JSON object")
	errNested = errors.New("nested too deep")
)

// scanner walks a JSON text once, without building what nobody asked for.
type scanner struct {
	b []byte
	i int
}

// scanObject calls field for each member of the one object that b must be, in order.
func scanObject(b []byte, field func(name string, v value) error) error {
	s := &scanner{b: b}
	s.space()
	if !s.take('{') {
		return errSyntax
	}
	if err := s.members(1, field); err != nil {
		return err
	}
	s.space()
	if s.i != len(b) {
		return fmt.Errorf("%w: text after its end", errSyntax)
	}
	return nil
}

func (s *scanner) space() {
	for s.i < len(s.b) {
		switch s.b[s.i] {
		case ' ', '\t', '\n', '\r':
			s.i++
		default:
			return
		}
	}
}

func (s *scanner) take(c byte) bool {
	if s.i < len(s.b) && s.b[s.i] == c {
		s.i++
		return true
	}
	return false
}

func (s *scanner) bad() error { return fmt.Errorf("%w: unexpected input at byte %d", errSyntax, s.i) }

// members scans after an opening brace, to the closing one. A nil field skips.
func (s *scanner) members(depth int, field func(string, value) error) error {
	s.space()
	if s.take('}') {
		return nil
	}
	for {
		s.space()
		raw, err := s.str()
		if err != nil {
			return err
		}
		s.space()
		if !s.take(':') {
			return s.bad()
		}
		v, err := s.value(depth)
		if err != nil {
			return err
		}
		if field != nil {
			name, err := unquote(raw)
			if err != nil {
				return err
			}
			if err := field(name, v); err != nil {
				return err
			}
		}
		s.space()
		switch {
		case s.take(','):
		case s.take('}'):
			return nil
		default:
			return s.bad()
		}
	}
}

func (s *scanner) elements(depth int) error {
	s.space()
	if s.take(']') {
		return nil
	}
	for {
		if _, err := s.value(depth); err != nil {
			return err
		}
		s.space()
		switch {
		case s.take(','):
		case s.take(']'):
			return nil
		default:
			return s.bad()
		}
	}
}

func (s *scanner) value(depth int) (value, error) {
	s.space()
	if s.i >= len(s.b) {
		return value{}, s.bad()
	}
	start := s.i
	done := func(k valueKind, err error) (value, error) {
		if err != nil {
			return value{}, err
		}
		return value{k, s.b[start:s.i]}, nil
	}
	switch c := s.b[s.i]; {
	case c == '"':
		_, err := s.str()
		return done(stringValue, err)
	case c == '{' || c == '[':
		if depth >= maxDepth {
			return value{}, errNested
		}
		s.i++
		if c == '{' {
			return done(nestedValue, s.members(depth+1, nil))
		}
		return done(nestedValue, s.elements(depth+1))
	case c == '-' || c >= '0' && c <= '9':
		if s.word("-Infinity") {
			return done(nonFiniteValue, nil)
		}
		return done(numberValue, s.number())
	case s.word("true"), s.word("false"):
		return done(boolValue, nil)
	case s.word("null"):
		return done(nullValue, nil)
	case s.word("NaN"), s.word("Infinity"):
		return done(nonFiniteValue, nil)
	}
	return value{}, s.bad()
}

func (s *scanner) word(w string) bool {
	if len(s.b)-s.i >= len(w) && string(s.b[s.i:s.i+len(w)]) == w {
		s.i += len(w)
		return true
	}
	return false
}

// str scans a string with its quotes.
func (s *scanner) str() ([]byte, error) {
	start := s.i
	if !s.take('"') {
		return nil, s.bad()
	}
	for s.i < len(s.b) {
		switch c := s.b[s.i]; {
		case c == '"':
			s.i++
			return s.b[start:s.i], nil
		case c == '\\':
			s.i += 2
		case c < 0x20:
			return nil, s.bad()
		default:
			s.i++
		}
	}
	s.i = len(s.b)
	return nil, fmt.Errorf("%w: a string has no end", errSyntax)
}

func (s *scanner) digits() bool {
	start := s.i
	for s.i < len(s.b) && s.b[s.i] >= '0' && s.b[s.i] <= '9' {
		s.i++
	}
	return s.i > start
}

func (s *scanner) number() error {
	s.take('-')
	if !s.take('0') && !s.digits() {
		return s.bad()
	}
	if s.take('.') && !s.digits() {
		return s.bad()
	}
	if s.take('e') || s.take('E') {
		if !s.take('+') {
			s.take('-')
		}
		if !s.digits() {
			return s.bad()
		}
	}
	return nil
}

// unquote decodes a scanned string.
func unquote(raw []byte) (string, error) {
	plain := raw[1 : len(raw)-1]
	for _, c := range plain {
		if c == '\\' || c >= utf8.RuneSelf {
			return unquoteSlow(raw)
		}
	}
	return string(plain), nil
}

func unquoteSlow(raw []byte) (string, error) {
	if !utf8.Valid(raw) {
		return "", fmt.Errorf("%w: a string is not UTF-8", errSyntax)
	}
	var s string
	if err := json.Unmarshal(raw, &s); err != nil {
		return "", fmt.Errorf("%w: a string has a bad escape", errSyntax)
	}
	return s, nil
}
