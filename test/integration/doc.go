// Package integration holds the tests that run the built program against a real
// Kafka broker and a real Postgres (build tag integration).
//
// They run in containers where a Docker daemon answers, else on local
// processes, and their log says which. MILEPOST_STACK=containers|local decides
// instead; MILEPOST_KAFKA_IMAGE and MILEPOST_POSTGRES_IMAGE name the images.
// MILEPOST_TEST_BROKERS with MILEPOST_TEST_DSN use servers that run already;
// tests that break a server are skipped on them.
//
// One stack serves the package; each test has topics and a database of its own.
package integration
