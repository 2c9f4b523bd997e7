package partition

import (
	"time"

	"milepost/internal/commit"
	"milepost/internal/stream"
)

// phase is what a key is at. doc.go draws the chart.
type phase uint8

const (
	idle         phase = iota // nothing to do for it
	ready                     // has observations and waits for its turn, or for its place in a restore
	restoring                 // its row is being read
	held                      // its job waits for admission
	solving                   // a job is out
	committing                // a commit is with the stages
	blocked                   // waits for its timer, then does what retry says
	finishing                 // another prepared commit of its row is being finished
	settingAside              // observations are being written to the quarantine table
	settling                  // its dirty checkpoint is being persisted before the next step
	onErrand                  // an operator's request waits for an answer
	phases
)

// retry is what a blocked key does when its timer is due.
type retry uint8

const (
	restoreAgain retry = iota
	commitAgain
	finishAgain
	setAsideAgain
	errandAgain
)

// item is a record in hand.
type item struct {
	record  stream.Record
	obs     Observation
	poison  *commit.PoisonError // set: to be dead-lettered
	next    *item
	size    int64
	again   bool // came by a refetch: takes reserved room
	refused bool // the quarantine had no room for it
	// It is replayed from quarantine: its row there speaks for it, not the frontier.
	released bool
	counted  bool // its delivery has had its verdict in the statistics
}

// job is what is held for a key's head, and for those behind it that it decides with it, while they are being decided and committed.
type job struct {
	id       JobID
	request  []byte // nil for a local decision, and once a result begins to commit
	short    []byte // the request without the trip, until it is sent
	timeouts int    // of the job
	cached   bool   // the last send was without the trip
	differs  bool   // results of it differ, and that was told
	decision Decision
	decided  bool // a result was accepted; kept over a rollback
	commit   commit.Commit
	composed bool  // commit is handed in, or waits to be handed in again
	rebuild  bool  // what is decided is published already: it is compared, not published
	attempt  bool  // a commit of this job was handed in once
	counted  bool  // takes a place of Config.Jobs
	floor    int64 // the ledger floor that holds while the commit is on its way

	run     int       // observations that it was opened for, from the head
	local   bool      // the workload decided it: the same about each of them
	planned []planned // of each one planned, for the statistics

	work   Workload // that opened it, and will plan it
	works  int      // Machine.works then
	region string
	budget time.Duration
	credit *credit // its admission, or its place in the line; nil: it needs none
}

// planned is what a plan says of itself.
type planned struct{ terminal, reset string }

// published is a key's commit that is published and not known to be promoted.
type published struct {
	promotion commit.Promotion
	floor     int64
	promoting bool
}

// cause is why a key is quarantined.
type cause struct{ class, reason string }

// key is one key in memory.
type key struct {
	name       stream.Key
	checkpoint commit.Checkpoint // with loaded: the base of the next commit
	head, tail *item
	queued     int
	spill      []spilled // ascending
	asked      int       // of them, from the first: asked for by the refetch that is out
	job        *job
	published  *published
	dirty      *dirty // nil: the row has the checkpoint
	cause      *cause
	errand     *errand
	sticky     *sticky         // who answered last, nil when that is forgotten
	parked     []Result        // that came before their job, oldest first
	discarded  stream.Revision // with loaded: what is at or below it was discarded
	setAside   int             // observations written to quarantine by this machine
	partial    *partial        // the first entry of rebuild, begun and not at its end
	narrow     int             // observations a job, up to the offset narrowTo: more failed; 0: no bound
	narrowTo   int64
	foreign    int64 // floor to hold for a foreign prepared commit; -1 none
	hold       int64 // floor that the key holds, while holdAt >= 0

	idleSince    time.Time
	due          time.Time
	older, newer *key // in the list of idle keys

	// Places in the heaps, -1 outside.
	holdAt, timerAt, persistAt int
	attempts                   int // failures in a row
	phase                      phase
	retry                      retry
	place                      int // of a record without a key
	loaded                     bool
	expired                    bool
	quarantined                bool
	inherits                   bool // from quarantine rows that setAside does not count
	alone                      bool // restored by itself: the batch met an error that one key may have caused
	gone                       bool // its row is needed without an observation: see findGone
	thirsty                    bool // queued for a refetch
	listed                     bool // in the list of idle keys
}

