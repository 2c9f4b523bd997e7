package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"milepost/internal/fleet/catalog"
	"milepost/internal/metrics"
	"milepost/internal/roadnet"
	"milepost/internal/telemetry"
)

func newCatalog(s streams) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "catalog",
		Short:   "Check and show a region catalog, have a worker read its own again",
		Example: "  orchestrator catalog check regions.toml",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newCatalogCheck(s), newCatalogShow(s), newCatalogReload(s))
	return cmd
}

// checked is what "catalog check --json" prints.
type checked struct {
	File     string           `json:"file"`
	Version  int64            `json:"version,omitempty"`
	Regions  []checkedRegion  `json:"regions"`
	Problems []checkedProblem `json:"problems"`
}

type checkedRegion struct {
	ID    string `json:"id"`
	Graph string `json:"graph,omitempty"` // the first half of its hash
	Edges int    `json:"edges,omitempty"`
}

type checkedProblem struct {
	Line int    `json:"line,omitempty"`
	Text string `json:"text"`
}

func newCatalogCheck(s streams) *cobra.Command {
	var asJSON, withMaps bool
	cmd := &cobra.Command{
		Use:   "check FILE",
		Short: "Say everything that is wrong with a catalog, by line",
		Long: `Read a region catalog and say everything that is wrong with it, each with its line, and which of its road maps are not there.
With --maps they are imported too. Exit code 0: nothing is wrong, and with --maps a worker would start with it; 1: it would not.`,
		Example: `  orchestrator catalog check regions.toml
  orchestrator catalog check --maps --json regions.toml`,
		Args: args(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, a []string) error {
			out := checked{File: a[0], Regions: []checkedRegion{}, Problems: []checkedProblem{}}
			_, c, err := readCatalog(a[0])
			if err == nil {
				out.Version = c.Version
				err = out.regions(cmd, a[0], c, withMaps)
			}
			out.note(err)
			if asJSON {
				if err := printJSON(s, out); err != nil {
					return err
				}
				if err != nil {
					return &exitError{exitFailed, errors.New("")}
				}
				return nil
			}
			if err != nil {
				return err
			}
			w := newTable(s.out)
			for _, r := range out.Regions {
				if withMaps {
					w.row("%s: %d edges, graph %s", r.ID, r.Edges, r.Graph)
				}
			}
			w.row("version %d, %s: good", out.Version, plural(len(out.Regions), "region"))
			return w.flush()
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	cmd.Flags().BoolVar(&withMaps, "maps", false, "import the road maps too")
	return cmd
}

func (o *checked) regions(cmd *cobra.Command, path string, c *catalog.Catalog, withMaps bool) error {
	var problems []error
	for i := range c.Regions {
		r := checkedRegion{ID: c.Regions[i].ID}
		if !withMaps {
			file := regionMap(path, &c.Regions[i])
			if _, err := os.Stat(file); err != nil {
				problems = append(problems, fmt.Errorf("region %s: no map %s: %w", r.ID, c.Regions[i].Graph, errors.Unwrap(err)))
				continue
			}
		} else {
			g, err := importPart(cmd.Context(), regionMap(path, &c.Regions[i]), c.Regions[i].Box, roadnet.ImportOptions{})
			if err != nil {
				problems = append(problems, fmt.Errorf("region %s: %w", r.ID, err))
				continue
			}
			hash := g.Hash()
			r.Graph, r.Edges = fmt.Sprintf("%x", hash[:8]), g.Edges()
		}
		o.Regions = append(o.Regions, r)
	}
	return errors.Join(problems...)
}

func (o *checked) note(err error) {
	if bad := (*catalog.Error)(nil); errors.As(err, &bad) {
		for _, p := range bad.Problems {
			o.Problems = append(o.Problems, checkedProblem{p.Line, p.Text})
		}
	} else if err != nil {
		for line := range strings.SplitSeq(err.Error(), "\n") {
			o.Problems = append(o.Problems, checkedProblem{Text: line})
		}
	}
}

// shownRegion is a region as "catalog show --json" prints it.
type shownRegion struct {
	ID              string      `json:"id"`
	Graph           string      `json:"graph"`
	Box             *[4]float64 `json:"bbox,omitempty"`
	Coverage        []string    `json:"coverage"`
	Overlap         []string    `json:"overlap"`
	Lanes           int         `json:"lanes,omitempty"`
	ResourceClass   string      `json:"resource_class"`
	MinReplicas     int         `json:"min_replicas"`
	MaxReplicas     int         `json:"max_replicas"`
	FreshnessBudget string      `json:"freshness_budget,omitempty"`
	MaxJobs         int64       `json:"max_jobs,omitempty"`
	MaxBytes        int64       `json:"max_bytes,omitempty"`
}

func newCatalogShow(s streams) *cobra.Command {
	var (
		asJSON bool
		format string
	)
	cmd := &cobra.Command{
		Use:   "show FILE",
		Short: "Show the regions of a catalog",
		Long: `Show the regions of a catalog: as a table, as JSON for what starts and scales matchers, or as GeoJSON, a feature a cell, for any map
viewer.`,
		Example: `  orchestrator catalog show regions.toml
  orchestrator catalog show --format geojson regions.toml > cells.geojson`,
		Args: args(cobra.ExactArgs(1)),
		RunE: func(_ *cobra.Command, a []string) error {
			if asJSON {
				format = "json"
			}
			_, c, err := readCatalog(a[0])
			if err != nil {
				return err
			}
			switch format {
			case "table":
				return showTable(s, c)
			case "json":
				return printJSON(s, struct {
					Version int64         `json:"version"`
					Regions []shownRegion `json:"regions"`
				}{c.Version, shownRegions(c)})
			case "geojson":
				return printJSON(s, cellsGeoJSON(c))
			}
			return usagef("--format is %q, must be table, json or geojson", format)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "the same as --format json")
	cmd.Flags().StringVar(&format, "format", "table", "table, json or geojson")
	return cmd
}

func shownRegions(c *catalog.Catalog) []shownRegion {
	shown := make([]shownRegion, 0, len(c.Regions))
	for _, r := range c.Regions {
		x := shownRegion{
			ID: r.ID, Graph: r.Graph, Coverage: cellNames(r.Coverage), Overlap: cellNames(r.Overlap), Lanes: r.Lanes, ResourceClass: r.ResourceClass,
			MinReplicas: r.MinReplicas, MaxReplicas: r.MaxReplicas, MaxJobs: r.MaxJobs, MaxBytes: r.MaxBytes,
		}
		if r.Box != nil {
			x.Box = &[4]float64{r.Box.West, r.Box.South, r.Box.East, r.Box.North}
		}
		if r.FreshnessBudget > 0 {
			x.FreshnessBudget = r.FreshnessBudget.String()
		}
		shown = append(shown, x)
	}
	return shown
}

func cellNames(cells []catalog.Cell) []string {
	names := make([]string, 0, len(cells))
	for _, c := range cells {
		names = append(names, c.String())
	}
	return names
}

func showTable(s streams, c *catalog.Catalog) error {
	w := newTable(s.out)
	w.row("version %d", c.Version)
	w.row("REGION\tGRAPH\tCOVERAGE\tOVERLAP\tLANES\tCLASS\tREPLICAS\tFRESHNESS")
	for _, r := range shownRegions(c) {
		lanes := "-"
		if r.Lanes > 0 {
			lanes = strconv.Itoa(r.Lanes)
		}
		w.row("%s\t%s\t%s\t%s\t%s\t%s\t%d-%d\t%s", r.ID, r.Graph, strings.Join(r.Coverage, " "), strings.Join(r.Overlap, " "), lanes,
			r.ResourceClass, r.MinReplicas, r.MaxReplicas, cmp.Or(r.FreshnessBudget, "-"))
	}
	return w.flush()
}

type (
	featureCollection struct {
		Type     string    `json:"type"`
		Features []feature `json:"features"`
	}
	feature struct {
		Type       string            `json:"type"`
		Properties map[string]string `json:"properties"`
		Geometry   polygon           `json:"geometry"`
	}
	polygon struct {
		Type        string           `json:"type"`
		Coordinates [1][5][2]float64 `json:"coordinates"`
	}
)

func cellsGeoJSON(c *catalog.Catalog) featureCollection {
	all := featureCollection{Type: "FeatureCollection", Features: []feature{}}
	add := func(region, kind string, cells []catalog.Cell) {
		for _, cell := range cells {
			w, s, e, n := cell.Bounds()
			all.Features = append(all.Features, feature{
				Type: "Feature", Properties: map[string]string{"region": region, "kind": kind, "cell": cell.String()},
				Geometry: polygon{Type: "Polygon", Coordinates: [1][5][2]float64{{{w, s}, {e, s}, {e, n}, {w, n}, {w, s}}}},
			})
		}
	}
	for _, r := range c.Regions {
		add(r.ID, "coverage", r.Coverage)
		add(r.ID, "overlap", r.Overlap)
	}
	return all
}

func newCatalogReload(s streams) *cobra.Command {
	var (
		address   string
		operators telemetry.Operators
		asJSON    bool
	)
	cmd := &cobra.Command{
		Use:   "reload",
		Short: "Have a worker or a matcher read its catalog again",
		Long: `Have a worker or a matcher read its own --catalog file again, as SIGHUP does, and say what came of it. A catalog that is not
good, or whose version is not above the one in force, changes nothing. Each process is asked by itself, the matchers first. One on
another machine wants the token that its --operator-token-file has.

Exit code 0: it is in force, or was already; 1: it was refused.`,
		Example: `  orchestrator catalog reload --address 127.0.0.1:9464
  orchestrator catalog reload --address worker-3:9464 --operator-token-file operator.token`,
		Args: args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx := cmd.Context()
			client := http.Client{Timeout: 10 * time.Minute} // it imports maps
			req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+address+"/catalog/reload", nil)
			if err != nil {
				return usagef("--address: %w", err)
			}
			if operators.TokenFile != "" {
				token, err := telemetry.ReadToken(operators.TokenFile)
				if err != nil {
					return usagef("--operator-token-file: %w", err)
				}
				req.Header.Set("Authorization", "Bearer "+string(token))
			}
			res, err := client.Do(req)
			if err != nil {
				return fmt.Errorf("ask the process: %w", err)
			}
			defer func() { _ = res.Body.Close() }()
			body, err := io.ReadAll(io.LimitReader(res.Body, 1<<20))
			if err != nil {
				return fmt.Errorf("read its answer: %w", err)
			}
			var out reloadOutcome
			if err := json.Unmarshal(body, &out); err != nil {
				return fmt.Errorf("it answers %s: %s", res.Status, strings.TrimSpace(string(body)))
			}
			if asJSON {
				if err := printJSON(s, out); err != nil {
					return err
				}
			} else if out.Error == "" {
				if _, err := fmt.Fprintf(s.out, "%s: version %d, %s\n", out.Outcome, out.Version, plural(out.Regions, "region")); err != nil {
					return err
				}
			}
			if out.Outcome == metrics.ReloadRefused {
				return fmt.Errorf("refused, version %d stays in force:\n%s", out.Version, out.Error)
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&address, "address", "127.0.0.1:9464", "the process's --listen address")
	cmd.Flags().StringVar(&operators.TokenFile, "operator-token-file", "", "`file` with the bearer token that the process asks for")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}
