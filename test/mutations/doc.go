// Package mutations shows that the simulator, the scripts and the protocol's tests can fail: each of a list of seeded faults is put
// into a copy of one source file (go test -overlay; the tree is not touched), and the tests of its package must catch it.
//
// `make mutations` runs them all, `go test` every eighth, `go test -short` none.
package mutations
