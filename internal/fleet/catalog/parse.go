package catalog

import (
	"cmp"
	"errors"
	"fmt"
	"path"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"

	"milepost/internal/roadnet"
)

// maxBytes bounds a catalog's file: every cell of the earth, named, is a tenth of it.
const maxBytes = 64 << 20

// Parse reads a catalog. An error is an *Error with every problem, by line; where the file is not TOML at all, with the first.
func Parse(name string, text []byte) (*Catalog, error) {
	p := &reader{name: path.Base(name), text: text}
	if len(text) > maxBytes {
		p.problem(0, "the file has %d bytes, %d are allowed", len(text), maxBytes)
		return nil, p.failure()
	}
	if err := roadnet.CheckNesting(text); err != nil {
		p.problem(0, "not a catalog: %v", err)
		return nil, p.failure()
	}
	malformed := p.malformed()
	if len(p.problems) > 0 {
		return nil, p.failure()
	}
	p.read()
	c := p.check()
	if malformed != nil && len(p.problems) == 0 {
		p.problem(0, "not TOML: %v", malformed)
	}
	if len(p.problems) > 0 {
		return nil, p.failure()
	}
	return c, nil
}

// reader collects what a file says, each thing with its line, and what is wrong with it.
type reader struct {
	name     string
	text     []byte
	breaks   []int // offsets of line breaks
	toml     unstable.Parser
	problems []Problem

	version setting
	regions []*section
}

// section is one [[region]] as it was found.
type section struct {
	line     int
	settings map[string]setting
}

// setting is a value with its line; without a value it was not given.
type setting struct {
	line  int
	value any // string, int64, float64, bool or []setting; nil: not given, or of a kind that no setting has
	given bool
}

func (p *reader) problem(line int, format string, args ...any) {
	p.problems = append(p.problems, Problem{Line: line, Text: fmt.Sprintf(format, args...)})
}

func (p *reader) failure() error {
	slices.SortStableFunc(p.problems, func(a, b Problem) int { return cmp.Compare(a.Line, b.Line) })
	return &Error{Name: p.name, Problems: p.problems}
}

// malformed leaves syntax to the library's own decoder. Of names that are given twice it does not know the line: that error is returned,
// for the case that read finds no fault.
func (p *reader) malformed() error {
	var whole map[string]any
	err := toml.Unmarshal(p.text, &whole)
	if broken, ok := errors.AsType[*toml.DecodeError](err); ok {
		line, _ := broken.Position()
		p.problem(line, "not TOML: %s", strings.TrimPrefix(err.Error(), "toml: "))
	}
	return err
}

// read takes the file apart. Where a table's name is not ours its settings are passed over: the name is the problem.
func (p *reader) read() {
	for i, b := range p.text {
		if b == '\n' {
			p.breaks = append(p.breaks, i)
		}
	}
	p.toml.Reset(p.text)
	into := p.top
	for p.toml.NextExpression() {
		e := p.toml.Expression() // a setting or a table's head: comments are not kept
		name, line := p.key(e)
		switch {
		case e.Kind == unstable.KeyValue:
			into(name, p.setting(e.Value(), line))
		case e.Kind == unstable.ArrayTable && name == "region":
			s := &section{line: line, settings: map[string]setting{}}
			p.regions = append(p.regions, s)
			into = func(name string, v setting) {
				if first := s.settings[name]; first.given {
					p.problem(v.line, "%s is given twice, first in line %d", name, first.line)
					return
				}
				s.settings[name] = v
			}
		default:
			p.problem(line, "unknown table %s: regions are [[region]] tables", name)
			into = func(string, setting) {}
		}
	}
}

func (p *reader) top(name string, v setting) {
	if name != "version" {
		p.problem(v.line, "unknown setting %s outside the regions: only version stands there", name)
		return
	}
	if p.version.given {
		p.problem(v.line, "version is given twice, first in line %d", p.version.line)
		return
	}
	p.version = v
}

// key gives an expression's dotted name and its line.
func (p *reader) key(e *unstable.Node) (name string, line int) {
	it := e.Key()
	for it.Next() {
		n := it.Node()
		if line == 0 {
			line = p.line(n)
			name = string(n.Data)
			continue
		}
		name += "." + string(n.Data)
	}
	return name, line
}

func (p *reader) line(n *unstable.Node) int { return sort.SearchInts(p.breaks, int(n.Raw.Offset)) + 1 }

func (p *reader) setting(n *unstable.Node, line int) setting {
	s := setting{line: line, given: true}
	if n.Raw.Length > 0 {
		s.line = p.line(n)
	}
	switch n.Kind { //nolint:exhaustive // of the library's kinds these are the ones that a setting may have
	case unstable.String:
		s.value = string(n.Data)
	case unstable.Integer:
		if v, err := strconv.ParseInt(string(n.Data), 0, 64); err == nil { // underscores too
			s.value = v
		}
	case unstable.Float:
		if v, err := strconv.ParseFloat(strings.ReplaceAll(string(n.Data), "_", ""), 64); err == nil {
			s.value = v
		}
	case unstable.Bool:
		s.value = n.Data[0] == 't'
	case unstable.Array:
		list := []setting{}
		for it := n.Children(); it.Next(); {
			if it.Node().Kind != unstable.Comment {
				list = append(list, p.setting(it.Node(), line))
			}
		}
		s.line, s.value = line, list
	default:
	}
	return s
}
