package consumer

import (
	"log/slog"
	"time"

	"milepost/internal/partition"
)

// turnSample is how many turns of the loop one is timed of; every tick is.
const turnSample = 32

// Turns lists the kinds of turns that a worker's loop takes, by what it was given.
func Turns() []string {
	return []string{
		"arrived", "restored", "result", "committed", "promoted", "finished", "frontier_saved", "quarantine_saved",
		"operate", "admitted", "replaced", "tick", "drain", "lost", "other",
	}
}

func turnOf(in partition.Input) string {
	//nolint:gochecksumtype // a label: what has no name of its own is other
	switch in.(type) {
	case partition.Arrived:
		return "arrived"
	case partition.Restored:
		return "restored"
	case partition.Result:
		return "result"
	case partition.Committed:
		return "committed"
	case partition.Promoted:
		return "promoted"
	case partition.Finished:
		return "finished"
	case partition.FrontierSaved:
		return "frontier_saved"
	case partition.QuarantineSaved:
		return "quarantine_saved"
	case partition.Operate:
		return "operate"
	case partition.Admitted:
		return "admitted"
	case partition.Replaced:
		return "replaced"
	case partition.Tick:
		return "tick"
	case partition.Drain:
		return "drain"
	case partition.Lost:
		return "lost"
	}
	return "other"
}

// timed tells the observer of a turn, one of many.
func (d *driver) timed(in partition.Input, began time.Time) {
	tell := d.s.c.deps.Observer.Turned
	if tell == nil {
		return
	}
	d.turns++
	if _, tick := in.(partition.Tick); tick || d.turns%turnSample == 0 {
		tell(turnOf(in), time.Since(began))
	}
}

// solved tells the observer of a job's answer.
func (o *Observer) solved(began time.Time, err error) {
	if o.Solved != nil {
		o.Solved(time.Since(began), err)
	}
}

// expired tells the observer of states that were let go of.
func (o *Observer) expired(n int) {
	if o.Expired != nil {
		o.Expired(n)
	}
}

// committed tells the observer of a durable commit. Clocks that differ can make a latency negative: then there is none to tell.
func (o *Observer) committed(recorded time.Time) {
	if o.Committed == nil || recorded.IsZero() {
		return
	}
	if latency := time.Since(recorded); latency >= 0 {
		o.Committed(latency)
	}
}

// statistics gives the counters that moved, for the log line of a tenure's end (A17).
func statistics(s partition.Stats) slog.Attr {
	var attrs []any
	for name, n := range s.All() {
		if n != 0 {
			attrs = append(attrs, slog.Int64(name, n))
		}
	}
	return slog.Group("statistics", attrs...)
}
