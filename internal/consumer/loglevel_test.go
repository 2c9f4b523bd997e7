package consumer

import (
	"fmt"
	"strings"
	"testing"
)

// above counts the lines above debug so far.
func (b *logBook) above() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := 0
	for _, l := range b.lines {
		if !strings.HasPrefix(l, "DEBUG") {
			n++
		}
	}
	return n
}

// A17: no line above debug for a single record, whatever becomes of it: what is done, what comes twice, and what is poison.
func TestLogIsQuietOfRecords(t *testing.T) {
	bubble(t, 1, func(r *rig) {
		t := r.t
		p := r.start("one")
		r.produce(0, "first=1")
		r.eventually("an output", func() bool { return len(r.broker.Values()) == 1 })
		r.eventually("the start to be over", p.running(1))
		before := p.log.above()
		for i := range 200 {
			r.produce(0, fmt.Sprintf("k%d=1", i%20), "=poison")
		}
		r.eventually("outputs and dead letters", func() bool { return len(r.broker.Values()) == 401 })
		r.eventually("the frontier", func() bool { return r.frontier(0) == 401 })
		if after := p.log.above(); after != before {
			t.Errorf("400 records made %d lines above debug: %q", after-before, p.log.lines[len(p.log.lines)-1])
		}
		if err := p.stop(); err != nil {
			t.Fatal(err)
		}
	})
}

// A12: a partition that is fenced is told as an error, with partition, epochs and cause; a clean drain is no such thing.
func TestFenceIsAnError(t *testing.T) {
	bubble(t, 1, func(r *rig) {
		t := r.t
		p := r.start("one")
		r.produce(0, "a=1")
		r.eventually("an output", func() bool { return len(r.broker.Values()) == 1 })
		r.steal(0)
		r.produce(0, "a=2")
		r.eventually("the fence to be told", func() bool { return p.log.has("ERROR the tenure ended") })
		for _, part := range []string{"partition=0", "epoch=", "err="} {
			if !p.log.has(part) {
				t.Errorf("the log does not say %s", part)
			}
		}
		r.eventually("the second output, by the next tenure", func() bool { return len(r.broker.Values()) == 2 })
		if err := p.stop(); err != nil {
			t.Fatal(err)
		}
		if p.log.has("ERROR drained") || !p.log.has("INFO drained") {
			t.Error("a clean drain is told as something else")
		}
	})
}
