package main

import (
	"encoding/json"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// setting is one effective setting as "config --json" prints it.
type setting struct {
	Name   string `json:"name"`
	Value  string `json:"value"`
	Source source `json:"source"`
}

func newConfig(s streams) *cobra.Command {
	var (
		opts   serviceOptions
		asJSON bool
	)
	cmd := &cobra.Command{
		Use:   "config",
		Short: "Print the settings that run would work with, and where each came from",
		Long: `Print every effective setting of "run" with its source: default, file, environment or flag. Secrets are printed as ***.
What run would refuse is refused here too, after the print and with exit code 2; that --dsn or --map is missing is no error here.`,
		Example: `  orchestrator config --config milepost.toml
  MILEPOST_LANES=4 orchestrator config --json`,
		Args: args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			sources, err := settle(cmd.Flags())
			if err != nil {
				return err
			}
			var settings []setting
			cmd.Flags().VisitAll(func(f *pflag.Flag) {
				if f.Name != "help" && f.Name != "json" {
					settings = append(settings, setting{f.Name, f.Value.String(), sources[f.Name]})
				}
			})
			if err := printSettings(s, asJSON, settings); err != nil {
				return err
			}
			return opts.wrong()
		},
	}
	opts.flags(cmd.Flags())
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON array")
	return cmd
}

func printSettings(s streams, asJSON bool, settings []setting) error {
	if asJSON {
		return json.NewEncoder(s.out).Encode(settings)
	}
	w := newTable(s.out)
	for _, x := range settings {
		w.row("%s\t%s\t(%s)", x.Name, x.Value, x.Source)
	}
	return w.flush()
}
