// Package offline matches traces without a broker: the engine behind the match command. It runs the very workload and solver that a
// partition runs, over checkpoints in memory, so that a file gives the same decisions as the same records in the raw topic; at the end of
// the input every vehicle's open stretch becomes final.
//
// Invariants:
//
//	O1 Every fix gives exactly one event, and exactly one row of the table, in the input's order.
//	O2 A row's place is final, but for what a later fix of the vehicle could still change when the bound on waiting rows was reached.
//	O3 A route is grouped by vehicle, in the order of the vehicles' first fixes, and holds each traversal of a node pair once.
//
// Nothing here starts a goroutine; a Run is one goroutine's.
package offline
