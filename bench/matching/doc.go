// Command matching runs this project's matcher and others on the same traces over the same maps in one run, scores all with the same scorer,
// and writes the table and plots of docs/matching-bench.md (make bench-matching; see README.md beside this file).
//
// Every engine is a process of its own with one thread that matches: ours (this program, started again as "matching serve"), Valhalla and OSRM
// (HTTP), GraphHopper (lines). At each step between observations they take turns over all drives in the order A B C … C B A, so
// that other load on the machine meets all alike, and what is reported is the median of the rounds. Points a second are by the processor time of the engine's process, from
// the request's text to the answer's.
//
// Peers see a whole drive at once. Ours sees one observation at a time and has its state encoded and decoded between any two; how long it
// waits before an answer is final, and how often a first answer is revised, is reported beside.
//
// What is judged is the drawn line of the answer alone (matchtest.Drawn).
//
// Goroutines: main's, and one a process that is waited for.
package main
