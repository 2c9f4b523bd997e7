// Package loop tells an agent that goes round in circles from one that works through something repetitive.
//
// A Detector is given a session's events in order: a tool call with its arguments and result, or a text. It reduces each to what it
// says beyond noise (nonces, times, attempt counters and filler are masked), and asks of the last events whether they repeat the ones a
// period before, for each period up to 12, without having learnt anything: a result not seen before, a number that moves steadily, a
// record acknowledged. What repeats and learns is work (paging, polling, rows of a batch, tests run again); what repeats and learns
// nothing is a loop.
//
// Verdicts: Progressing; Suspicious, when one period was repeated for nothing; Tripped, when two were, which is at the end of the third period.
// A repetition that has a reason to be patient (a job that is pending, a wait between tries, a counter that moves) is given more.
//
// Invariants:
//
//	L1 Verdicts depend on the events alone: no clock, no randomness, no order of maps.
//	L2 An event is compared with earlier ones only, and recorded after its verdict (B4).
//	L3 What a Detector keeps is bounded, however long the session and however large its events.
//	L4 No argument or result fails anything: what is not JSON is text, a number of any size is its digits (C2).
//	L5 Tripped stays until Reset.
//
// The corpus in testdata is labelled and in two parts: rules and limits were chosen on tuning.jsonl, and test.jsonl, whose tools, words and
// shapes are others, was only measured. Score counts precision, recall and the periods until a trip.
//
// No goroutines, no input or output.
package loop
