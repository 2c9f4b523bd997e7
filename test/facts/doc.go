// Package facts pins what the commit protocol takes for granted about Kafka and its client, on a real broker, so that an upgrade which changes
// one fails here and not in somebody's data. What concerns transactions' offsets and member epochs is pinned beside the code that relies on
// it, in internal/publish (TestFact…).
//
// MILEPOST_TEST_BROKERS names the broker (make test starts one); the tests that kill or stop one start their own.
package facts
