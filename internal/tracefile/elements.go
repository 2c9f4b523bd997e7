package tracefile

import (
	"bufio"
	"errors"
	"io"
)

var errArrayEnd = errors.New("end of the array")

// elements cuts a JSON text into the elements of an array without understanding them, each bounded.
type elements struct {
	r    *bufio.Reader
	max  int
	line int // of the next byte, from 1
	buf  []byte
}

// peek gives the next byte that is not white space, without taking it.
func (e *elements) peek() (byte, error) {
	for {
		b, err := e.r.Peek(1)
		if err != nil {
			return 0, err
		}
		switch b[0] {
		case '\n', ' ', '\t', '\r':
			e.take()
		default:
			return b[0], nil
		}
	}
}

// take takes the byte that peek gave.
func (e *elements) take() {
	if b, err := e.r.ReadByte(); err == nil && b == '\n' {
		e.line++
	}
}

// next gives the array's next element and the line it begins on; valid until the next call.
func (e *elements) next() ([]byte, int, error) {
	for {
		c, err := e.peek()
		switch {
		case err != nil:
			return nil, e.line, err
		case c == ',':
			e.take()
		case c == ']':
			e.take()
			return nil, e.line, errArrayEnd
		default:
			line := e.line
			b, err := e.value()
			return b, line, err
		}
	}
}

// value reads one value: to its closing bracket, or to the comma or bracket that ends a bare one, which is not taken.
func (e *elements) value() ([]byte, error) {
	e.buf = e.buf[:0]
	depth, text, escaped, long := 0, false, false, false
	for {
		head, err := e.r.Peek(1)
		if err != nil {
			return nil, err
		}
		c := head[0]
		if depth == 0 && !text && (c == ',' || c == ']' || c == '}') {
			break
		}
		e.take()
		if long = long || len(e.buf) >= e.max; !long {
			e.buf = append(e.buf, c)
		}
		switch {
		case escaped:
			escaped = false
		case text && c == '\\':
			escaped = true
		case c == '"':
			text = !text
		case text:
		case c == '{' || c == '[':
			depth++
		case c == '}' || c == ']':
			depth--
		}
		if depth == 0 && !text && (c == '}' || c == ']' || c == '"') {
			break
		}
	}
	if long {
		return nil, errRowTooLong
	}
	if len(e.buf) == 0 { // a closing bracket where a value should be
		e.take()
		return []byte{'?'}, nil
	}
	return e.buf, nil
}

// seekFeatures goes to the value of the member "features" of the object that begins next.
func (e *elements) seekFeatures() error {
	if c, err := e.peek(); err != nil || c != '{' {
		return errNoFeatures
	}
	e.take()
	for {
		c, err := e.peek()
		switch {
		case errors.Is(err, io.EOF), c == '}':
			return errNoFeatures
		case err != nil:
			return err
		case c == ',', c == ':':
			e.take()
			continue
		}
		name, err := e.value()
		if err != nil && !errors.Is(err, errRowTooLong) {
			return err
		}
		if string(name) != `"features"` {
			continue
		}
		if c, err := e.peek(); err == nil && c == ':' {
			e.take()
			return nil
		}
	}
}
