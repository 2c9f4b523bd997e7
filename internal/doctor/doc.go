// Package doctor holds the words of an examination: what was looked at, what was found, whether that is good enough, and what a
// person does about it. Those who know a system examine it (pgstore, publish); the command line prints.
//
// Invariants:
//
//	D1 A finding that is not OK names its remedy: a setting, a command, or who has to decide.
//	D2 Fail means that Milepost cannot work or could break a promise; Warn, that it works and something will hurt one day.
//	D3 What could not be asked is never OK.
//
// It starts no goroutine and does no I/O.
package doctor
