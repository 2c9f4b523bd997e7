//go:build linux

// Command chaos is the nemesis: it runs real workers on a real Kafka and a real Postgres, breaks what a seed says, alone and together, heals
// everything, lets the workers come to an end, and judges what they left behind as a stranger would (package judge).
//
//	make chaos SECONDS=60 SEED=7          one run
//	make chaos SECONDS=115 RUNS=20        twenty, each with the next seed
//
// The workers run the counter workload, whose outputs are known beforehand. Each of them reaches each server over a proxy of its own, which can be slow,
// cut, a hole, or lose answers to requests that were served. The brokers' own talk, the writer of the raw topic and the reader of all topics
// go past the proxies.
//
// A seed, a number of seconds and of brokers give one plan: the modes, the faults, their times and targets. When exactly a fault meets what a worker does
// is the machine's choice; so a seed that found something finds it again often, not always.
//
// It needs Linux (a file system to fill, signals at a parent's death), root or a user who may mount for the full disk, and Java for Kafka.
//
// Goroutines: a run has one for the load, the tape, the observer and each fault in progress, and one a process; it ends and awaits them.
package main
