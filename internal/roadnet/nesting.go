package roadnet

import (
	"bytes"
	"fmt"
)

// maxNesting is how deep the arrays, tables and dotted keys of a TOML text may nest: profiles and catalogs need three.
const maxNesting = 64

// CheckNesting refuses a TOML text that nests deeper than anybody needs. It comes before the parser, which takes stack
// for each level: a file of some megabytes of opening brackets would end the process, and no caller could prevent it.
func CheckNesting(text []byte) error {
	open, dots := 0, 0
	for i := 0; i < len(text); i++ {
		switch c := text[i]; c {
		case '#':
			i += lineEnd(text[i:])
			dots = 0
		case '"', '\'':
			i += quoted(text[i:]) - 1
		case '[', '{':
			open, dots = open+1, 0
		case ']', '}':
			open, dots = open-1, 0
		case '=', ',', '\n':
			dots = 0
		case '.':
			dots++
		}
		if open > maxNesting || dots > maxNesting {
			return fmt.Errorf("line %d nests deeper than %d levels", 1+bytes.Count(text[:min(i, len(text))], []byte{'\n'}), maxNesting)
		}
	}
	return nil
}

// lineEnd is how many bytes are before the end of the line.
func lineEnd(text []byte) int {
	if n := bytes.IndexByte(text, '\n'); n >= 0 {
		return n
	}
	return len(text)
}

// quoted is the length of the string that the text begins with, quotes included. One that has no end goes to that of its line, or of
// the text where it may span lines: the parser refuses either.
func quoted(text []byte) int {
	quote := text[0]
	long := len(text) >= 3 && text[1] == quote && text[2] == quote
	i := 1
	if long {
		i = 3
	}
	for ; i < len(text); i++ {
		switch {
		case text[i] == '\\' && quote == '"':
			i++
		case text[i] == '\n' && !long:
			return i
		case text[i] != quote:
		case !long:
			return i + 1
		case len(text)-i >= 3 && text[i+1] == quote && text[i+2] == quote:
			i += 3
			for more := 0; more < 2 && i < len(text) && text[i] == quote; more++ {
				i++ // up to two quotes may stand before the closing three
			}
			return i
		}
	}
	return len(text)
}
