package fleet

import (
	"time"

	"milepost/internal/mapmatch"
	"milepost/internal/partition"
	"milepost/internal/roadnet"
)

// Next is a further observation of a job's run: it goes plainly on from the one before.
type Next struct {
	Offset      int64
	Observation mapmatch.Observation
}

// plainly gives those of the observations behind a solved one that go on from it without anything that only its answer could tell, or that
// the workload decides itself: later, in the same region, no gap and no jump. What the matcher makes of them is its own: its breaks
// are in its answers.
func (w *Workload) plainly(region int, fix Fix, more []partition.Observation) []Next {
	var run []Next
	for _, o := range more {
		next, ok := o.Value.(Fix)
		if !ok {
			break
		}
		j := w.judgeOver(judgement{state: w.after(region, fix)}, next)
		if j.terminal != "" || j.reset != "" || j.region != region {
			break
		}
		run, fix = append(run, Next{Offset: o.Identity.Revision.Offset, Observation: next.Observation}), next
	}
	return run
}

// after is what Plan leaves of a solved observation in the state, as far as the next one is judged by it: encoded and decoded again.
func (w *Workload) after(region int, fix Fix) *vehicleState {
	at := time.UnixMicro(fix.Time.UnixMicro()).UTC()
	return &vehicleState{
		lastEvent: at, served: at, pin: w.atlas.pinTo(region), matcher: []byte{},
		servedAt: roadnet.Point{Lon: float64(e7(fix.Point.Lon)) / 1e7, Lat: float64(e7(fix.Point.Lat)) / 1e7},
	}
}

// alike counts the observations behind one with a terminal that have the same.
func (w *Workload) alike(k partition.KeyState, o partition.Observation, d partition.Decision, more []partition.Observation) int {
	for n, next := range more {
		_, checkpoint, err := w.Apply(k, o, d)
		fix, ok := next.Value.(Fix)
		if err != nil || !ok {
			return n
		}
		k, o = partition.KeyState{Checkpoint: checkpoint, Epoch: k.Epoch}, next
		if w.judge(k, fix).terminal != d.Reason {
			return n
		}
	}
	return len(more)
}
