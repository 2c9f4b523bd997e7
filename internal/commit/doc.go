// Package commit is the protocol by which a decision becomes durable exactly once: plan, prepare (Postgres), publish
// (Kafka), promote (Postgres). It holds the words (Commit, Tenure, Entry), the contracts of the two stores that adapters
// fulfil (Store, Owners, Publisher, Ledger), the stages that carry commits through them (Pipeline), the recovery
// that reads the ledger back (Recovery) and the classes of errors (ClassOf). It knows no SQL, no Kafka client and no clock.
//
//	Submit ─▶ [prepare queue] ─▶ Store.Prepare ─▶ [publish queue] ─▶ lane: Publisher.Publish ─▶ done(Outcome)
//	            one batch is written while            lanes take turns, the one that was
//	            the next gathers                      idle longest first
//
// Promotion costs no step of its own for a busy key: its next prepare folds the prepared columns in. What stays behind the
// partition's machine promotes.
//
// Invariants:
//
//	C1  A commit's ID is a digest of all that it writes; equal IDs are the same commit, on any owner (the epoch header aside).
//	C2  Nothing is published that is not prepared, but dead letters, which have no row, and commits marked Deferred, whose
//	    checkpoint is persisted later: their entry in the ledger is what the next owner rebuilds it from.
//	C3  An Outcome with a Transient error promises that the commit is certainly not published; one without error that it
//	    certainly is. Between them there is no third answer: who does not know yet has not answered.
//	C4  A prepared commit is replaced only by a commit whose base it is, and that is planned only after its publication is known.
//	C5  Every write carries epoch and nonce of a tenure and is refused once a newer acquisition has returned (I13).
//	C6  A lost tenure stays lost; its commits leave the pipeline as Fenced unless their publication was under way.
//	C7  Recovery publishes a prepared row only if its revision is neither below the frontier nor in the ledger, from the
//	    floor to an end noted after the lanes of all unreleased former owners were initialised. Of what was released from
//	    quarantine, and of an earlier topic generation, the ledger alone tells: the frontier does not speak for it.
//	C8  After FinishKey has published, it does not return before the promotion is known or the tenure is over.
//	C9  done is called exactly once for each Submit, before Settle learns that the commit has left.
//
// Goroutines: Run owns one for prepare, one that hands out lanes and one a busy lane; all end before it returns.
// The pipeline's mutex guards lists only and is never held over a call to a store or to done.
package commit
