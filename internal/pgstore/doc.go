// Package pgstore keeps checkpoints, prepared commits, frontiers, quarantined observations and partition owners in
// Postgres: commit.Store and commit.Owners over pgx.
//
// Every write is one statement that begins with the fence: it locks the owner rows of the tenures it writes for
// FOR KEY SHARE, in partition order, where epoch and nonce are the tenure's. An acquisition locks the same rows FOR
// UPDATE before it changes them. So a write that passed the fence ends before the acquisition that waits for it returns,
// and a write that comes later finds another epoch.
//
// Invariants:
//
//	S1 No write without the fence: an item whose fence row is missing changes nothing, inserts included (I13).
//	S2 One statement a write, in autocommit: nothing waits inside a transaction, so a paused process holds no lock. The
//	   sessions' timeouts end what a lost process left behind (P36). The exceptions are an operator's: opening a topic
//	   generation and accepting a ledger lock every owner row first, and wait for nothing else.
//	S3 Owner rows are locked in partition order, items in key order: equal orders cannot deadlock (H15f).
//	S4 An owner row's epoch changes only after SELECT ... FOR UPDATE in the same statement. A plain UPDATE passes under
//	   KEY SHARE (H15h); Release and Recovered may be plain, for they leave the epoch alone.
//	S5 What a statement that waited for a lock reads beside the locked rows is older than the wait: verdicts, frontiers
//	   and prepared rows are read by a later statement (H5, H11).
//	S6 A verdict says "prepared" or "promoted" only of what a statement did or what stands there with the same commit id.
//	S7 A permanent error is isolated by halving the batch until the culprit is alone; any other error is the batch's.
//	S8 Sessions are READ COMMITTED: the fence relies on a locked row's newest version being judged again. They commit
//	   synchronously: a prepared commit that a crash can take back is not prepared.
//	S9 A statement that has begun is not cancelled with its caller at once: it has a grace to give its answer, for a
//	   cancelled one is neither done nor undone (P35).
//	S10 has_prepared is the only indexed column of a checkpoint that changes, and it stays true while a busy key's next
//	   prepare folds its former one; a frontier has no index but its key: such updates stay heap-only (P37).
//
// Goroutines: the package starts none but those of the connection pool and, for a cancelled call, one that waits out its
// grace; both end with Close and with the call.
package pgstore
