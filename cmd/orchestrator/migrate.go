package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"milepost/internal/pgstore"
	"milepost/internal/telemetry"
)

// migrationFacts is one migration as "migrate --json" prints it.
type migrationFacts struct {
	Version   int64      `json:"version"`
	Name      string     `json:"name"`
	Applied   bool       `json:"applied"`
	AppliedAt *time.Time `json:"applied_at,omitempty"`
	TookMS    int64      `json:"took_ms,omitempty"`
}

func newMigrate(io streams) *cobra.Command {
	var (
		dsn    telemetry.Secret
		asJSON bool
	)
	cmd := &cobra.Command{
		Use:   "migrate up|down|status",
		Short: "Make, take back or list the database's tables",
		Long: `up applies every pending migration, down takes the newest applied one back, status lists all. Several processes may
migrate at once: they take turns. The files under migrations/ also run with the stock goose command.`,
		Example: `  orchestrator migrate up --dsn postgres://milepost@db/milepost
  MILEPOST_DSN=… orchestrator migrate status --json`,
		ValidArgs: []string{"up", "down", "status"},
		Args:      args(cobra.MatchAll(cobra.ExactArgs(1), cobra.OnlyValidArgs)),
		RunE: func(cmd *cobra.Command, a []string) error {
			if _, err := settle(cmd.Flags()); err != nil {
				return err
			}
			if dsn == "" {
				return usage(errors.New("--dsn must be set (or MILEPOST_DSN)"))
			}
			done, err := pgstore.Migrate(cmd.Context(), string(dsn), pgstore.MigrateCommand(a[0]))
			if err != nil {
				return err
			}
			return printMigrations(io, a[0], done, asJSON)
		},
	}
	cmd.Flags().String("config", "", "TOML `file` with settings, named as the flags")
	cmd.Flags().Var(secretFlag{&dsn}, "dsn", "Postgres connection URL; may hold a password, so better in MILEPOST_DSN")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON array")
	return cmd
}

func printMigrations(io streams, command string, done []pgstore.Migration, asJSON bool) error {
	facts := make([]migrationFacts, 0, len(done))
	for _, m := range done {
		f := migrationFacts{Version: m.Version, Name: m.Name, Applied: m.Applied, TookMS: m.Took.Milliseconds()}
		if !m.AppliedAt.IsZero() {
			f.AppliedAt = &m.AppliedAt
		}
		facts = append(facts, f)
	}
	if asJSON {
		return json.NewEncoder(io.out).Encode(facts)
	}
	if len(facts) == 0 {
		_, err := fmt.Fprintf(io.out, "migrate %s: nothing to do\n", command)
		return err
	}
	w := tabwriter.NewWriter(io.out, 0, 4, 2, ' ', 0)
	for _, f := range facts {
		state := "pending"
		if f.Applied {
			state = "applied"
		}
		if command == string(pgstore.MigrateDown) {
			state = "taken back"
		}
		fmt.Fprintf(w, "%05d\t%s\t%s\n", f.Version, state, f.Name)
	}
	return w.Flush()
}
