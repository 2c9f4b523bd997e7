// Package partition is the pure core of a partition's worker: one Machine that takes inputs and returns effects.
//
//	Step(now, Input) []Effect
//
// It has no clock, no randomness, no I/O, no logger and no goroutine: time comes with the input, and all that waits on the
// world is an Effect that comes back as exactly one Input. The driver's goroutine of the partition is the only one that
// touches a Machine, and a Machine locks nothing. Credits, the admission that all partitions of a process share, has a lock:
// a machine asks it and never waits; what comes of it later is an input too.
//
// It is not the driver (internal/consumer), not the commit stages and not recovery (internal/commit), and it knows
// nothing of what a record means: that is the Workload's.
//
// # The life of a record
//
//	Arrived ─▶ reader ─▶ scheduler ─▶ dispatch ─▶ decide ─▶ committed ─▶ frontier
//	           verdict   one queue    local, or    result    verdict      contiguous,
//	           window    a key, one   Dispatch     Plan      table        with the
//	           spill     job a key    and retain   Commit    promote      ledger floor
//
// # A key
//
//	              record                row is not read
//	    idle ───────────────▶ ready ─────────────────────▶ restoring
//	     ▲                    ▲  │ ▲                           │ row; a foreign prepared commit: finishing
//	     │ nothing queued     │  │ └───────────────────────────┘
//	     │                    │  │ Open
//	     │                    │  ├─▶ held ──▶ solving ───────┐ result of the active job
//	     │                    │  │ local      │ time-out:     │
//	     │                    │  │ or poison  └─ same bytes   ▼
//	     └────────────────────┤  └────────────────────▶ committing ──▶ transient: blocked, same bytes
//	                          │                            │   conflict, busy: rolled back, ready
//	                          └────────────────────────────┘   permanent: quarantined, ready
//	                             published: head is done        fenced: Stop
//
//	held waits for credit, if there is none at once; blocked waits for its timer and then restores, commits, finishes or puts aside again; a quarantined key's
//	observations go from ready to settingAside and are done when their rows are written. An operator's request takes the
//	key to onErrand; between its answers each replayed observation goes the way of any other.
//
// A key that has fallen behind has a run of observations in one job and one commit: the head and what waits behind it, as far as the workload
// can foresee, within Config.Run and Config.RunBytes. Each is planned over the state of the one before, as if it had been committed by itself. A run
// that fails for good is tried in halves, so that only the observation that cannot be decided or committed stops the key.
//
// In mode deferred a commit is published without having been prepared; the key is then dirty until its newest checkpoint is
// persisted, which costs it no phase: it goes on meanwhile. A key that must be clean first (for the quarantine, an operator's
// request or a prepare) waits in settling. What an earlier owner published and did not persist is opened like any other
// observation, in either mode, and then compared with what was published, persisted, and never published again.
//
// # Invariants
//
// Checked after each step under -race and under the build tag invariants; all keys after each step in tests. A broken
// one panics with its values and is never recovered.
//
//	I1  A key has at most one job, and it is its head's, and those' behind it that it decides with it.
//	I2  An offset is done only when its effect is durable: published, dead-lettered, covered by the stored checkpoint,
//	    written to quarantine, or gone from the log before it was published.
//	I3  The frontier passes no delivered offset that is not done; what was never delivered is a gap once a higher
//	    offset was, but for what the ledger has and no row, and for what is prepared and not published: these
//	    hold the frontier until a row has them, if need be as a state that is void, or they are put aside, also
//	    when the log has lost them.
//	I4  Frontier and ledger floor never go back.
//	I5  A commit's base is the revision of the row as it was read or last published, a persist's the one that was last
//	    persisted; a failed commit puts it back.
//	I6  A decision becomes the key's checkpoint only when its outputs are committed in Kafka.
//	I7  A retry carries the same job and request, or the same commit, byte for byte.
//	I8  Only a result of the active job decides, before its commit began.
//	I11 A head is released by what its row says, never by the finishing of a foreign prepared commit.
//	I12 What the workload adds to a lost state commits over the stored revision.
//	I13 After a fenced answer nothing is handed out.
//	I14 A budget that was missed is told and counted; it decides nothing.
//	I15 A job for a solver has a credit from its admission to its end, on every path; one that waits is in line once.
//	I16 The same inputs give the same effects: nothing depends on the order of a map.
//	P1  What stands prepared and was published by this machine is never finished: that would publish it twice.
//	P2  A key's queue ascends, its spilled offsets follow the queue and ascend; while there are any, later ones spill.
//	P3  A key's phase, timer, job and commit agree.
//	P4  A job takes one place of Config.Jobs from its opening to its end, on every path; a blocked commit keeps it.
//	P5  What is counted is what is there, and within its bound.
//	P6  An entry in the ledger that a recovery would need is at or above the written floor: of a commit on its way, of
//	    one not promoted, of a key's first one not persisted, of one to be rebuilt, of a dead letter
//	    that the frontier has not passed (floor.go).
//	P7  A key leaves memory only when nothing of it is outstanding.
//	P8  What an operator releases is replayed in order, each observation promoted before the next is opened. It is no part
//	    of the frontier: until its promotion its quarantine row speaks for it.
//	P9  A dirty key stays loaded, its row's revision is below its checkpoint's, and it waits for a persist, has one out, or is being
//	    cleared up; each of its offsets that is published and not persisted holds the frontier.
//	P10 A request without the trip goes to the replica that answered last for exactly the key's checkpoint, and to no other.
//	    Results that came before their job are kept within Config.ParkedResults a key, and never for a key not in memory.
//
// A step costs what it changes and not what there is: keys that wait for time are in a heap, idle ones in a list by
// age, the floor's holders in a heap, and a view is read from counts.
package partition
