package main

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"milepost/internal/mapmatch"
	"milepost/internal/roadnet"
)

// hofSet reads 175 floating-car tracks with hand-checked routes (doi 10.6084/m9.figshare.19785835). No map belongs to them: the network is
// the union of all routes, each stretch open in the directions in which somebody drove it.
func hofSet(data, work string) (*set, error) {
	s := &set{
		name: "hof", title: "Hof: 175 floating-car tracks",
		about:   "Real tracks, 5 to 15 s between positions (doi 10.6084/m9.figshare.19785835), on the network of all their hand-checked routes, open as somebody drove them: easier than a map.",
		mapFile: filepath.Join(work, "hof.osm.pbf"),
	}
	folder := filepath.Join(data, "traces", "fcd-hof")
	net, truths, err := hofNetwork(folder)
	if err != nil {
		return nil, err
	}
	g, err := net.graph()
	if err != nil {
		return nil, err
	}
	tracks := make(map[string][]mapmatch.Observation)
	err = table(filepath.Join(folder, "points.csv"), func(get func(string) string) error {
		at, err := time.Parse("2006-01-02 15:04:05-07:00", get("time"))
		if err != nil {
			return err
		}
		var p roadnet.Point
		if _, err := fmt.Sscanf(get("geometry"), "POINT (%f %f)", &p.Lon, &p.Lat); err != nil {
			return err
		}
		tracks[get("id")] = append(tracks[get("id")], bare(at, p))
		return nil
	})
	if err != nil {
		return nil, err
	}
	y := newYardstick(g)
	b := batch{stepS: 5, label: "5–15 s"}
	for _, id := range slices.Sorted(maps.Keys(truths)) {
		slices.SortStableFunc(tracks[id], func(a, b mapmatch.Observation) int { return a.Time.Compare(b.Time) })
		if len(truths[id]) > 2 {
			b.drives = append(b.drives, drive{id: id, obs: tracks[id], truth: truths[id], net: y})
		}
	}
	s.batches = []batch{b}
	return s, net.write(s.mapFile)
}

// hofNetwork joins the routes, lines of places, to a network.
func hofNetwork(folder string) (*network, map[string][]mapmatch.Pair, error) {
	net := newNetwork()
	nodes := make(map[[2]int64]int64)
	stretches := make(map[[2]int64]int64)
	driven := make(map[[2]int64]bool)
	truths := make(map[string][]mapmatch.Pair)
	err := table(filepath.Join(folder, "ground_truth.csv"), func(get func(string) string) error {
		last := int64(0)
		for place := range strings.SplitSeq(strings.TrimPrefix(get("WKT"), "MULTILINESTRING"), ",") {
			if strings.HasPrefix(strings.TrimSpace(place), "(") {
				last = 0 // the next line
			}
			var p roadnet.Point
			if _, err := fmt.Sscan(strings.Trim(place, " ()"), &p.Lon, &p.Lat); err != nil {
				return fmt.Errorf("%q: %w", place, err)
			}
			k := [2]int64{sevenths(p.Lon), sevenths(p.Lat)}
			if nodes[k] == 0 {
				nodes[k] = int64(len(nodes) + 1)
				net.nodes[nodes[k]] = p
			}
			n := nodes[k]
			if last != 0 && last != n {
				pair := [2]int64{min(last, n), max(last, n)}
				if stretches[pair] == 0 {
					stretches[pair] = int64(len(stretches) + 1)
				}
				driven[[2]int64{last, n}] = true
				truths[get("id")] = append(truths[get("id")], mapmatch.Pair{Way: stretches[pair], From: last, To: n})
			}
			last = n
		}
		return nil
	})
	for pair, id := range stretches {
		w := way{refs: pair[:], tags: [][2]string{{"highway", "residential"}}}
		switch {
		case !driven[[2]int64{pair[1], pair[0]}]:
			w.tags = append(w.tags, [2]string{"oneway", "yes"})
		case !driven[pair]:
			w.tags = append(w.tags, [2]string{"oneway", "-1"})
		}
		net.ways[id] = w
	}
	return net, truths, err
}

// table reads a CSV file with names in its first row.
func table(path string, row func(get func(string) string) error) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	r := csv.NewReader(f)
	head, err := r.Read()
	if err != nil {
		return fmt.Errorf("%s: %w", filepath.Base(path), err)
	}
	column := make(map[string]int)
	for i, h := range head {
		column[h] = i
	}
	for n := 2; ; n++ {
		rec, err := r.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = row(func(name string) string { return rec[column[name]] })
		}
		if err != nil {
			return fmt.Errorf("%s, row %d: %w", filepath.Base(path), n, err)
		}
	}
}
