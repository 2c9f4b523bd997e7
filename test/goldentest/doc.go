// Package goldentest holds what people read to files that are kept: "go test ./the/package -rewrite" accepts what has changed.
//
// Invariants:
//
//	1  Without -rewrite nothing is written.
//	2  What a test prints of a difference is the whole of it, with the command that accepts it.
//
// No goroutines.
package goldentest
