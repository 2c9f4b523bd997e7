// Command imports measures what it takes to make a graph file of a road map (orchestrator graph build) and writes docs/import-bench.md
// (make bench-import): Delaware, whose map comes with a Go module, every map in the folder "maps" of MILEPOST_DATA, and many Delawares side
// by side, which have the detail of a state and the size of a country.
//
// Each map is built by a process of its own: its processor time and its greatest resident memory are the kernel's figures for that
// process. One processor is allowed to it (GOMAXPROCS=1), so that seconds of a core are seconds on the wall of a quiet machine.
//
// Goroutines: main's alone.
package main
