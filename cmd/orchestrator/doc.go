// Package main wires Milepost: one file a verb, one tree of settings, the constructor graph of a running service.
// No logic lives here that another package could hold.
//
// Invariants:
//
//	V1 Settings come from defaults < TOML file < environment (MILEPOST_ and the flag's name) < flags, and from nowhere else.
//	V2 Standard output holds what the caller asked for; progress, log lines and errors go to standard error.
//	V3 Exit codes: 0 done, 1 failed, 2 wrong usage or settings, 3 done, but rows of the input were refused.
//	V4 A secret is printed by no verb.
//	V5 What a verb starts it stops and waits for, in the reverse order, before it returns.
package main
