package consumer

import (
	"fmt"
	"slices"

	"milepost/internal/partition"
	"milepost/internal/stream"
)

// State is what a partition of this process is doing.
type State int32

// The states, in the order of a tenure's life.
const (
	StateAcquiring State = iota // assigned, not acquired: tried with backoff
	StateRecovering
	StateRunning
	StateDraining
	StateStopped // assigned, ended with an error: it waits for its next try or for a person
)

// String gives the state's label.
func (s State) String() string {
	switch s {
	case StateAcquiring:
		return "acquiring"
	case StateRecovering:
		return "recovering"
	case StateRunning:
		return "running"
	case StateDraining:
		return "draining"
	case StateStopped:
		return "stopped"
	}
	return "unknown"
}

// Status is one assigned partition as it stands.
type Status struct {
	Partition stream.Partition
	State     State
	Epoch     stream.Epoch // 0: not acquired
	Saved     int64        // the frontier that Postgres has
	View      partition.View
	// End is where the partition's log ends, Stable where it ends for readers that wait for open transactions; -1: not known yet.
	End, Stable int64
	Err         error // why it is not acquired or has stopped
}

// Status gives the partitions that the group has assigned, by number.
func (c *Consumer) Status() []Status {
	c.mu.Lock()
	s := c.session
	c.mu.Unlock()
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]Status, 0, len(s.assigned))
	for _, sl := range s.assigned {
		st := Status{Partition: sl.partition, Err: sl.err, End: -1, Stable: -1}
		if sl.ends != nil {
			st.End, st.Stable = sl.ends.end, sl.ends.stable
		}
		if w := sl.worker; w != nil {
			st.State, st.Epoch, st.Saved = State(w.state.Load()), w.tenure.Epoch, w.tenure.SavedFrontier.Load()
			if v := w.view.Load(); v != nil {
				st.View = *v
			}
		} else if sl.err != nil {
			st.State = StateStopped
		}
		all = append(all, st)
	}
	slices.SortFunc(all, func(a, b Status) int { return int(a.Partition.Number) - int(b.Partition.Number) })
	return all
}

// Ready is nil when this process is a member of the group and every partition that it was assigned is recovered;
// else it says why not.
func (c *Consumer) Ready() error {
	if member, generation := c.deps.Membership.Generation(); member == "" || generation <= 0 {
		return fmt.Errorf("not a member of group %s yet", c.cfg.Group)
	}
	for _, st := range c.Status() {
		if st.State != StateRunning && st.State != StateDraining {
			return fmt.Errorf("partition %d is %s", st.Partition.Number, st.State)
		}
	}
	return nil
}
