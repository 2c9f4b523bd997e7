package tracefile

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
)

// errRowTooLong says that a line or element was skipped unread.
var errRowTooLong = errors.New("longer than the bound")

// lines gives a file's lines, bounded: of a line that is too long the rest is read and dropped.
type lines struct {
	r   *bufio.Reader
	max int
	buf []byte
	n   int // the current line, from 1
}

// next gives the next line without its end; valid until the next call. io.EOF: there is none. errRowTooLong: it was dropped.
func (l *lines) next() ([]byte, error) {
	l.buf = l.buf[:0]
	l.n++
	long := false
	for {
		part, err := l.r.ReadSlice('\n')
		if long = long || len(l.buf)+len(part) > l.max; !long {
			l.buf = append(l.buf, part...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case errors.Is(err, io.EOF):
			if len(l.buf) == 0 && !long {
				return nil, io.EOF
			}
		case err != nil:
			return nil, err
		}
		if long {
			return nil, errRowTooLong
		}
		line := bytes.TrimSuffix(l.buf, []byte{'\n'})
		return bytes.TrimSuffix(line, []byte{'\r'}), nil
	}
}

func tooLong(limit int) string {
	return fmt.Sprintf("longer than %d bytes: skipped", limit)
}

// dropBOM drops the byte order mark that begins many files written on Windows.
func dropBOM(r *bufio.Reader) {
	if head, _ := r.Peek(3); bytes.Equal(head, []byte{0xEF, 0xBB, 0xBF}) {
		_, _ = r.Discard(3) // just peeked
	}
}
