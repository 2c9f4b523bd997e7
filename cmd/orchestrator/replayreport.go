package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/term"

	"milepost/internal/fleet/ingest"
)

// replayFacts is what "replay --json" prints.
type replayFacts struct {
	Sent      int64   `json:"sent"`
	Refused   int64   `json:"refused"`
	Passes    int64   `json:"passes"`
	Seconds   float64 `json:"seconds"`
	PerSecond float64 `json:"records_per_second"`
}

func reportReplay(s streams, o replayOptions, p ingest.Progress, acked int64, took time.Duration, bad *refusals) error {
	facts := replayFacts{Sent: acked, Refused: p.Refused, Passes: p.Passes, Seconds: took.Seconds(), PerSecond: float64(acked) / took.Seconds()}
	var err error
	if o.asJSON {
		err = json.NewEncoder(s.out).Encode(facts)
	} else {
		_, err = fmt.Fprintf(s.out, "%d records into %s in %.1f s (%.0f a second), %d rows refused\n",
			facts.Sent, o.raw, facts.Seconds, facts.PerSecond, facts.Refused)
	}
	if err != nil {
		return err
	}
	if p.Sent > 0 && acked == 0 {
		return fmt.Errorf("none of %d records was acknowledged by the brokers (%s)", p.Sent, strings.Join(o.kafka.brokers, ","))
	}
	return bad.verdict(acked)
}

// onTerminal reports whether a stream is a terminal.
func onTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}
