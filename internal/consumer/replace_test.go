package consumer

import (
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"milepost/internal/partition"
)

// regional is tally with a region, a budget, and a word of its catalog in each output.
type regional struct {
	tally
	catalog string
}

func (w regional) Open(_ partition.KeyState, o partition.Observation, _ ...partition.Observation) partition.Opening {
	return partition.Opening{Request: []byte(o.Value.(string) + w.catalog), Region: "north", Budget: time.Nanosecond}
}

// A8, A16: partitions of a process share one admission: with room for a single job all is done nevertheless, what is late is told, and
// nothing is held when the process has drained, been fenced, and drained again.
func TestSharedAdmission(t *testing.T) {
	bubble(t, 3, func(r *rig) {
		t := r.t
		credits := partition.NewCredits(partition.CreditsConfig{
			Global: partition.Bound{Jobs: 1, Bytes: 1 << 20}, Region: partition.Bound{Jobs: 1, Bytes: 1 << 20},
		})
		var late atomic.Int64
		for n, names := range [][2]string{{"a0", "b0"}, {"a1", "b1"}, {"a2", "b2"}} {
			r.produce(int32(n), numbered(names[0], 0, 20)...)
			r.produce(int32(n), numbered(names[1], 0, 20)...)
		}
		p := r.start("one", func(_ *Config, d *Deps) {
			d.Workload, d.Admission = regional{}, credits
			d.Observer.Late = func(region string, by time.Duration) {
				if region != "north" || by <= 0 {
					t.Errorf("late in region %s by %s", region, by)
				}
				late.Add(1)
			}
		})
		r.eventually("outputs", func() bool {
			if u := credits.Usage()[0]; u.Jobs > 1 {
				t.Fatalf("%d jobs at once, one is admitted", u.Jobs)
			}
			return len(r.broker.Values()) == 120
		})
		r.steal(0)
		r.produce(0, numbered("c", 0, 5)...)
		r.eventually("outputs after the steal", func() bool { return len(r.broker.Values()) == 125 })
		if err := p.stop(); err != nil {
			t.Fatal(err)
		}
		if late.Load() == 0 {
			t.Error("nothing was told to be late")
		}
		for _, u := range credits.Usage() {
			if u.Jobs != 0 || u.Bytes != 0 || u.Waiting != 0 {
				t.Errorf("left behind: %+v", u)
			}
		}
		if u := credits.Usage()[0]; u.Held == 0 {
			t.Error("no job ever had to wait")
		}
	})
}

// A7: another catalog is in force for the workers that run, and for those that come later.
func TestReplace(t *testing.T) {
	bubble(t, 2, func(r *rig) {
		t := r.t
		r.produce(0, "a=1")
		p := r.start("one", func(_ *Config, d *Deps) { d.Workload = regional{catalog: " old"} })
		r.eventually("an output", func() bool { return len(r.broker.Values()) == 1 })
		p.Replace(regional{catalog: " new"})
		r.produce(0, "a=2")
		r.produce(1, "b=1")
		r.eventually("outputs", func() bool { return len(r.broker.Values()) == 3 })
		r.steal(0) // what comes then is a new tenure with a machine of its own
		r.produce(0, "a=3")
		r.eventually("outputs", func() bool { return len(r.broker.Values()) == 4 })
		if err := p.stop(); err != nil {
			t.Fatal(err)
		}
		for i, v := range r.broker.Values() {
			if want := " new"; strings.HasSuffix(v, want) != (i > 0) {
				t.Errorf("output %d is %q", i, v)
			}
		}
	})
}
