package partition

import (
	"fmt"
	"time"

	"milepost/internal/commit"
	"milepost/internal/stream"
)

// Start is where a machine begins: after the recovery of its partition.
type Start struct {
	Tenure      *commit.Tenure
	Frontier    stream.Frontier
	LedgerFloor int64
	// LedgerHighest is the highest ledger position that recovery saw plus one.
	LedgerHighest int64
	// Done are offsets at or above the frontier that the ledger says are done without a row (dead letters).
	Done []int64
	// Failed are keys whose prepared commit recovery could not finish: they start blocked (A2).
	Failed []stream.Key
	// Standing are the offsets of their prepared commits, which hold the frontier also where the log has lost them.
	Standing map[int64]stream.Key
	// Anew says which keys begin anew.
	Anew commit.Anew
	// Share is the partition's part of the process's admission; nil: only Config.Jobs bounds it.
	Share *Share
	// Rebuild are published entries at or above the frontier that no row covers: what they name is decided again, compared
	// with what was published, and persisted (H6).
	Rebuild []commit.Rebuild
}

// Machine is one partition's pure state machine. One goroutine steps it; it keeps no clock, starts nothing and
// touches nothing but itself.
type Machine struct {
	cfg    Config
	work   Workload
	works  int // how often it was replaced
	share  *Share
	tenure *commit.Tenure
	anew   commit.Anew
	now    time.Time
	out    []Effect
	stats  Stats

	reasons Reasons // parts of stats

	keys    map[stream.Key]*key
	keyless [keylessPlaces]*key // poison records without a key
	count   [phases]int
	idle    idleList

	// Scheduling: keys whose turn it is, keys that wait for their row, keys with spilled offsets and room.
	turn     fifo[*key]
	admitted fifo[*credit] // of keys that waited for it
	rows     fifo[*key]
	thirsty  fifo[*key]
	timers   heap[*key]
	jobs     int // in flight, blocked commits included
	restores int // in flight

	// The window: what is in hand.
	records, again int // again: of them, refetched
	bytes          int64
	spilled        int
	paused         bool
	refetch        []asked // the refetch that is out
	refetchHeld    bool    // until the next tick, after a failed one

	tracker     tracker
	done        map[int64]struct{} // see Start.Done
	doneHighest int64              // of them, -1 without one
	completions int                // since the last frontier write
	saved       commit.FrontierWrite
	written     commit.FrontierWrite // last handed out
	saving      bool
	saveFailed  bool
	saveHeld    bool // until the next tick, after a failed write
	saveAt      time.Time

	ledgerNext  int64 // the highest own ledger position known, plus one
	startFloor  int64
	holds       heap[*key]
	deadHolds   heap[*deadHold]
	deadLetters map[int64]*deadHold

	// Keys with published checkpoints that are not persisted; toPersist: those of which no persist is out.
	dirty, persists int
	toPersist       heap[*key]
	persistAt       time.Time // after a failed persist: not before
	persistFailures int       // in a row
	proofs, proving []*key    // wait for a heartbeat that proves the ownership; those whose heartbeat is out
	rebuild         map[stream.Key][]commit.Rebuild
	owed            map[int64]stream.Key // the offsets of rebuild and of standing
	standing        map[stream.Key]int64 // prepared by an earlier owner and not known to be published
	owing           []int64              // of them, ascending: at or above what was delivered; those that are covered by now too

	promotions  fifo[promotion]
	promoting   int // Promote effects out
	quarantined int // keys in memory
	promoteHeld bool
	unpromoted  int
	swept       time.Time
	draining    bool
	deadline    time.Time // of a drain
	final       bool      // the drain's last frontier write is out or done
	ended       bool      // Drained or Stop was given
	touched     []*key    // in this step, kept when invariants are checked
}

