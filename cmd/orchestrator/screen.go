package main

import (
	"fmt"
	"io"
	"time"
)

// screen shows live figures on standard error: one line that is rewritten on a terminal, a line every five seconds elsewhere.
type screen struct {
	out      io.Writer
	terminal bool
	every    time.Duration
	next     time.Duration
	last     int64
	lastAt   time.Duration
}

func newScreen(io streams, _ devOptions) *screen {
	s := &screen{out: io.err, every: 5 * time.Second}
	if onTerminal(io.err) {
		s.terminal, s.every = true, time.Second
	}
	s.next = s.every
	return s
}

// warmUp is how long routes are too short to be judged: the first and last stretch of each does not count, and at first there is
// hardly another.
const warmUp = 15 * time.Second

func (s *screen) mismatch(j *devJob, since time.Duration) string {
	if since < warmUp {
		return "(later)"
	}
	return fmt.Sprintf("%.1f %%", 100*j.routes.mismatch(j.graph, j.fleet))
}

// show prints the figures when they are due.
func (s *screen) show(j *devJob, since time.Duration) {
	if since < s.next {
		return
	}
	s.next = since + s.every
	r := j.auditor.Report()
	rate := float64(r.Outputs-s.last) / (since - s.lastAt).Seconds()
	s.last, s.lastAt = r.Outputs, since
	begin, end := "", "\n"
	if s.terminal {
		begin, end = "\r\033[K", ""
	}
	fmt.Fprintf(s.out, "%s%4.0f s  %6.0f observations/s  p50 %4.0f ms  p99 %4.0f ms so far  frontier lag %d  repeated %d  route mismatch %s%s",
		begin, since.Seconds(), rate, milliseconds(r.P50), milliseconds(r.P99), j.frontierLag(r.Observations), r.Repeated,
		s.mismatch(j, since), end)
}
