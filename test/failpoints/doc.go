// Package failpoints breaks the program at each arrow of the commit protocol (build tag failpoint; make failpoints).
//
// The program is built with the same tag, which adds one file to cmd/orchestrator: it stands between the program and its stores and, at one
// chosen point, loses an answer, is late with it, stops the process or kills it. A cell of the matrix is a point, a fault and who goes on:
// the same owner, or another process that takes the partitions over. Each cell has topics and a database of its own, on one real Kafka broker
// and one real Postgres, and ends with a stranger's verdict: nothing lost, nothing twice, each key in order, nothing left prepared.
package failpoints
