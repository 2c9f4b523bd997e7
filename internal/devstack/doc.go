// Package devstack starts the parts that Milepost runs beside, on this
// machine: a Kafka broker in process (kfake), a real Kafka broker, a Postgres
// server, and it finds a road map to drive on. The dev verb, the demo, tests
// and benchmarks use it.
//
// It is not a supervisor for production and not a package manager. What it
// fetches (Kafka's jars, Postgres' programs where none is installed, the road
// map) comes by the ordinary clients, says so in one log line, and is kept in
// one cache folder, so that the next start needs no network.
//
// Invariants:
//
//  1. Every child process dies with this process, also when this process is
//     killed with -9 (Linux: parent-death signal, from a thread that lives as
//     long as the child).
//  2. Every child process is waited for: Stop returns when it is gone, and no
//     goroutine of this package outlives its child.
//  3. Servers listen on loopback, on a port that was free a moment ago, and
//     Postgres wants a password that was drawn at random for this start.
//  4. Postgres never runs as root: started by root it runs under another user,
//     which owns the data folder.
//  5. Postgres is as durable as the default configuration makes it unless the
//     caller asks for Unsafe.
//  6. The cache is shared by processes: an entry is built beside its place
//     under a file lock and appears there whole, by one rename.
//  7. With build tag nodev neither kfake nor the embedded Postgres is linked;
//     their starters answer ErrLeftOut.
//
// Goroutines: each child process has one, started by startProcess, which ends
// when the child has ended. Nobody else is started here; kfake has its own,
// which Broker.Stop ends.
package devstack
