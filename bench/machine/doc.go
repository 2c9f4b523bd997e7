// Package machine says where and from what a benchmark was run, for the lines that stand under its figures: the processor, the load before
// and after, the commit. What cannot be read is "unknown"; a benchmark does not fail for it.
//
// Invariants:
//
//  1. Nothing is kept: each call reads anew, so that a load is that of its moment.
//  2. The commit is that of the running program, not of the folder that it is run in: the two may have come apart while it measured.
//
// Goroutines: none.
package machine
