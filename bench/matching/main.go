package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

func main() {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := command(ctx, os.Args[1:])
	cancel()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench/matching:", err)
		os.Exit(1)
	}
}

// options are the flags.
type options struct {
	sets, engines, data, synth, cache, docs string
	tries                                   string
	rounds                                  int
	pageOnly                                bool
}

func command(ctx context.Context, args []string) error {
	if len(args) == 2 && args[0] == "serve" {
		return serveOn(ctx, args[1])
	}
	var o options
	flags := flag.NewFlagSet("matching", flag.ContinueOnError)
	flags.StringVar(&o.sets, "sets", strings.Join(setNames(), ","), "what to run: "+strings.Join(setNames(), ", "))
	flags.StringVar(&o.engines, "engines", "ours,valhalla,osrm,graphhopper", "who takes part")
	flags.StringVar(&o.tries, "try", "", "further settings of peers, to choose the tuned ones by: osrm/15,valhalla/10+0,graphhopper/20")
	flags.IntVar(&o.rounds, "rounds", 2, "rounds of which the median is taken; every second one runs backwards")
	flags.StringVar(&o.data, "data", os.Getenv("MILEPOST_DATA"), "folder with kubicka/ and traces/fcd-hof/ (MILEPOST_DATA)")
	flags.StringVar(&o.synth, "synth", os.Getenv("MILEPOST_SYNTH"), "folder with synthetic/de_*.csv (MILEPOST_SYNTH)")
	flags.StringVar(&o.cache, "cache", "", "folder for peers and prepared maps (default: milepost/bench-matching in the user's cache)")
	flags.StringVar(&o.docs, "docs", "docs", "where the page goes")
	flags.BoolVar(&o.pageOnly, "page", false, "write the page from the figures that are there, and measure nothing")
	if err := flags.Parse(args); errors.Is(err, flag.ErrHelp) {
		return nil
	} else if err != nil {
		return err
	}
	if o.cache == "" {
		dir, err := os.UserCacheDir()
		if err != nil {
			return err
		}
		o.cache = filepath.Join(dir, "milepost", "bench-matching")
	}
	if !o.pageOnly {
		if err := measure(ctx, o); err != nil {
			return err
		}
	}
	return writePage(o.docs)
}

// measure runs the sets that there are data for.
func measure(ctx context.Context, o options) error {
	b := &bench{peers: peers(o.cache), work: filepath.Join(o.cache, "maps"), engines: strings.Split(o.engines, ","), rounds: o.rounds, log: os.Stderr}
	for try := range strings.FieldsFuncSeq(o.tries, func(r rune) bool { return r == ',' }) {
		name, setting, _ := strings.Cut(try, "/")
		b.tries = append(b.tries, contender{engine: name, setting: setting, label: try, about: "tried", once: true})
	}
	for name := range strings.SplitSeq(o.sets, ",") {
		if !slices.Contains(setNames(), name) {
			return fmt.Errorf("there is no set %q: want one of %s", name, strings.Join(setNames(), ", "))
		}
		if why := missing(name, o); why != "" {
			fmt.Fprintf(b.log, "%s: left out: %s\n", name, why)
			continue
		}
		fmt.Fprintf(b.log, "\n%s\n", name)
		f, err := b.one(ctx, name, o)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if err := f.write(figuresFolder(o.docs)); err != nil {
			return err
		}
	}
	return nil
}

// missing says what a set lacks.
func missing(name string, o options) string {
	switch {
	case slices.Contains([]string{"kubicka", "hof", "push"}, name) && o.data == "":
		return "MILEPOST_DATA is not set"
	case name == "delaware" && o.synth == "":
		return "MILEPOST_SYNTH is not set"
	default:
		return ""
	}
}

func (b *bench) one(ctx context.Context, name string, o options) (*figures, error) {
	if name == "push" {
		return pushes(o.data, b.log)
	}
	var s *set
	var err error
	switch name {
	case "traffic":
		s, err = trafficSet(ctx)
	case "kubicka":
		s, err = kubickaSet(o.data, filepath.Join(b.work, name))
	case "hof":
		s, err = hofSet(o.data, filepath.Join(b.work, name))
	case "delaware":
		s, err = delawareSet(ctx, filepath.Join(o.synth, "synthetic"))
	}
	if err != nil {
		return nil, err
	}
	return b.set(ctx, s)
}

func figuresFolder(docs string) string { return filepath.Join(docs, "matching-bench") }
