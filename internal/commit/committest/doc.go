// Package committest holds what every implementation of the commit contracts must do: a conformance suite for stores
// (Run) and one for publishers (RunPublisher), and an in-memory store, publisher and ledger that pass it, for tests of what stands above them.
//
// Invariants:
//
//	T1 The memory store and Postgres give the same verdict to the same history: both pass Run. The memory broker and Kafka's producers
//	   of both modes pass RunPublisher.
//	T2 The memory parts can be told to fail (Fault), and then behave as the contract says of a lost answer: the work may
//	   or may not have been done.
package committest
