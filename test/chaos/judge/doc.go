// Package judge says whether what a group of workers left behind, running the counter workload while their world broke, keeps the promises.
// It is pure: it judges a History, which somebody read from topics and tables as a stranger would, and shares no code with the worker. What
// it knows of formats is written in docs/formats, in the comments of the tables, in proto/ and in internal/counter's doc.go.
//
// What it looks for, each a Kind of Violation:
//
//	lost          a raw record without an output, a dead letter or a quarantine row
//	twice         an identity that came out again; without transactions: with other bytes
//	order         a key's outputs that are not its raw records in order, or not numbered 1, 2, 3 …
//	content       an output that contradicts its own headers or the raw record
//	foreign       an output of no raw record
//	epoch         an ownership epoch that goes back, of a key or of a ledger partition, or was never issued
//	owner         a transaction of a process that did not own the partition under the epoch that it claims
//	ledger        an output that the ledger does not name, or names twice
//	frontier      a frontier that goes back, passes what is not done, or is not the log's end when all is done
//	prepared      a commit left prepared after the drain
//	quarantine    a record of a quarantined key that the table lacks, doubles or changed
//	dead letter   a poison record whose dead letter is missing or changed, or a dead letter of no poison
//	checkpoint    a row that goes back, or is not what the key's last record made
//	stuck         all is healed and it does not come to an end
//	drain         a worker that does not end in order when all is healed
//	crash         a worker that panicked
package judge
