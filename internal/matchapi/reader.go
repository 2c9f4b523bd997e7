package matchapi

import (
	"encoding/json"
	"errors"
	"io"
	"math"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
)

// reader reads a JSON text value by value, without holding it: what it is too much of is refused while it comes.
type reader struct {
	d *json.Decoder
}

func newReader(in io.Reader) *reader {
	d := json.NewDecoder(in)
	d.UseNumber()
	return &reader{d: d}
}

// failed words an error of the text, or of the connection that it came over.
func (r *reader) failed(err error) *Problem {
	var (
		long   *http.MaxBytesError
		syntax *json.SyntaxError
	)
	switch {
	case errors.As(err, &long):
		p := problem(http.StatusRequestEntityTooLarge, codeTooLarge, "", "the body is longer than %d bytes", long.Limit)
		p.Limit = long.Limit
		return p
	case errors.Is(err, os.ErrDeadlineExceeded):
		return problem(http.StatusRequestTimeout, codeSlow, "", "the body did not come in time")
	case errors.Is(err, io.EOF) && r.d.InputOffset() == 0:
		return problem(http.StatusBadRequest, codeNotJSON, "", "the body is empty; it must be a JSON object")
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return problem(http.StatusBadRequest, codeNotJSON, "", "the body ends in the middle")
	case errors.As(err, &syntax):
		return problem(http.StatusBadRequest, codeNotJSON, "", "not JSON near byte %d: %s", r.d.InputOffset(), syntax.Error())
	}
	return problem(http.StatusBadRequest, codeNotJSON, "", "the body cannot be read near byte %d", r.d.InputOffset())
}

// object reads an object; member reads the value of each of its members.
func (r *reader) object(pointer string, member func(name string) *Problem) *Problem {
	if p := r.open(pointer, '{', "an object"); p != nil {
		return p
	}
	var seen []string
	for r.d.More() {
		t, err := r.d.Token()
		if err != nil {
			return r.failed(err)
		}
		name, _ := t.(string)
		if slices.Contains(seen, name) {
			return badValue(pointer+"/"+escape(name), "the member is given twice")
		}
		if seen = append(seen, name); len(seen) > maxMembers {
			return badValue(pointer, "more than %d members", maxMembers)
		}
		if p := member(name); p != nil {
			return p
		}
	}
	return r.shut()
}

// maxMembers is how many members an object may have: none of ours has thirty.
const maxMembers = 200

// array reads an array; element reads each of its elements.
func (r *reader) array(pointer string, element func(i int) *Problem) *Problem {
	if p := r.open(pointer, '[', "an array"); p != nil {
		return p
	}
	for i := 0; r.d.More(); i++ {
		if p := element(i); p != nil {
			return p
		}
	}
	return r.shut()
}

func (r *reader) open(pointer string, want json.Delim, name string) *Problem {
	t, err := r.d.Token()
	if err != nil {
		return r.failed(err)
	}
	if got, ok := t.(json.Delim); !ok || got != want {
		return badValue(pointer, "must be %s", name)
	}
	return nil
}

// shut takes the closing bracket.
func (r *reader) shut() *Problem {
	if _, err := r.d.Token(); err != nil {
		return r.failed(err)
	}
	return nil
}

// end makes sure that nothing follows.
func (r *reader) end() *Problem {
	if _, err := r.d.Token(); errors.Is(err, io.EOF) {
		return nil
	} else if long := (*http.MaxBytesError)(nil); errors.As(err, &long) || errors.Is(err, os.ErrDeadlineExceeded) {
		return r.failed(err)
	}
	return problem(http.StatusBadRequest, codeNotJSON, "", "text follows the object near byte %d", r.d.InputOffset())
}

// skip passes over a value.
func (r *reader) skip() *Problem {
	var v json.RawMessage
	if err := r.d.Decode(&v); err != nil {
		return r.failed(err)
	}
	return nil
}

// number reads a finite number of a range.
func (r *reader) number(pointer string, least, most float64) (float64, *Problem) {
	t, err := r.d.Token()
	if err != nil {
		return 0, r.failed(err)
	}
	n, ok := t.(json.Number)
	if !ok {
		return 0, badValue(pointer, "must be a number")
	}
	return within(pointer, n, least, most)
}

func within(pointer string, n json.Number, least, most float64) (float64, *Problem) {
	x, err := strconv.ParseFloat(n.String(), 64)
	if err != nil || math.IsInf(x, 0) || math.IsNaN(x) || x < least || x > most {
		return 0, badValue(pointer, "%.40s is not from %s to %s", n, plain(least), plain(most))
	}
	return x, nil
}

func plain(x float64) string { return strconv.FormatFloat(x, 'f', -1, 64) }

// text reads a text of at most so many bytes.
func (r *reader) text(pointer string, most int) (string, *Problem) {
	t, err := r.d.Token()
	if err != nil {
		return "", r.failed(err)
	}
	s, ok := t.(string)
	switch {
	case !ok:
		return "", badValue(pointer, "must be a text")
	case len(s) > most:
		return "", badValue(pointer, "the text is longer than %d bytes", most)
	}
	return s, nil
}

// numberOrText reads either.
func (r *reader) numberOrText(pointer string) (any, *Problem) {
	t, err := r.d.Token()
	if err != nil {
		return nil, r.failed(err)
	}
	switch t.(type) {
	case json.Number, string:
		return t, nil
	}
	return nil, badValue(pointer, "must be a number or a text")
}

// escape writes a member's name as a part of a JSON pointer, not more of it than an error should repeat.
func escape(name string) string {
	if len(name) > 40 {
		name = strings.ToValidUTF8(name[:40], "") + "…"
	}
	return strings.ReplaceAll(strings.ReplaceAll(name, "~", "~0"), "/", "~1")
}

func element(pointer string, i int) string { return pointer + "/" + strconv.Itoa(i) }
