// Package soak runs workers for half an hour under load with a fault a minute and says whether what they use stays flat (build tag soak;
// make soak MINUTES=30 RATE=500): memory, goroutines and file handles of a worker that lives through it all, connections, dead tuples and sizes
// of the tables, records of the ledger. It writes the samples as CSV and a picture of them, and ends with the stranger's verdict.
package soak
