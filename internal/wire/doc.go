// Package wire is generated from proto/milepost/v1: the messages that Milepost keeps in Postgres rows, writes
// to its ledger and sends to its solvers. Regenerate with make generate. The packages that own a message hold its codec.
//
// Invariants:
//
//	X1 Field numbers are never reused; a field is never given another type.
//	X2 Encoding is deterministic (no maps, Deterministic set), so that equal messages are equal bytes.
package wire
