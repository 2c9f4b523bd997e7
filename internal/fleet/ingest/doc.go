// Package ingest plays traces into the raw topic: it reads files, times and paces their fixes and encodes them as raw values. It
// knows no broker: the caller produces.
//
// Invariants:
//
//	G1 The fixes of one vehicle go out in the file's order, or in time's order where the pace is real time.
//	G2 A bad row is reported and never keeps a good one from going in.
//	G3 In a loop event times rise from pass to pass, so that nothing is a repetition.
//
// Nothing here starts a goroutine; Feed.Progress may be called beside Run.
package ingest
