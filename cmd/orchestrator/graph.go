package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/schollz/progressbar/v3"
	"github.com/spf13/cobra"

	"milepost/internal/roadnet"
)

func newGraph(io streams) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "graph",
		Short: "Build graph files of road maps, describe and check them",
		Long: `A graph file holds what a worker makes of an OSM extract. It is mapped into memory as it is: a worker starts at once,
and workers of one machine share the memory. --map of the other verbs takes it in place of the extract.`,
		Example: `  orchestrator graph build delaware.osm.pbf -o delaware.graph
  orchestrator run --map delaware.graph …`,
		Args: args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newGraphBuild(io), newGraphInfo(io), newGraphCheck(io))
	return cmd
}

// buildOptions say what to make of a map.
type buildOptions struct {
	out        string
	vehicles   []string
	profiles   string
	box        string
	contraflow bool
	asJSON     bool
}

func newGraphBuild(io streams) *cobra.Command {
	var o buildOptions
	cmd := &cobra.Command{
		Use:   "build MAP -o FILE",
		Short: "Import an OSM extract and write it as a graph file",
		Long: `Import an OSM extract (.osm.pbf, .osm, .osm.gz, .osm.bz2) and write it as a graph file. The same extract and the same
profiles make the same bytes. The file is put in place when it is whole: workers that use an older one are not disturbed.

Profiles (a TOML file) say what tags mean to a class of vehicles; "orchestrator graph build --print-profiles" prints the
default ones. A graph is for cars unless --vehicles says otherwise; one for several classes is larger.`,
		Example: `  orchestrator graph build delaware.osm.pbf -o delaware.graph
  orchestrator graph build city.osm.pbf -o city.graph --vehicles car,bus,bicycle
  orchestrator graph build country.osm.pbf -o town.graph --box 9.0,48.6,9.4,48.9
  orchestrator graph build --print-profiles > profiles.toml`,
		Args: args(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, files []string) error {
			if printing, _ := cmd.Flags().GetBool("print-profiles"); printing {
				_, err := io.out.Write(roadnet.DefaultProfilesTOML())
				return err
			}
			if len(files) == 0 || o.out == "" {
				return usagef("a map and --output are needed (see: %s --help)", cmd.CommandPath())
			}
			return o.run(cmd.Context(), io, files[0])
		},
	}
	fs := cmd.Flags()
	fs.StringVarP(&o.out, "output", "o", "", "graph `file` to write")
	fs.StringSliceVar(&o.vehicles, "vehicles", []string{"car"}, "classes of vehicles: car, truck, bus, bicycle, foot, or all")
	fs.StringVar(&o.profiles, "profiles", "", "TOML `file` that says what tags mean to each class; empty: the default")
	fs.StringVar(&o.box, "box", "", "import only ways that may touch this box: `W,S,E,N`, its edges in degrees")
	fs.BoolVar(&o.contraflow, "contraflow", true, "edges against one-way streets, too, for matching vehicles that go the wrong way")
	fs.BoolVar(&o.asJSON, "json", false, "print one JSON object")
	fs.Bool("print-profiles", false, "print the default profiles and exit")
	return cmd
}

func (o *buildOptions) importOptions() (opt roadnet.ImportOptions, err error) {
	opt.Contraflow = o.contraflow
	if opt.Profiles, err = readProfiles(o.profiles); err != nil {
		return opt, err
	}
	for _, name := range o.vehicles {
		v, ok := roadnet.ParseVehicle(name)
		switch {
		case name == "all":
			opt.Vehicles = roadnet.AllVehicles()
		case !ok:
			return opt, usagef("--vehicles: %q is none of %s, all", name, strings.ReplaceAll(roadnet.AllVehicles().String(), ",", ", "))
		default:
			opt.Vehicles |= roadnet.SetOf(v)
		}
	}
	if o.box != "" {
		if opt.Box, err = parseBox(o.box); err != nil {
			return opt, usagef("--box: %w", err)
		}
	}
	return opt, nil
}

// readProfiles reads a file of profiles; the default ones for no name.
func readProfiles(name string) (*roadnet.Profiles, error) {
	if name == "" {
		return nil, nil //nolint:nilnil // nil profiles are the default ones
	}
	data, err := readSmall(name, maxConfigFile)
	if err != nil {
		return nil, fmt.Errorf("--profiles: %w", err)
	}
	p, err := roadnet.ParseProfiles(name, data)
	if err != nil {
		return nil, usagef("--profiles:\n%w", err)
	}
	return p, nil
}

func parseBox(s string) (*roadnet.Box, error) {
	parts := strings.Split(s, ",")
	if len(parts) != 4 {
		return nil, fmt.Errorf("%q is not of the form W,S,E,N", s)
	}
	var v [4]float64
	for i, p := range parts {
		n, err := strconv.ParseFloat(strings.TrimSpace(p), 64)
		limit := [2]float64{180, 90}[i%2]
		if err != nil || !(n >= -limit && n <= limit) {
			return nil, fmt.Errorf("%q is no number of degrees from -%v to %v", p, limit, limit)
		}
		v[i] = n
	}
	if v[1] > v[3] {
		return nil, fmt.Errorf("%q has its south north of its north", s)
	}
	return &roadnet.Box{West: v[0], South: v[1], East: v[2], North: v[3]}, nil
}

