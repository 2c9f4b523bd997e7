package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"milepost/internal/loop"
)

func newCapture(s streams) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "capture",
		Short:   "Work with sessions of AI agents",
		Example: "  orchestrator capture loops sessions.jsonl",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newCaptureLoops(s))
	return cmd
}

// loopsReport is what "capture loops --json" prints.
type loopsReport struct {
	Sessions []loop.Judgement      `json:"sessions"`
	Kinds    map[string]loop.Score `json:"kinds"`
	Score    loop.Score            `json:"score"`
	Refused  []string              `json:"refused"` // lines that are no labelled sessions, and why
}

func newCaptureLoops(s streams) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "loops FILE...",
		Short: "Judge labelled sessions by the loop breaker, and the loop breaker by them",
		Long: `Run the loop breaker over labelled sessions, a JSON object a line:

  {"id": "s1", "kind": "ping-pong", "loop": true, "onset": 4, "period": 2,
   "events": [{"tool": "read_file", "args": {"path": "a.go"}, "result": "package a", "text": "I read it."}, ...]}

onset counts the honest events before the loop; period is of one round of it; tool may be empty, then the event is its text; args and
result are JSON of any kind. For each session the first event that is suspicious and the one that trips are printed, counted from 1,
in a loop from its onset on; then precision, recall and the periods until a trip. A loop that trips before its onset counts as a false
alarm and as missed. FILE - is standard input.

Exit code 0: all sessions were judged, however well; 1: a file could not be read; 3: some lines are no labelled sessions.`,
		Example: `  orchestrator capture loops internal/loop/testdata/test.jsonl
  orchestrator capture loops --json sessions.jsonl | jq .score`,
		Args: args(cobra.MinimumNArgs(1)),
		RunE: func(_ *cobra.Command, files []string) error {
			report := loopsReport{Sessions: []loop.Judgement{}, Kinds: map[string]loop.Score{}, Refused: []string{}}
			for _, f := range files {
				if err := report.read(s, f); err != nil {
					return err
				}
			}
			var err error
			if asJSON {
				err = printJSON(s, report)
			} else {
				err = report.print(s)
			}
			if err == nil && len(report.Refused) > 0 {
				err = &exitError{exitRefused, fmt.Errorf("%s refused", plural(len(report.Refused), "line"))}
			}
			return err
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}

func (r *loopsReport) read(s streams, file string) error {
	in := s.in
	if file != "-" {
		f, err := os.Open(file)
		if err != nil {
			return fmt.Errorf("open labelled sessions: %w", err)
		}
		defer f.Close() //nolint:errcheck // read only
		in = f
	}
	for session, err := range loop.ReadSessions(in) {
		switch {
		case errors.Is(err, loop.ErrRead):
			return fmt.Errorf("%s: %w", file, err)
		case err != nil:
			r.Refused = append(r.Refused, fmt.Sprintf("%s: %v", file, err))
			continue
		}
		j := loop.Judge(&session)
		r.Sessions = append(r.Sessions, j)
		r.Score.Add(&j)
		kind := r.Kinds[j.Kind]
		kind.Add(&j)
		r.Kinds[j.Kind] = kind
	}
	return nil
}

func (r *loopsReport) print(s streams) error {
	t := newTable(s.out)
	t.row("SESSION\tKIND\tLABEL\tSUSPICIOUS\tTRIPPED\tPERIODS\tVERDICT")
	for _, j := range r.Sessions {
		label, verdict, periods := "work", "right", ""
		if j.Loop {
			label = "loop"
		}
		switch {
		case j.Early:
			verdict = "tripped before the loop"
		case j.Loop && j.Tripped == 0:
			verdict = "missed"
		case !j.Loop && j.Tripped > 0:
			verdict = "false alarm"
		case j.Loop:
			periods = fmt.Sprintf("%.1f", j.Periods)
		}
		t.row("%s\t%s\t%s\t%s\t%s\t%s\t%s", j.ID, j.Kind, label, eventOf(j.Suspicious), eventOf(j.Tripped), periods, verdict)
	}
	if err := t.flush(); err != nil {
		return err
	}
	for _, line := range r.Refused {
		fmt.Fprintln(s.err, "orchestrator: refused:", line)
	}
	c := r.Score
	fmt.Fprintf(s.out, "\n%s, %s of work: %d caught, %d false alarms\nprecision %.3f, recall %.3f, periods to trip: mean %.1f, most %.1f\n",
		plural(c.Loops, "loop"), plural(c.Honest, "session"), c.Caught, c.FalseTrips, c.Precision, c.Recall, c.MeanPeriods, c.MaxPeriods)
	return nil
}

func eventOf(n int) string {
	if n == 0 {
		return "-"
	}
	return fmt.Sprint(n)
}
