// Package counter is the smallest workload: it numbers the records of each key. What it must publish is known before it runs, so it is
// what a test of the promises runs, what a benchmark of everything but solving runs, and where to begin when writing a workload of one's own.
//
// A raw record's value may be anything. Its output says the key, the record's number n within the key's segment, and where the record stands
// in the raw topic:
//
//	{"key":"k7","n":3,"segment":1,"topic":"raw","generation":1,"partition":0,"offset":41}
//
// with "reset":"<reason>" in the first record of a segment that does not go on where the one before ended. A value that begins with one of
// two words is special:
//
//	poison   the record is poison: a dead letter
//	refuse   the record cannot be planned: its key goes to quarantine
//
// Invariants:
//
//	K1 Every method is pure (I16).
//	K2 Every record gives exactly one output; n is one more than that of the key's record before it, and 1 where a segment begins.
//	K3 The state is n and nothing else, as decimal digits; one that is not is lost, and a reset tells of it.
//
// It starts no goroutine.
package counter
