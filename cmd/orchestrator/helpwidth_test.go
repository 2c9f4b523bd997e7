package main

import (
	"strings"
	"testing"
)

// V3: help fits into 100 columns, but for examples, which are to be copied; items keep lines of their own and no word is lost.
func TestHelpWidth(t *testing.T) {
	const text = `One two three
four five.

json: one event
that goes on
csv: two
  indented as it is

Last.`
	const want = `One two
three four
five.

json: one
  event
  that
  goes on
csv: two
  indented
    as it
    is

Last.`
	if got := reflow(text, 10); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	for _, verb := range []string{"", "run", "match", "matcher", "partition reset", "quarantine release"} {
		got := orchestrator(t, "", append(strings.Fields(verb), "--help")...)
		before, after, _ := strings.Cut(got.out, "Examples:")
		_, after, _ = strings.Cut(after, "\n\n")
		after, _, _ = strings.Cut(after, "Available Commands:") // a line a verb
		for line := range strings.Lines(before + after) {
			if n := len([]rune(strings.TrimRight(line, "\n"))); n > helpWidth {
				t.Errorf("help of %q has a line of %d columns: %s", verb, n, line)
			}
		}
	}
}
