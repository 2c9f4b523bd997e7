// Package solve lets jobs be decided by other processes, over Kafka topics that carry no promise: requests on one topic a region,
// replies on one topic whose partitions are those of the raw topic. Remote is the worker's side, Matcher the replica's. It
// knows neither what a request means nor what an answer says, and nothing depends on a record of these topics: a lost one is a
// time-out, and the machine sends the same bytes again.
//
//	machine ─Dispatch─▶ Desk ─▶ PREFIX.solve.REGION ─▶ Matcher ─▶ Pool
//	machine ◀─Result── Remote ◀─── PREFIX.solve-replies ◀─────────┘
//
// A request goes to the partition of its key, so that one replica keeps a vehicle's trip. After a time-out it goes to a partition of
// another replica; which replica reads which partition is learnt from the replies. A replica that left a job unanswered, and
// everything else since, gets no first attempts for a while: what hangs costs a key one retry time and not one an observation.
//
// Invariants:
//
//	S1 Nothing that comes over these topics stops anything: what cannot be read, is not signed as it should be, or is for nobody is
//	   counted and dropped (F15).
//	S2 Submit and the delivery of a reply never block.
//	S3 A reply reaches the machine of the partition that it came by and names, or none.
//	S4 A request without the trip is answered by the replica that it names; any other says that it does not hold the trip.
//	S5 A matcher takes no request that it has no room for: what it has polled and not answered is bounded.
//	S6 A partition's first request goes out after its replies are read, from where they ended then.
//	S7 What a stopped matcher has begun it answers, within its grace.
//
// Goroutines: Remote.Run owns the reader of the replies; each Desk one that finds where the replies end, which Remote.Run waits
// for. Matcher.Run owns the reader of the requests; answers are produced on the pool's goroutines.
package solve
