package main

import (
	"strings"
	"testing"
)

// H13, H9: flags that contradict each other, and values that do not exist, are refused before anything is dialled, with what is allowed.
func TestPublishAndProtocolFlags(t *testing.T) {
	for _, c := range []struct {
		flags []string
		want  string
	}{
		{[]string{"--mode", "deferred", "--publish", "idempotent"}, "--publish idempotent needs --mode prepared"},
		{[]string{"--publish", "twice"}, `--publish is "twice", must be transactional or idempotent`},
		{[]string{"--protocol", "next"}, `--protocol is "next", must be classic or consumer`},
		{[]string{"--max-record-bytes", "-1"}, "--max-record-bytes is -1"},
	} {
		got := orchestrator(t, "", append([]string{"run", "--dsn", "postgres://nobody", "--map", "none.osm.pbf"}, c.flags...)...)
		if got.code != exitUsage || !strings.Contains(got.err, c.want) {
			t.Errorf("%v: exit code %d, %q, want %d and %q", c.flags, got.code, got.err, exitUsage, c.want)
		}
	}
}
