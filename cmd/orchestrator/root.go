package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"

	"github.com/spf13/cobra"
)

// Exit codes (V3).
const (
	exitDone    = 0
	exitFailed  = 1
	exitUsage   = 2
	exitRefused = 3
)

// exitError is an error that asks for an exit code of its own.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string { return e.err.Error() }
func (e *exitError) Unwrap() error { return e.err }

// usage marks an error as wrong usage.
func usage(err error) error {
	if err == nil {
		return nil
	}
	return &exitError{exitUsage, err}
}

func usagef(format string, args ...any) error { return usage(fmt.Errorf(format, args...)) }

// streams are the standard streams that a verb works with.
type streams struct {
	in       io.Reader
	out, err io.Writer
}

// execute runs one command line and gives its exit code.
func execute(ctx context.Context, args []string, in io.Reader, out, stderr io.Writer) int {
	printed := &remembering{to: out}
	root := newRoot(streams{in: in, out: printed, err: stderr})
	root.SetArgs(args)
	root.SetIn(in)
	root.SetOut(printed)
	root.SetErr(stderr)
	err := root.ExecuteContext(ctx)
	if err == nil && printed.err != nil {
		err = fmt.Errorf("write to standard output: %w", printed.err)
	}
	if err == nil {
		return exitDone
	}
	code := exitFailed
	var exit *exitError
	switch {
	case errors.As(err, &exit):
		code = exit.code
	// cobra has no type for these two of its own complaints.
	case strings.HasPrefix(err.Error(), "unknown command"), strings.HasPrefix(err.Error(), "required flag"):
		code = exitUsage
	}
	if msg := err.Error(); msg != "" {
		fmt.Fprintln(stderr, "orchestrator:", msg)
	}
	return code
}

// remembering is a writer that remembers its first error, so that no verb need look at each line that it prints: a result that
// could not be written is a failure (V3).
type remembering struct {
	to  io.Writer
	err error
}

func (r *remembering) Write(p []byte) (int, error) {
	n, err := r.to.Write(p)
	if r.err == nil {
		r.err = err
	}
	return n, err
}

func newRoot(io streams) *cobra.Command {
	root := &cobra.Command{
		Use:   "orchestrator",
		Short: "Keeps state per key over Kafka and commits each decision exactly once",
		Long: `Milepost keeps state per key over Kafka, lets a solver decide what each record means, and commits each decision
exactly once: outputs to Kafka, state to Postgres.

Settings come from defaults, then a TOML file (--config), then the environment (MILEPOST_ and the flag's name in
capitals, as in MILEPOST_SESSION_TIMEOUT), then flags; "orchestrator config" prints what came out and from where.

Exit codes: 0 done, 1 failed, 2 wrong usage or settings, 3 done, but rows of the input were refused.`,
		Example: devExample + `  orchestrator match --map delaware.osm.pbf trip.gpx match a trace without a broker
  orchestrator run --brokers kafka:9092 --dsn postgres://milepost@db/milepost --map delaware.osm.pbf`,
		Version:       version,
		SilenceErrors: true,
		SilenceUsage:  true,
		PersistentPreRun: func(*cobra.Command, []string) {
			if strange := strangers(os.Environ()); len(strange) > 0 {
				fmt.Fprintf(io.err, "orchestrator: in the environment, not a setting: %s\n", strings.Join(strange, ", "))
			}
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return usagef("%w (see: %s --help)", err, cmd.CommandPath())
	})
	root.AddCommand(
		newMatcher(io),
		newGraph(io),
		newRun(io), devOf(io), newMatch(io), newReplay(io), newMigrate(io), newCatalog(io), newConfig(io), newVersion(io), newHealth(io),
		newStatus(io), newPartition(io), newQuarantine(io), newDoctor(io), newCapture(io),
	)
	root.SetVersionTemplate("orchestrator {{.Version}} (" + runtime.Version() + ")\n")
	root.Args = knownVerb
	for _, c := range root.Commands() {
		if c.HasSubCommands() {
			c.Args = knownVerb
		}
	}
	narrowHelp(root)
	return root
}

// knownVerb refuses what is no verb below cmd, and says which it could be.
func knownVerb(cmd *cobra.Command, a []string) error {
	if len(a) == 0 {
		return nil
	}
	if cmd.SuggestionsMinimumDistance <= 0 {
		cmd.SuggestionsMinimumDistance = 2
	}
	guess := ""
	if near := cmd.SuggestionsFor(a[0]); len(near) > 0 {
		guess = "did you mean " + strings.Join(near, " or ") + "? "
	}
	return usagef("unknown command %q for %q (%ssee: %s --help)", a[0], cmd.CommandPath(), guess, cmd.CommandPath())
}

// args makes cobra's argument checks wrong usage.
func args(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, a []string) error {
		if err := check(cmd, a); err != nil {
			return usagef("%w (see: %s --help)", err, cmd.CommandPath())
		}
		return nil
	}
}
