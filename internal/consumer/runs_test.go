package consumer

import (
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"milepost/internal/commit"
	"milepost/internal/partition"
)

// gathering is the tally that decides by itself, all that waits together.
type gathering struct{ tally }

func (gathering) Open(_ partition.KeyState, _ partition.Observation, more ...partition.Observation) partition.Opening {
	return partition.Opening{Local: &partition.Decision{Kind: partition.Solved}, Count: 1 + len(more)}
}

func (g gathering) Plan(k partition.KeyState, o partition.Observation, d partition.Decision) (commit.Plan, error) {
	d.Answer = []byte(o.Value.(string))
	return g.tally.Plan(k, o, d)
}

// F21, A12, F18: a key's backlog is committed many observations at a time, through the stages. One of them can never be published: the prepared
// commit of all leaves its row, the one is found, those before it are published once and in order, and it alone stops its key.
func TestOneOfManyCannotBePublished(t *testing.T) {
	bubble(t, 1, func(r *rig) {
		var commits atomic.Int64
		r.broker.Fault = func(c *commit.Commit) error {
			commits.Add(1)
			for _, o := range c.Outputs {
				if string(o.Value) == "too large" {
					return fmt.Errorf("publish: %w", commit.ErrPermanent)
				}
			}
			return nil
		}
		r.produce(0, numbered("k", 0, 20)...)
		r.produce(0, "k=too large", "other=1")
		r.produce(0, numbered("k", 20, 5)...)
		p := r.start("a", func(_ *Config, d *Deps) { d.Workload = gathering{} })
		r.eventually("all is done", func() bool { return r.frontier(0) == 27 })
		if diff := cmp.Diff(numbered("k", 0, 20), r.values("k")); diff != "" {
			t.Errorf("published of k (-want +got):\n%s", diff)
		}
		if len(r.values("other")) != 1 {
			t.Errorf("published of the other key: %q", r.values("other"))
		}
		if err := p.stop(); err != nil {
			t.Error(err)
		}
		if n := commits.Load(); n > 18 {
			t.Errorf("%d commits came to the broker: too little was committed together", n)
		}
		row := r.store.Checkpoints(groupName, part(0))["k"]
		if row.Prepared != nil || row.Checkpoint.Revision.Offset != 19 {
			t.Errorf("the row is at %s, prepared %+v", row.Checkpoint.Revision, row.Prepared)
		}
		if aside := r.store.Quarantined(r.tenure()); len(aside) != 6 || aside[0].Revision.Offset != 20 {
			t.Errorf("in quarantine: %+v", aside)
		}
	})
}
