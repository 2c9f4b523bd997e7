package tracefile

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// csv reads a table with a header. A row is a line: a quoted field cannot hold a line's end, so that a quote that is never closed
// costs one row and not the rest of the file.
func (s *source) csv(r *bufio.Reader) {
	dropBOM(r)
	l := &lines{r: r, max: s.opts.MaxRow}
	table, ok := s.header(l)
	if !ok {
		return
	}
	if table.lines {
		l.max = s.maxTrajectory
	}
	for {
		line, err := l.next()
		switch {
		case errors.Is(err, io.EOF):
			return
		case errors.Is(err, errRowTooLong):
			if !s.row(Fix{}, &RowError{Line: l.n, Reason: "the line is " + tooLong(l.max)}) {
				return
			}
			continue
		case err != nil:
			s.fatal(l.n, "", reasonOf(err))
			return
		}
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		f, bad := s.tableRow(l.n, table, line)
		switch {
		case bad != nil:
			if !s.row(Fix{}, bad) {
				return
			}
		case table.lines:
			if !s.trajectory(l.n, f) {
				return
			}
		case !s.row(s.fix(l.n, f)):
			return
		}
	}
}

func (s *source) tableRow(n int, t *table, line []byte) (*fields, *RowError) {
	cells, reason := split(string(line), t.comma)
	if reason != "" {
		return nil, &RowError{Line: n, Reason: reason}
	}
	f := &fields{}
	for _, b := range t.bound {
		if slices.Max(b.at) >= len(cells) {
			if b.needed {
				return nil, &RowError{Line: n, Column: s.opts.Columns.theirs(b.ours), Reason: fmt.Sprintf("the row has %d fields only", len(cells))}
			}
			continue
		}
		v := strings.TrimSpace(cells[b.at[0]])
		if len(b.at) == 2 {
			v += " " + strings.TrimSpace(cells[b.at[1]])
		}
		f.set(b.ours, v)
	}
	return f, nil
}

// table is what a header says.
type table struct {
	comma rune
	bound []binding
	lines bool // a row is a trajectory
}

// binding says where one of our columns stands; two places are joined with a space.
type binding struct {
	ours   string
	at     []int
	needed bool
}

// header reads the first line that is not blank; false: the file cannot be read.
func (s *source) header(l *lines) (*table, bool) {
	for {
		line, err := l.next()
		switch {
		case errors.Is(err, io.EOF):
			s.fatal(0, "", "the file is empty: a CSV file begins with a header")
			return nil, false
		case errors.Is(err, errRowTooLong):
			s.fatal(l.n, "", "the header is "+tooLong(l.max))
			return nil, false
		case err != nil:
			s.fatal(l.n, "", reasonOf(err))
			return nil, false
		}
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		t := &table{comma: delimiter(line)}
		names, reason := split(string(line), t.comma)
		if reason != "" {
			s.fatal(l.n, "", reason)
			return nil, false
		}
		for i := range names {
			names[i] = strings.TrimSpace(names[i])
		}
		s.opts.Columns = s.opts.Columns.forFMM(names)
		if column, reason := t.bind(names, s.opts.Columns); reason != "" {
			s.fatal(l.n, column, reason)
			return nil, false
		}
		return t, true
	}
}

// bind finds our columns among the file's; the reason names what is missing.
func (t *table) bind(names []string, c Columns) (column, reason string) {
	has := map[string]bool{}
	for _, ours := range ColumnNames() {
		theirs := c.theirs(ours)
		at, found := place(names, theirs, ours == ColTime)
		if !found {
			if _, asked := c[ours]; asked {
				return theirs, "there is no such column; the file has " + list(names)
			}
			continue
		}
		for _, i := range at {
			if i < 0 {
				return theirs, "the column is there twice"
			}
		}
		has[ours] = true
		t.bound = append(t.bound, binding{ours, at, ours == ColLon || ours == ColLat || ours == ColPoint || ours == ColLine})
	}
	if t.lines = has[ColLine] && !has[ColPoint] && (!has[ColLon] || !has[ColLat]); t.lines {
		return "", ""
	}
	t.bound = slices.DeleteFunc(t.bound, func(b binding) bool { return b.ours == ColLine })
	for _, ours := range []string{ColLon, ColLat} {
		if !has[ours] && !has[ColPoint] {
			return ours, fmt.Sprintf("the column is missing; the file has %s; map another name with %s=NAME", list(names), ours)
		}
	}
	return "", ""
}

// place finds the positions of a name, or of two that a plus joins; -1 for a name that is there twice.
func place(names []string, theirs string, joined bool) ([]int, bool) {
	if i, ok := find(names, theirs); ok {
		return []int{i}, true
	}
	first, second, ok := strings.Cut(theirs, "+")
	if !joined || !ok {
		return nil, false
	}
	i, ok1 := find(names, strings.TrimSpace(first))
	j, ok2 := find(names, strings.TrimSpace(second))
	return []int{i, j}, ok1 && ok2
}

func find(names []string, name string) (int, bool) {
	at, found := 0, false
	for i, n := range names {
		if n == name {
			if found {
				return -1, true
			}
			at, found = i, true
		}
	}
	return at, found
}

// list names columns for an error, not more than a line holds.
func list(names []string) string {
	s := strings.Join(names, ", ")
	if len(s) > 200 {
		s = strings.ToValidUTF8(s[:200], "") + " …"
	}
	return s
}

// delimiter is the one that the header uses most: comma, semicolon or tab.
func delimiter(header []byte) rune {
	best, most := ',', bytes.Count(header, []byte{','})
	for _, c := range [...]byte{';', '\t'} {
		if n := bytes.Count(header, []byte{c}); n > most {
			best, most = rune(c), n
		}
	}
	return best
}

// split splits a line into fields; a field may be quoted, with "" for a quote within.
func split(line string, comma rune) (cells []string, reason string) {
	for {
		trimmed := strings.TrimLeft(line, " ")
		if !strings.HasPrefix(trimmed, `"`) {
			i := strings.IndexRune(line, comma)
			if i < 0 {
				return append(cells, line), ""
			}
			cells, line = append(cells, line[:i]), line[i+1:]
			continue
		}
		cell, rest, ok := unquote(trimmed[1:])
		if !ok {
			return nil, "a quote is not closed on its line"
		}
		cells = append(cells, cell)
		rest = strings.TrimLeft(rest, " ")
		if rest == "" {
			return cells, ""
		}
		if !strings.HasPrefix(rest, string(comma)) {
			return nil, "text stands between a closing quote and the next field"
		}
		line = rest[1:]
	}
}

func unquote(s string) (cell, rest string, ok bool) {
	var b strings.Builder
	for {
		i := strings.IndexByte(s, '"')
		if i < 0 {
			return "", "", false
		}
		b.WriteString(s[:i])
		s = s[i+1:]
		if !strings.HasPrefix(s, `"`) {
			return b.String(), s, true
		}
		b.WriteByte('"')
		s = s[1:]
	}
}
