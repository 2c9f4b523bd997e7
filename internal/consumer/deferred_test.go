package consumer

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// A13, H6, H9: in mode deferred what was published and not persisted is decided again after a takeover and never published
// again; a clean stop persists it all, and the other mode goes on from there, also from a crash.
func TestDeferredTakeover(t *testing.T) {
	onProtocols(t, 1, func(r *rig) {
		t := r.t
		lazy := func(c *Config, _ *Deps) {
			c.Partition.Deferred, c.Partition.PersistAfter, c.Partition.PersistCommits = true, time.Hour, 1000
		}
		state := func() string { return string(r.store.Checkpoints(groupName, part(0))["a"].Checkpoint.State) }
		produced := 0
		produce := func(n int) {
			t.Helper()
			r.produce(0, numbered("a", produced, n)...)
			produced += n
			r.eventually("outputs", func() bool { return len(r.values("a")) >= produced })
			r.exact("a", produced)
		}

		p := r.start("one", lazy)
		produce(20)
		if got := r.frontier(0); got != 0 || state() != "" {
			t.Errorf("frontier = %d, row = %q: want nothing durable yet", got, state())
		}
		r.steal(0)
		produce(10)
		if err := p.stop(); err != nil {
			t.Fatal(err)
		}
		if got, want := state(), words(produced); got != want || r.frontier(0) != int64(produced) {
			t.Errorf("after a clean stop: frontier %d, row %q, want %d, %q", r.frontier(0), got, produced, want)
		}

		zombie := r.start("two", lazy)
		produce(5)
		zombie.away.set(true)
		p = r.start("three") // in mode prepared
		produce(5)
		if err := p.stop(); err != nil {
			t.Fatal(err)
		}
		if got, want := state(), words(produced); got != want {
			t.Errorf("after the change of mode: row %q, want %q", got, want)
		}
		if !p.log.has("rebuild=5") {
			t.Error("the change of mode rebuilt nothing")
		}
		if err := zombie.stop(); err != nil && !strings.Contains(err.Error(), "ownership lost") {
			t.Error(err)
		}
	})
}

// words is the state that tally has after the first n records of a key.
func words(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "%d ", i)
	}
	return b.String()
}
