// Package metrics is what a worker counts and measures, as Prometheus metrics.
//
// It is not the HTTP surface (internal/telemetry) and not the counting itself: the machines count (partition.Stats and
// partition.Reasons), the store and the publisher are timed from outside by wrappers, and everything that can be read is
// read when somebody scrapes. So nothing here can disagree with what the partitions say of themselves, and a partition that
// is gone takes its series with it.
//
// Invariants:
//
//	Q1 No label is unbounded. A reason is of a closed list or counts as unlisted or internal; a partition's number is one that
//	   the process has now; a stage, a state, a kind of turn and an outcome are words of this package or of its neighbours.
//	   No key, no topic, no error text.
//	Q2 Gauges of many partitions are sums at the scrape, never set by one partition after the other.
//	Q3 Counters never go back while the process lives: what an ended tenure counted is kept, and what is being handed
//	   over between a tenure and its end is not counted twice.
//	Q4 Series of a partition that this process does not have any more are gone at the next scrape.
//	Q5 A duration that clocks make negative is not recorded.
//	Q6 Every series whose labels are known beforehand is there from the first scrape, at zero.
//
// Goroutines: none. Observers and wrappers are called on their callers' goroutines, Collect on the scraper's.
package metrics
