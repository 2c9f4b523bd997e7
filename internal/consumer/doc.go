// Package consumer is the group consumer: it joins the raw topic's group with franz-go, acquires the partitions it is
// assigned, and drives one partition.Machine a partition. It decides nothing about records; it decides who may.
//
// A session is one membership: a client, the partitions that the group gave it, and a worker for each that is
// acquired. A worker is one tenure: recovery first, then the machine's loop.
//
//	assigned callback ─▶ acquire (prove, swap, settle, initialise lanes) ─▶ worker: recovery ─▶ loop
//	                        │ fails                                            │ fenced, stopped
//	                        ▼                                                  ▼
//	                     keeper: again with backoff while assigned ◀───────────┘ ─▶ past a bound: leave the group, join again
//
// The group divides the partitions by protocol classic or consumer (KIP-848). They differ in the proof: a Heartbeat, or an OffsetFetch under
// member id and epoch; and in what the generation is: the group's, or the member's own epoch, which may move while a callback
// runs and is then captured and proved anew.
//
// Invariants:
//
//	G1 A tenure begins only after a proof that the group holds the captured member id and generation current, read
//	   after the epochs that it then swaps; between proof and swap the member id is compared once more.
//	G2 A tenure ends when any callback sees another member id than the one it began under (H1), an empty callback too.
//	G3 Records reach a machine only of its own tenure, in offset order, starting exactly at its frontier. A gap where
//	   two fetches meet is believed only after a seek to the expected offset has shown it again (P10).
//	G4 A partition is released only after a clean drain, with the pipeline settled and the tenure ended; otherwise its
//	   next owner recovers it.
//	G5 A process that acquires first settles its own older tenures of the partition (H2).
//	G6 The group's committed offset follows what Postgres has durably, never leads it (P40).
//	G7 Callbacks are bounded by configuration, and wait neither for the group nor for the commit stages.
//	G8 One partition's end never ends another's worker (A15). Only a refusal that concerns the whole topic ends Run.
//	G9 An operator's request is executed by the owner of its partition alone, under the tenure's fence: releases and
//	   discards by the machine, a seek between a tenure's recovery and its first record. One that was executed and not
//	   answered is executed again, which changes nothing.
//	G10 States of quiet keys are let go of by their partition's owner alone, under its fence, and only what lies below the
//	   frontier with nothing prepared or quarantined; their rows stay.
//
// Goroutines: Consumer.Run starts a session's poller, keeper, housekeeper, watcher of ends and carrier of requests and waits for each; a session starts a
// goroutine a worker and waits for it when the partition goes. A worker starts only what ends with its context, and
// waits for it. The batchers' goroutines end with their queues, and Run waits for them. Callbacks run on the client's goroutine.
// Only the worker's goroutine touches its machine; only the poller touches a worker's position in the log.
//
// A remote solver delivers on its own goroutines, into the mailbox, so many at once and no more; what exceeds that is dropped.
//
// Shared between workers: the commit stages, the batchers, and partition.Credits, which bounds the jobs in flight; a worker leaves it
// when its loop has ended. Consumer.Replace gives every worker another workload, through its mailbox.
//
// Locks: session.acquiring (held over an acquisition; a callback that wants it cancels the keeper's first) comes
// before session.mu (held for map operations and pausing, never over a request).
package consumer
