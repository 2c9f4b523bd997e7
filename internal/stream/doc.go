// Package stream holds Milepost's words: key, partition, revision, frontier, ownership epoch, nonce,
// and the identity and headers of outputs. It imports only the standard library and holds no logic
// beyond order and naming.
//
// Invariants:
//
//	W1 The zero Revision means "none"; topic generations start at 1.
//	W2 Revisions order by (topic generation, offset) and are compared only within one partition.
//	W3 A Frontier is the next offset to do, never the last one done.
//	W4 An output's identity depends on where its observation stands in the raw topic and on its index,
//	   on nothing that a solver or a catalog decides.
package stream
