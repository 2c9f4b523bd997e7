// Package stand is a test stand for the built program: a real Kafka broker and a real Postgres as local processes (Stand), workers as
// processes of their own (Process), a job with topics and a database of its own (Job), a load whose outputs are known before it runs (Load),
// and a stranger's verdict over what came out (Verdict), which uses no code of the program.
//
// The workload is the program's counter: the n-th record of a key must come out as the key's output n, naming the record's place.
//
// Goroutines: one a process, which ends with it; Load.Run is the caller's. Everything ends with the test.
package stand