func (o *buildOptions) run(ctx context.Context, io streams, path string) error {
	opt, err := o.importOptions()
	if err != nil {
		return err
	}
	began := time.Now()
	var done func()
	opt.Progress, done = showImport(io)
	graph, err := importMap(ctx, path, opt)
	done()
	if err != nil {
		return err
	}
	size, err := writeWhole(o.out, graph.WriteTo)
	if err != nil {
		return err
	}
	took := time.Since(began).Round(time.Millisecond)
	d := describe(graph)
	d.File, d.Bytes, d.Seconds = filepath.Base(o.out), size, took.Seconds()
	if o.asJSON {
		return json.NewEncoder(io.out).Encode(d)
	}
	_, err = fmt.Fprintf(io.out, "%s: %d edges, %d nodes, %d restrictions, %.1f MB, graph %s, in %s\n",
		d.File, d.Edges, d.Nodes, d.Stats.Restrictions, float64(size)/1e6, d.Graph[:16], took)
	return err
}

// showImport shows a bar on a terminal until done is called.
func showImport(s streams) (progress func(roadnet.Progress), done func()) {
	bar := progressbar.NewOptions64(1,
		progressbar.OptionSetWriter(s.err), progressbar.OptionSetDescription("roads"), progressbar.OptionShowBytes(true),
		progressbar.OptionSetPredictTime(true), progressbar.OptionThrottle(100*time.Millisecond), progressbar.OptionSetVisibility(onTerminal(s.err)))
	progress = func(p roadnet.Progress) {
		bar.ChangeMax64(2*p.TotalBytes + 1)
		if p.Pass == 2 {
			bar.Describe("nodes")
			p.ReadBytes += p.TotalBytes
		}
		_ = bar.Set64(p.ReadBytes) // a bar that cannot be drawn stops nothing
	}
	return progress, func() {
		_ = bar.Exit()
		if onTerminal(s.err) {
			_, _ = fmt.Fprintln(s.err)
		}
	}
}

// writeWhole puts a file in place when all of it is on the disk.
func writeWhole(path string, write func(io.Writer) (int64, error)) (size int64, err error) {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return 0, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(f.Name()))
		}
	}()
	size, err = write(f)
	if err == nil {
		err = f.Chmod(0o644)
	}
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return 0, err
	}
	return size, os.Rename(f.Name(), path)
}

// description is what "graph info" says of a graph.
type description struct {
	File       string              `json:"file"`
	Bytes      int64               `json:"bytes,omitempty"`
	Graph      string              `json:"graph"` // hash, hexadecimal
	Vehicles   string              `json:"vehicles"`
	Contraflow bool                `json:"contraflow"`
	Edges      int                 `json:"edges"`
	Nodes      int                 `json:"nodes"`
	Bounds     [4]float64          `json:"bounds"` // west, south, east, north
	Largest    map[string]float64  `json:"largest_component"`
	Stats      roadnet.ImportStats `json:"stats"`
	Seconds    float64             `json:"seconds,omitempty"`
}

func describe(g *roadnet.Graph) description {
	hash := g.Hash()
	southWest, northEast := g.Bounds()
	d := description{
		Graph: fmt.Sprintf("%x", hash), Vehicles: g.Vehicles().String(), Contraflow: g.Contraflow(), Edges: g.Edges(), Nodes: g.Nodes(),
		Bounds: [4]float64{southWest.Lon, southWest.Lat, northEast.Lon, northEast.Lat}, Stats: g.Stats(), Largest: map[string]float64{},
	}
	for name := range strings.SplitSeq(d.Vehicles, ",") {
		v, _ := roadnet.ParseVehicle(name)
		all, largest := 0, 0
		for e := range roadnet.EdgeIndex(g.Edges()) {
			c := g.StrongComponent(e, v)
			if c >= 0 {
				all++
			}
			if c == 0 {
				largest++
			}
		}
		d.Largest[name] = float64(largest) / float64(max(all, 1))
	}
	return d
}

func newGraphInfo(io streams) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "info FILE",
		Short: "Describe a graph file, or what an OSM extract would make",
		Long: `Print what a graph holds: its hash, vehicles, numbers of edges and nodes, bounds (west, south, east, north), the share of
each vehicle's edges that legal paths join into one piece, and what the import took and left.`,
		Example: `  orchestrator graph info delaware.graph
  orchestrator graph info delaware.osm.pbf --json`,
		Args: args(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, files []string) error {
			graph, err := openMap(cmd.Context(), files[0], roadnet.ImportOptions{})
			if err != nil {
				return err
			}
			d := describe(graph)
			d.File = filepath.Base(files[0])
			if asJSON {
				return json.NewEncoder(io.out).Encode(d)
			}
			return d.print(io.out)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}

