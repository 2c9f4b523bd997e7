package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/pflag"

	"milepost/internal/roadnet"
)

// mapFlags are the flags of the verbs that need a road map.
func mapFlags(fs *pflag.FlagSet, path, profiles *string) {
	fs.StringVar(path, "map", "", "road map: an OSM extract (.osm.pbf, .osm, .osm.gz, .osm.bz2) or a graph file (see: orchestrator graph)")
	fs.StringVar(profiles, "profiles", "", "TOML `file` that says what tags of the extract mean to a vehicle; empty: the default (see: orchestrator graph build --help)")
}

// openMap gives the graph of a file: a graph file is mapped into memory for as long as the process lives, anything else is imported.
// Errors name the file by the last part of its path.
func openMap(ctx context.Context, path string, opt roadnet.ImportOptions) (*roadnet.Graph, error) {
	is, err := isGraphFile(path)
	if err != nil {
		return nil, err
	}
	if !is {
		opt.Contraflow = true // a price in matching (M27), as graph build does it
		return importMap(ctx, path, opt)
	}
	if opt.Profiles != nil {
		return nil, usagef("%s is a graph file, which has its profiles in it: give them to graph build", filepath.Base(path))
	}
	if opt.Box != nil {
		return nil, usagef("%s is a graph file, of which no part can be taken: give the box to graph build", filepath.Base(path))
	}
	data, err := mapIntoMemory(path)
	if err != nil {
		return nil, err
	}
	graph, err := roadnet.Open(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Base(path), err)
	}
	return graph, nil
}

func importMap(ctx context.Context, path string, opt roadnet.ImportOptions) (*roadnet.Graph, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // it was only read
	return roadnet.Import(ctx, f, filepath.Base(path), opt)
}

func isGraphFile(path string) (bool, error) {
	f, err := os.Open(path)
	if err != nil {
		return false, err
	}
	defer func() { _ = f.Close() }() // it was only read
	var head [8]byte
	n, err := io.ReadFull(f, head[:])
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return false, err
	}
	return roadnet.IsGraphFile(head[:n]), nil
}
