package main

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// pageHead is what docs/config.md says before its tables.
const pageHead = `# Settings

Generated from the program's own flags: ` + "`make generate`" + `. A test compares.

A setting's value comes from its default, then a TOML file (` + "`--config`" + `), then
the environment, then the flag; the last one counts. In the file a setting is
named as its flag, in the environment ` + "`MILEPOST_`" + ` and the flag's name in capitals:

` + "```toml" + `
group = "fleet"
brokers = ["kafka-1:9092", "kafka-2:9092"]
session-timeout = "10s"
` + "```" + `

` + "`orchestrator config`" + ` prints what came out and from where; secrets are printed as
` + "`***`" + `. An unknown setting in the file is an error, a wrong value is named by its
place. The other verbs' own flags follow below; what they share with run is as
there. Shell completion: ` + "`source <(orchestrator completion bash)`" + ` (or zsh, fish,
powershell).
`

// flagCells are a flag's name, kind of value, default and meaning.
func flagCells(f *pflag.Flag) (name, kind, value, meaning string) {
	kind, meaning = pflag.UnquoteUsage(f)
	value = f.DefValue
	switch f.Value.Type() {
	case "bool":
		kind, value = "yes or no", ""
	case "stringSlice":
		value = strings.Trim(value, "[]")
	}
	if value != "" {
		value = "`" + value + "`"
	}
	return "`--" + f.Name + "`", kind, value, strings.ReplaceAll(meaning, "|", "or")
}

// configPage renders the settings of run, and of every other verb those that run does not have.
func configPage() string {
	root := newRoot(streams{})
	var b strings.Builder
	b.WriteString(pageHead)
	of := map[string]*cobra.Command{}
	var verbs []*cobra.Command
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		of[c.CommandPath()] = c
		if c.Runnable() && c != root {
			verbs = append(verbs, c)
		}
		for _, sub := range c.Commands() {
			walk(sub)
		}
	}
	walk(root)
	run := of["orchestrator run"]
	section := func(c *cobra.Command, skip func(*pflag.Flag) bool) {
		head := "| flag | value | default | meaning |\n| --- | --- | --- | --- |\n"
		if c == run {
			head = "| flag | value | environment | default | meaning |\n| --- | --- | --- | --- | --- |\n"
		}
		var rows []string
		c.Flags().VisitAll(func(f *pflag.Flag) {
			if f.Name != "help" && !f.Hidden && !skip(f) {
				name, kind, value, meaning := flagCells(f)
				if c == run {
					kind += " | `" + envName(f.Name) + "`"
				}
				rows = append(rows, fmt.Sprintf("| %s | %s | %s | %s |\n", name, kind, value, meaning))
			}
		})
		if len(rows) == 0 {
			return
		}
		fmt.Fprintf(&b, "\n## %s\n\n%s.\n\n%s%s", strings.TrimPrefix(c.CommandPath(), "orchestrator "), c.Short, head, strings.Join(rows, ""))
	}
	section(run, func(*pflag.Flag) bool { return false })
	for _, c := range verbs {
		if c == run {
			continue
		}
		section(c, func(f *pflag.Flag) bool {
			same := run.Flags().Lookup(f.Name)
			return same != nil && same.Usage == f.Usage && same.DefValue == f.DefValue
		})
	}
	return b.String()
}

// V1: docs/config.md is what the flags say.
func TestConfigPage(t *testing.T) {
	golden(t, filepath.Join("..", "..", "..", "docs", "config.md"), configPage())
}
