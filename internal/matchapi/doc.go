// Package matchapi answers POST /v1/match: a whole trace in, the roads that were driven out. The request is Valhalla's for trace_attributes
// where that is natural, so that its clients can be pointed here; the answer has Valhalla's edges, matched_points and shape, and ours:
// disposition and confidence of every point, flags, way and node ids, and a shape for each unbroken stretch.
//
// It matches with the very workload and solver that a worker uses (fleet/offline), over the world in force when the request comes. It knows
// neither Kafka nor Postgres.
//
// Invariants:
//
//	W1 What is not done is said: an option that is unknown or not supported is an error or a warning in the answer, never silence.
//	W2 Every point of the request has its place in matched_points, with its disposition; no shape leads over a break (M17, M18).
//	W3 Memory is bounded: requests that are let in (Config.Concurrency + Config.Waiting), bytes of each (MaxBody), points of each
//	   (MaxPoints), counted while they are read. Who finds no room gets 429 and is told when to come again.
//	W4 As many traces are matched at once as Config.Concurrency says, whatever the clients do; a trace that takes longer than TimeLimit,
//	   or whose client has gone, is given up.
//	W5 Every error is a JSON object (RFC 9457) with a code of a closed list, and the place in the request where there is one.
//	W6 Without a token only programs of this machine are served, and never a web page of another origin; with one, who sends it.
//	W7 Equal requests over equal worlds give equal bytes.
//
// Goroutines: none of its own; each request is served by the one that net/http gave it.
package matchapi
