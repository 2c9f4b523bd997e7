package main

import (
	"encoding/json"
	"fmt"
	"text/tabwriter"

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
		Long:  `Print every effective setting of "run" with its source: default, file, environment or flag. Secrets are printed as ***.`,
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
			if asJSON {
				return json.NewEncoder(s.out).Encode(settings)
			}
			w := tabwriter.NewWriter(s.out, 0, 4, 2, ' ', 0)
			for _, x := range settings {
				fmt.Fprintf(w, "%s\t%s\t(%s)\n", x.Name, x.Value, x.Source)
			}
			return w.Flush()
		},
	}
	opts.flags(cmd.Flags())
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON array")
	return cmd
}
