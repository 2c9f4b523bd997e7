package main

import (
	"encoding/json"
	"fmt"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// version is set by release builds (-ldflags "-X main.version=v1.2.3").
var version = "development"

// versionFacts is what "version --json" prints.
type versionFacts struct {
	Version  string `json:"version"`
	Go       string `json:"go"`
	Revision string `json:"revision,omitempty"`
	Modified bool   `json:"modified,omitempty"`
}

func newVersion(io streams) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "version",
		Short:   "Print the version of this binary",
		Example: "  orchestrator version --json",
		Args:    args(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			facts := versionFacts{Version: version}
			if info, ok := debug.ReadBuildInfo(); ok {
				facts.Go = info.GoVersion
				for _, s := range info.Settings {
					switch s.Key {
					case "vcs.revision":
						facts.Revision = s.Value
					case "vcs.modified":
						facts.Modified = s.Value == "true"
					}
				}
			}
			if asJSON {
				return json.NewEncoder(io.out).Encode(facts)
			}
			_, err := fmt.Fprintf(io.out, "orchestrator %s (%s)\n", facts.Version, facts.Go)
			return err
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}
