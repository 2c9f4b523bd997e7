package main

import (
	"io"
	"os"
	"regexp"
	"strings"
	"testing"
)

// The runbook has a section for every alert, and every command in it is one that this program has, with those flags.
func TestRunbook(t *testing.T) {
	text, err := os.ReadFile("../../docs/runbook.md")
	if err != nil {
		t.Fatal(err)
	}
	alerts, err := os.ReadFile("../../deploy/prometheus/alerts.yml")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`(?m)^\s*- alert: (\w+)`).FindAllStringSubmatch(string(alerts), -1) {
		if !strings.Contains(string(text), "\n### "+m[1]+"\n") {
			t.Errorf("no section for alert %s", m[1])
		}
	}
	commands := regexp.MustCompile("(?:`|\n)orchestrator ([^`#\n]+(?:\n[^`#\n]+)?)").FindAllStringSubmatch(string(text), -1)
	if len(commands) < 15 {
		t.Fatalf("%d commands found", len(commands))
	}
	for _, m := range commands {
		words := strings.Fields(m[1])
		if i := strings.Index(m[1], "\norchestrator"); i >= 0 {
			words = strings.Fields(m[1][:i])
		}
		cmd, rest, err := newRoot(streams{out: io.Discard, err: io.Discard}).Find(words)
		if err != nil || !cmd.HasParent() || cmd.HasSubCommands() && len(rest) > 0 {
			t.Errorf("orchestrator %s: no such command: %v", m[1], err)
			continue
		}
		for _, w := range rest {
			if name, ok := strings.CutPrefix(w, "--"); ok && cmd.Flags().Lookup(name) == nil {
				t.Errorf("orchestrator %s: no flag --%s", m[1], name)
			}
		}
	}
}
