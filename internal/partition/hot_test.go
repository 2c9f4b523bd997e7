package partition

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"milepost/internal/commit"
)

// A3, A4, F30: a vehicle that sends 50,000 records in a burst delays no other vehicle of its partition: its queue spills and takes its turns
// like any other. The figures are of virtual time: a fetch of at most 2,000 records every 5 ms, a solve of 1 ms an observation, a commit of 10 ms.
func TestHotKeyDelaysNoOther(t *testing.T) {
	for _, deferred := range []bool{false, true} {
		without, inHandWithout := hotKey(t, 0, deferred)
		with, inHandWith := hotKey(t, 50_000, deferred)
		t.Logf("deferred %t: p50 and p99 of 200 other vehicles: %s, %s; with the burst: %s, %s",
			deferred, without[len(without)/2], without[len(without)*99/100], with[len(with)/2], with[len(with)*99/100])
		if len(with) != len(without) {
			t.Errorf("%d observations are published with the burst, %d without", len(with), len(without))
		}
		// Once they are read, the burst costs them nothing.
		at := len(without) * 99 / 100
		t.Logf("from their delivery on, p99: %s; with the burst: %s", inHandWithout[at], inHandWith[at])
		if inHandWith[at] > inHandWithout[at]+time.Millisecond {
			t.Errorf("from their delivery on, p99 is %s with the burst, %s without", inHandWith[at], inHandWithout[at])
		}
		// The burst lies before them in the log: to fetch past it takes 125 ms, and no more than that is allowed.
		if p50, p99 := with[len(with)/2], with[len(with)*99/100]; p50 > without[len(without)/2]+5*time.Millisecond || p99 > without[len(without)*99/100]+130*time.Millisecond {
			t.Errorf("p50 is %s, p99 is %s with the burst", p50, p99)
		}
	}
}

// F21: a vehicle's backlog is worked off many observations a commit. In the same virtual time: one by one each costs a solve and a commit, in runs
// its solve and its part of a commit.
func TestBacklogCatchesUp(t *testing.T) {
	for _, deferred := range []bool{false, true} {
		const backlog = 5000
		took := map[int]time.Duration{}
		for _, run := range []int{1, 8, 64} {
			took[run] = catchUp(t, backlog, run, deferred)
			t.Logf("deferred %t, %d a commit: %s, %.0f a second", deferred, run, took[run], backlog/took[run].Seconds())
		}
		if took[64] > took[1]/9 || took[8] > took[1]/4 {
			t.Errorf("deferred %t: %s one by one, %s in runs of 8, %s in runs of 64", deferred, took[1], took[8], took[64])
		}
	}
}

// catchUp gives how long it takes to publish what waits of one vehicle.
func catchUp(t *testing.T, backlog, run int, deferred bool) time.Duration {
	t.Helper()
	r := newHotRun(t)
	for range backlog {
		r.add("behind", 0)
	}
	cfg := DefaultConfig()
	cfg.Deferred, cfg.Run = deferred, run
	r.drive(cfg, backlog, 10*time.Minute)
	if len(r.took) != backlog {
		t.Fatalf("%d of %d observations are published", len(r.took), backlog)
	}
	return r.took[backlog-1]
}

// hotRun drives one machine in virtual time.
type hotRun struct {
	t      *testing.T
	w      *world
	m      *Machine
	now    time.Time
	queue  heap[*event]
	serial int
	at     int // in the log
	paused bool
	took   []time.Duration
	inHand []time.Duration
	read   map[int64]time.Time // when an offset was delivered
}

// hotKey gives the times from production, and from delivery, to publication of the other vehicles' observations, ascending.
func hotKey(t *testing.T, burst int, deferred bool) (took, inHand []time.Duration) {
	t.Helper()
	r := newHotRun(t)
	const rounds, others = 60, 200
	for round := range rounds {
		if round == 20 {
			for range burst {
				r.add("hot", time.Duration(round)*100*time.Millisecond)
			}
		}
		for v := range others {
			r.add(fmt.Sprintf("v%d", v), time.Duration(round)*100*time.Millisecond+time.Duration(v)*time.Millisecond/4)
		}
	}
	cfg := DefaultConfig()
	cfg.Deferred = deferred
	r.drive(cfg, rounds*others, time.Minute)
	return r.took, r.inHand
}

