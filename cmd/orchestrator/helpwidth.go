package main

import (
	"regexp"
	"strings"

	"github.com/spf13/cobra"
)

// helpWidth is how wide help is: it fits beside something else on a screen.
const helpWidth = 100

// narrowHelp has every verb's help keep to the width, but for its examples, which are to be copied.
func narrowHelp(root *cobra.Command) {
	root.SetUsageTemplate(strings.ReplaceAll(root.UsageTemplate(), "Flags.FlagUsages ", "Flags.FlagUsagesWrapped 100 "))
	help := root.HelpFunc()
	root.SetHelpFunc(func(cmd *cobra.Command, a []string) {
		cmd.Long = reflow(cmd.Long, helpWidth)
		help(cmd, a)
	})
}

// reflow breaks a text's paragraphs anew. Items, which begin with a word and a colon or with a space, keep lines of their own; what is too
// long of one goes on indented.
func reflow(text string, width int) string {
	item := regexp.MustCompile(`^([a-z-]+: | )`)
	paragraphs := strings.Split(text, "\n\n")
	for i, p := range paragraphs {
		var parts, lines []string
		items := false
		for line := range strings.SplitSeq(p, "\n") {
			if starts := item.MatchString(line); starts || len(parts) == 0 {
				parts, items = append(parts, line), items || starts
				continue
			}
			parts[len(parts)-1] += " " + line
		}
		for _, part := range parts {
			indent := part[:len(part)-len(strings.TrimLeft(part, " "))]
			rest := indent
			if items {
				rest += "  "
			}
			if len(part) > width {
				part = broken(strings.Fields(part), width, indent, rest)
			}
			lines = append(lines, part)
		}
		paragraphs[i] = strings.Join(lines, "\n")
	}
	return strings.Join(paragraphs, "\n\n")
}

// broken puts words into lines: the first begins with one indent, the others with another.
func broken(words []string, width int, first, rest string) string {
	var b strings.Builder
	b.WriteString(first)
	at := len(first)
	for i, w := range words {
		switch {
		case i == 0:
		case at+1+len(w) > width:
			b.WriteString("\n" + rest)
			at = len(rest)
		default:
			b.WriteByte(' ')
			at++
		}
		b.WriteString(w)
		at += len(w)
	}
	return b.String()
}
