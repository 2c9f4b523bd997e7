// Package traffic simulates vehicles on a road network: they drive legal routes, stop at junctions, and report positions
// with GPS noise. The route that each has driven is known, so what a matcher makes of the positions can be judged. It is pure:
// the same graph, seed and steps give the same positions.
//
// Invariants:
//
//	S1 A vehicle turns only where the turn rules allow it, and turns back only at a dead end.
//	S2 A vehicle drives on the biggest component, on no private road and on no ferry.
//	S3 The truth is every pair of neighbouring OSM nodes that a vehicle has begun to drive, in order.
//	S4 Noise never touches the truth: position, accuracy, speed and heading are measured from it.
//
// No goroutine, clock or global randomness.
package traffic