func newHotRun(t *testing.T) *hotRun {
	t.Helper()
	r := &hotRun{t: t, w: newWorld(t.Errorf), now: toyStart(), read: map[int64]time.Time{}}
	r.queue = heap[*event]{
		less:  func(a, b *event) bool { return a.at.Before(b.at) || a.at.Equal(b.at) && a.serial < b.serial },
		place: func(e *event) *int { return &e.place },
	}
	r.w.epoch, r.w.lanes = 1, 1
	return r
}

// add produces a record at a time after the start.
func (r *hotRun) add(key string, at time.Duration) {
	rec := toyRecord(int64(len(r.w.log)), key, "w")
	rec.Timestamp = toyStart().Add(at)
	r.w.log = append(r.w.log, rec)
}

// drive lets the machine work until so many observations are published, not the hot one's, at most for so long.
func (r *hotRun) drive(cfg Config, published int, most time.Duration) {
	r.m = New(cfg, toy{}, Start{Tenure: toyTenure(1), Frontier: r.w.saved.Frontier}, r.now)
	r.fetch()
	r.tick()
	for len(r.took) < published && r.now.Before(toyStart().Add(most)) {
		e, _ := r.queue.top()
		r.queue.remove(e)
		r.now = e.at
		e.run()
	}
	slices.Sort(r.took)
	slices.Sort(r.inHand)
}

func (r *hotRun) after(d time.Duration, run func()) {
	r.serial++
	r.queue.fix(&event{at: r.now.Add(d), serial: r.serial, place: -1, run: run})
}

func (r *hotRun) tick() {
	r.step(Tick{})
	r.after(250*time.Millisecond, r.tick)
}

func (r *hotRun) fetch() {
	from := r.at
	for !r.paused && r.at < len(r.w.log) && r.at-from < 2000 && !r.w.log[r.at].Timestamp.After(r.now) {
		r.read[int64(r.at)] = r.now
		r.at++
	}
	if r.at > from {
		r.step(Arrived{Records: r.w.log[from:r.at]})
	}
	r.after(5*time.Millisecond, r.fetch)
}

func (r *hotRun) step(in Input) {
	for _, e := range r.m.Step(r.now, in) {
		r.effect(e)
	}
}

func (r *hotRun) effect(e Effect) {
	switch e := e.(type) {
	case Restore:
		in := Restored{Keys: e.Keys}
		for _, k := range e.Keys {
			in.Rows = append(in.Rows, r.w.restore(k))
		}
		r.after(2*time.Millisecond, func() { r.step(in) })
	case Dispatch:
		d, err := toySolve(e.Request, 0)
		r.after(time.Duration(1+len(d.More))*time.Millisecond, func() { r.step(Result{Job: e.Job, Key: e.Key, Revision: e.Revision, Decision: d, Err: err}) })
	case Commit:
		r.after(10*time.Millisecond, func() { r.commit(e.Commit) })
	case Persist:
		in := Persisted{Persists: e.Persists}
		for _, p := range e.Persists {
			in.Errs = append(in.Errs, r.w.persist(p))
		}
		r.after(5*time.Millisecond, func() { r.step(in) })
	case Promote:
		in := Promoted{Promotions: e.Promotions}
		for _, p := range e.Promotions {
			in.Errs = append(in.Errs, r.w.promote(p))
		}
		r.after(5*time.Millisecond, func() { r.step(in) })
	case SaveFrontier:
		r.after(2*time.Millisecond, func() { r.step(FrontierSaved{Write: e.Write, Err: r.w.saveFrontier(e.Write)}) })
	case Refetch:
		in := Arrived{Refetched: true}
		for _, offset := range e.Offsets {
			in.Records = append(in.Records, r.w.log[offset])
		}
		r.after(3*time.Millisecond, func() { r.step(in) })
	case Pause:
		r.paused = true
	case Resume:
		r.paused = false
	case Stop:
		r.t.Fatal(e.Cause)
	default:
	}
}

// commit is the stages: prepared unless deferred, then published.
func (r *hotRun) commit(c commit.Commit) {
	if !c.Deferred {
		if _, err := r.w.prepare(c); err != nil {
			r.t.Fatal(err)
		}
	}
	position, err := r.w.publish(c.Tenure, c)
	for _, offset := range c.Offsets() {
		if c.Key != "hot" {
			r.took = append(r.took, r.now.Sub(r.w.log[offset].Timestamp))
			r.inHand = append(r.inHand, r.now.Sub(r.read[offset]))
		}
	}
	r.step(Committed{Key: c.Key, Revision: c.Revision, ID: c.ID, Position: position, Err: err})
}