func newKey(name stream.Key) *key {
	return &key{name: name, foreign: -1, holdAt: -1, timerAt: -1, persistAt: -1}
}

// push queues an item behind the others.
func (k *key) push(it *item) {
	if k.tail == nil {
		k.head = it
	} else {
		k.tail.next = it
	}
	k.tail = it
	k.queued++
}

// pop takes the head off.
func (k *key) pop() *item {
	it := k.head
	k.head = it.next
	if k.head == nil {
		k.tail = nil
	}
	it.next = nil
	k.queued--
	return it
}

// needsRow reports whether the key's next step waits for its stored row. A poison record needs none; an observation does,
// also of a quarantined key: what the row covers is done and must not be put aside.
func (k *key) needsRow() bool {
	return !k.loaded && (k.gone || k.head != nil && k.head.poison == nil)
}

// covers reports whether the observation is done for the key: its checkpoint contains it, or an operator discarded it.
func (k *key) covers(r stream.Revision) bool {
	return k.loaded && (k.checkpoint.Revision.Covers(r) || k.discarded.Covers(r))
}

// keylessPlaces is how many poison records without a key are dead-lettered at once: they have no order among them.
const keylessPlaces = 64

// find gives the key in memory, nil when it is not there. The offset matters to a record without a key alone.
func (m *Machine) find(name stream.Key, offset int64) *key {
	if name == "" {
		return m.keyless[offset%keylessPlaces]
	}
	return m.keys[name]
}

// at gives the key in memory, made when it is not there.
func (m *Machine) at(name stream.Key, offset int64) *key {
	k := m.find(name, offset)
	if k != nil {
		return k
	}
	k = newKey(name)
	m.count[idle]++
	if name == "" {
		k.place = int(offset % keylessPlaces)
		m.keyless[k.place] = k
	} else {
		m.keys[name] = k
	}
	return k
}

// enter moves a key to a phase.
func (m *Machine) enter(k *key, p phase) {
	m.touch(k)
	if k.listed {
		m.idle.remove(k)
	}
	m.count[k.phase]--
	m.count[p]++
	k.phase = p
	if p == idle {
		m.rest(k)
	}
}

// rest lists an idle key for eviction; one of which nothing is known leaves at once.
func (m *Machine) rest(k *key) {
	if k.phase != idle || k.listed || k.head != nil || len(k.spill) > 0 || k.asked > 0 || k.published != nil || k.dirty != nil || k.partial != nil || k.foreign >= 0 {
		return
	}
	if !k.loaded && !k.quarantined {
		m.forget(k)
		return
	}
	k.idleSince = m.now
	m.idle.push(k)
}

// forget lets go of a key and of all that is kept for it (A4).
func (m *Machine) forget(k *key) {
	m.count[k.phase]--
	m.timers.remove(k)
	m.holds.remove(k)
	if k.quarantined {
		m.quarantined--
	}
	if k.name == "" {
		m.keyless[k.place] = nil
	} else {
		delete(m.keys, k.name)
	}
}

// evict lets go of keys that were idle for long, oldest first. It looks at no key that stays.
func (m *Machine) evict() {
	if m.now.Sub(m.swept) < m.cfg.EvictSweep {
		return
	}
	m.swept = m.now
	for k := m.idle.first; k != nil && m.now.Sub(k.idleSince) >= m.cfg.EvictIdle; k = m.idle.first {
		m.idle.remove(k)
		m.forget(k)
		m.stats.Evicted++
	}
}

// idleList holds the idle keys, the one that is idle longest first.
type idleList struct{ first, last *key }

func (l *idleList) push(k *key) {
	k.older, k.newer = l.last, nil
	if l.last == nil {
		l.first = k
	} else {
		l.last.newer = k
	}
	l.last = k
	k.listed = true
}

func (l *idleList) remove(k *key) {
	if k.older == nil {
		l.first = k.newer
	} else {
		k.older.newer = k.newer
	}
	if k.newer == nil {
		l.last = k.older
	} else {
		k.newer.older = k.older
	}
	k.older, k.newer, k.listed = nil, nil, false
}
