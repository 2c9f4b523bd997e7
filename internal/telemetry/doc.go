// Package telemetry is what an operator sees of a process: the logger, and the HTTP surface with /livez, /readyz and
// /metrics. It knows nothing about records.
//
// Invariants:
//
//	E1 Logs go to standard error; standard output belongs to what a command prints for its caller.
//	E2 Secrets and payloads never reach a log line; what may be a secret has the type Secret, which prints as ***.
//	E3 Metrics are registered with a registry that is handed in, never with a global one.
//	E4 The HTTP surface binds to loopback unless told otherwise; a taken port is an error at start, not later.
//	E5 /readyz says which part is not ready and why.
//	E6 What changes a process is for operators alone: programs of this machine, or who has the token; never a web page.
//	E7 A duration in a JSON log line is a string with its unit, as "1.5s".
//
// Goroutines: Server.Run owns the one that serves, and returns when it has ended.
package telemetry
