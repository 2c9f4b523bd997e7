// Package audit reads a group's raw topic and outputs as a stranger would, and says whether each observation came out
// exactly once, in order, and how long it took. It knows Kafka and the outputs' CloudEvents headers; it shares no code, no
// counter and no state with the worker that it judges.
//
// Invariants:
//
//	U1 Outputs are read with read_committed isolation, by direct assignment: the auditor is in no group.
//	U2 An observation is lost when the raw topic has it and no output of index 0, matched or dead letter, names it.
//	U3 An output is repeated when its ce_id was seen before, foreign when it names no offset that the raw topic has.
//	U4 Outputs of a key are disordered when their revisions do not strictly rise in the order of the output partition.
//	U5 Latency is from the raw record's Kafka timestamp to the receipt of its output, by this machine's clock.
//
// Goroutines: Run is one; the client's own end with it. Report may be called from any.
package audit
