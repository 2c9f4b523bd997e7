// Package fleet is the workload that turns vehicles' positions into paths on a road network while they drive: the observation codec,
// the vehicle's checkpoint state, the decisions that need no solver, the plan that turns an answer into one output event, and
// the in-process solver pools. It knows neither Kafka nor Postgres.
//
// An Atlas says which region serves a place and on which graph: one map for everything, or a catalog's regions. Another
// catalog is another Workload; Pools keeps a graph as long as jobs and open stretches may need it.
//
// The way of an observation: Decode judges the raw record; Open decides it locally (a time that goes back, a place off the
// map) or makes a solver's request; a Solver answers it with a mapmatch matcher; Plan turns the decision into exactly one
// Event and the next checkpoint.
//
// Invariants:
//
//	L1 Workload's methods are pure: they read their arguments and the immutable configuration only (I16). No clock, no
//	   randomness, no map iteration decides an output's bytes.
//	L2 Every observation gives exactly one event, and every event has exactly one disposition (F11).
//	L3 The segment changes only in an event that carries the reset, and that event announces it (A11, F9): a reset that the
//	   restore finds rides on whatever commits next, a terminal too.
//	L4 What was announced final is never announced again within a segment: Plan refuses an answer that tries (I9).
//	L5 An output's identity comes from where the observation stands in the raw topic, never from what decided it (F4).
//	L6 A terminal keeps the open stretch; only a reset ends it.
//	L7 A request without its trip has the answer of the whole one, byte for byte, or none (a trip miss).
//	L8 However a vehicle's waiting observations are parted into jobs, its outputs are the same bytes, and so is its state where a commit
//	   ends (F21).
//	L9 A matcher's state goes to a matcher of its own graph only: the stretch of a vehicle that moves to another is closed on the
//	   old one or retracted, and a reset of reason graph_change says so (A7, M44).
//
// Goroutines: Pool.Run owns its solvers' goroutines, one a solver, and waits for them; Pools.Run
// owns a goroutine a graph, for its Pool.Run, and waits for them. Nothing else here starts one.
package fleet
