// Package takeover measures how long a killed owner's partitions stand still (build tag takeover; make takeover), with few keys in Postgres and
// with a million: from the moment when the group gives its partitions to the next process to the first output that a read_committed reader sees.
package takeover