// New makes the machine of a recovered partition. The configuration must be valid.
func New(cfg Config, w Workload, s Start, now time.Time) *Machine {
	m := &Machine{
		cfg: cfg, work: w, share: s.Share, tenure: s.Tenure, now: now,
		keys: map[stream.Key]*key{}, done: map[int64]struct{}{}, doneHighest: -1,
		saveAt: now, swept: now,
		ledgerNext: max(s.LedgerHighest, s.LedgerFloor), startFloor: s.LedgerFloor, anew: s.Anew,
		deadLetters: map[int64]*deadHold{},
	}
	m.saved = commit.FrontierWrite{Tenure: s.Tenure, Frontier: s.Frontier, LedgerFloor: s.LedgerFloor}
	m.written = m.saved
	m.timers = heap[*key]{
		less:  func(a, b *key) bool { return a.due.Before(b.due) },
		place: func(k *key) *int { return &k.timerAt },
	}
	m.holds = heap[*key]{
		less:  func(a, b *key) bool { return a.hold < b.hold },
		place: func(k *key) *int { return &k.holdAt },
	}
	m.deadHolds = heap[*deadHold]{
		less:  func(a, b *deadHold) bool { return a.floor < b.floor },
		place: func(d *deadHold) *int { return &d.at },
	}
	m.toPersist = heap[*key]{less: persistsBefore, place: func(k *key) *int { return &k.persistAt }}
	m.owe(&s)
	m.tracker = newTracker(s.Frontier, m.releaseDead)
	for _, offset := range s.Done {
		m.done[offset] = struct{}{}
		m.doneHighest = max(m.doneHighest, offset)
	}
	for _, name := range s.Failed {
		k := m.at(name, 0)
		k.foreign = s.LedgerFloor
		m.rehold(k)
		m.block(k, finishAgain, now) // due at the first tick (A2)
	}
	return m
}

// Step takes one input and returns what is to be done, in order. After Drained or Stop it returns nothing.
func (m *Machine) Step(now time.Time, in Input) []Effect {
	if m.ended {
		return nil
	}
	if now.After(m.now) {
		m.now = now
	}
	m.take(in)
	if !m.ended {
		m.pump()
		m.saveFrontier()
		m.goOnDraining()
	}
	if checked {
		m.checkStep()
	}
	if m.ended {
		m.share.Leave()
	}
	out := m.out
	m.out = nil
	return out
}

func (m *Machine) take(in Input) {
	switch in := in.(type) {
	case Arrived:
		m.arrived(in)
	case Restored:
		m.restored(in)
	case Result:
		m.result(in)
	case Committed:
		m.committed(in)
	case Persisted:
		m.persisted(in)
	case Promoted:
		m.promoted(in)
	case Finished:
		m.finished(in)
	case FrontierSaved:
		m.frontierSaved(in)
	case QuarantineSaved:
		m.quarantineSaved(in)
	case Operate:
		m.operate(in)
	case AsidesRead:
		m.asidesRead(in)
	case DiscardDone:
		m.discarded(in)
	case Admitted: // pump looks
	case Replaced:
		m.replaced(in)
	case Tick:
		m.tick()
	case Drain:
		m.drain()
	case Lost:
		m.stop(in.Cause)
	default:
		panic(fmt.Sprintf("partition: no such input: %T", in))
	}
}

func (m *Machine) emit(e Effect) { m.out = append(m.out, e) }

// stop ends the machine for good: nothing more is written under this tenure.
func (m *Machine) stop(cause error) {
	m.ended = true
	m.emit(Stop{Cause: cause})
}

// fenced stops the machine when err says that the partition has another owner.
func (m *Machine) fenced(err error) bool {
	if m.ended || commit.ClassOf(err) != commit.Fenced {
		return m.ended
	}
	m.stats.Fenced++
	m.stop(err)
	return true
}

// warn tells of a condition for the log; a call that its caller gave up is none.
func (m *Machine) warn(message string, k *key, err error) {
	class := commit.ClassOf(err)
	if class == commit.Canceled {
		return
	}
	w := Warn{Message: message, Class: class, Err: err}
	if k != nil {
		w.Key = k.name
		if k.head != nil {
			w.Revision = m.revisionOf(k.head)
		}
	}
	m.emit(w)
}

func (m *Machine) revision(offset int64) stream.Revision {
	return stream.Revision{Generation: m.tenure.TopicGeneration, Offset: offset}
}

// revisionOf gives an item's revision: what is released from quarantine may be of an earlier topic generation.
func (m *Machine) revisionOf(it *item) stream.Revision {
	if it.released {
		return it.obs.Identity.Revision
	}
	return m.revision(it.record.Offset)
}

func (m *Machine) identity(r *stream.Record) stream.Identity {
	return stream.Identity{Partition: m.tenure.Partition, Revision: m.revision(r.Offset)}
}

// tick lets time pass: retries, resends, promotions and evictions.
func (m *Machine) tick() {
	m.refetchHeld, m.saveHeld, m.promoteHeld = false, false, false
	for k, ok := m.timers.top(); ok && !k.due.After(m.now); k, ok = m.timers.top() {
		m.timers.remove(k)
		m.expire(k)
	}
	if !m.draining {
		m.findGone()
		m.findStanding()
		m.promoteDue()
		m.evict()
	}
}