// print writes the description for people.
func (d *description) print(out io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "file\t%s\ngraph\t%s\nvehicles\t%s\ncontraflow\t%t\nedges\t%d\nnodes\t%d\nbounds\t%.4f,%.4f,%.4f,%.4f\n",
		d.File, d.Graph, d.Vehicles, d.Contraflow, d.Edges, d.Nodes, d.Bounds[0], d.Bounds[1], d.Bounds[2], d.Bounds[3])
	for name := range strings.SplitSeq(d.Vehicles, ",") {
		fmt.Fprintf(&b, "largest piece, %s\t%.2f %%\n", name, 100*d.Largest[name])
	}
	s := d.Stats
	fmt.Fprintf(&b, "ways\t%d\nrestrictions\t%d, over ways %d, ignored %d, broken %d\nbarriers\t%d closed, %d gates\ngaps\t%d nodes missing, %d ways too short\n",
		s.Ways, s.Restrictions, s.RestrictionsViaWay, s.RestrictionsIgnored, s.RestrictionsBroken, s.ClosedNodes, s.GatedNodes, s.MissingNodes, s.ShortWays)
	w := tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
	if _, err := io.WriteString(w, b.String()); err != nil {
		return err
	}
	return w.Flush()
}

// finding is one line of "graph check --json".
type finding struct {
	Object string `json:"object"` // node, way or relation, and its id
	Text   string `json:"text"`
}

func newGraphCheck(io streams) *cobra.Command {
	var (
		asJSON  bool
		against string
	)
	cmd := &cobra.Command{
		Use:   "check FILE",
		Short: "Check a graph file, or list what is odd about an OSM extract",
		Long: `Of a graph file: compute everything in it anew and compare; with --map, import the extract for the same vehicles and
compare the hashes. A file that is not sound, or not that map's, is exit code 1.

Of an OSM extract: list the objects of which the import passed something over, with the reason: turn restrictions that do not
fit, nodes that are missing, ways that are too short. Such a list is no failure: real maps have one.`,
		Example: `  orchestrator graph check delaware.graph --map delaware.osm.pbf
  orchestrator graph check delaware.osm.pbf --json`,
		Args: args(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, files []string) error {
			c := checking{io: io, asJSON: asJSON}
			isGraph, err := isGraphFile(files[0])
			switch {
			case err != nil:
				return err
			case isGraph:
				return c.graph(cmd.Context(), files[0], against)
			case against != "":
				return usagef("--map is for checking a graph file, and %s is none", filepath.Base(files[0]))
			default:
				return c.extract(cmd.Context(), files[0])
			}
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON: one object a finding, and a last one with the counts")
	cmd.Flags().StringVar(&against, "map", "", "OSM extract that the graph file should be made of")
	return cmd
}

type checking struct {
	io     streams
	asJSON bool
}

func (c *checking) graph(ctx context.Context, path, against string) error {
	name := filepath.Base(path)
	graph, err := openMap(ctx, path, roadnet.ImportOptions{})
	if err == nil {
		if err = graph.Verify(); err != nil {
			err = fmt.Errorf("%s: %w", name, err)
		}
	}
	if err != nil {
		return err
	}
	if against != "" {
		fresh, err := importMap(ctx, against, roadnet.ImportOptions{Vehicles: graph.Vehicles(), Contraflow: graph.Contraflow()})
		if err != nil {
			return err
		}
		if fresh.Hash() != graph.Hash() {
			return fmt.Errorf("%s is not what the default profiles make of %s: build it again, unless it has profiles of its own or a box", name, filepath.Base(against))
		}
	}
	if c.asJSON {
		return json.NewEncoder(c.io.out).Encode(describe(graph))
	}
	_, err = fmt.Fprintf(c.io.out, "%s: sound, %d edges\n", name, graph.Edges())
	return err
}

func (c *checking) extract(ctx context.Context, path string) error {
	count := 0
	enc := json.NewEncoder(c.io.out)
	graph, err := importMap(ctx, path, roadnet.ImportOptions{Note: func(f roadnet.Finding) {
		count++
		if object, text, ok := strings.Cut(f.String(), ": "); ok && c.asJSON {
			_ = enc.Encode(finding{object, text}) // a failure to print is told of at the end
			return
		}
		_, _ = fmt.Fprintln(c.io.out, f)
	}})
	if err != nil {
		return err
	}
	if c.asJSON {
		d := describe(graph)
		d.File = filepath.Base(path)
		return enc.Encode(d)
	}
	_, err = fmt.Fprintf(c.io.out, "%s: %s, %d edges\n", filepath.Base(path), cmp.Or(findings(count), "nothing odd"), graph.Edges())
	return err
}

func findings(n int) string {
	switch n {
	case 0:
		return ""
	case 1:
		return "1 finding"
	default:
		return strconv.Itoa(n) + " findings"
	}
}
