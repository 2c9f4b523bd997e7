package main

import (
	"bufio"
	"compress/gzip"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"milepost/internal/mapmatch"
	"milepost/internal/roadnet"
)

const onFoot = "00000015" // the one drive of the data set that is a walk

// kubickaSet reads 22 real drives with their hand-checked routes and networks (doi 10.5281/zenodo.57731). The networks become one map: every
// arc is a way of two nodes, two opposite arcs are one two-way way.
func kubickaSet(data, work string) (*set, error) {
	s := &set{
		name: "kubicka", title: "Kubička: 22 real drives",
		about:   "Real drives at 1 Hz with hand-checked routes (doi 10.5281/zenodo.57731), thinned to a step. Positions and times alone; the networks have no tags but one-way, and no turn rules. Each drive's network is a part of one map.",
		mapFile: filepath.Join(work, "kubicka.osm.pbf"),
		goals:   []goal{{1, 1}, {5, .8}, {15, 1}, {30, 1}, {60, 4}},
	}
	drives, all, err := kubickaDrives(data)
	if err != nil {
		return nil, err
	}
	s.batches = thinned(drives, 1, 5, 15, 30, 60)
	return s, all.write(s.mapFile)
}

// kubickaDrives reads the drives; each is judged on its own network, and all networks together are the map.
func kubickaDrives(data string) ([]drive, *network, error) {
	entries, err := os.ReadDir(filepath.Join(data, "kubicka"))
	if err != nil {
		return nil, nil, err
	}
	var drives []drive
	all := newNetwork()
	for _, e := range entries {
		if e.Name() == onFoot || !e.IsDir() {
			continue
		}
		d, net, err := kubickaDrive(kubickaBase(data, e.Name()), e.Name())
		if err != nil {
			return nil, nil, fmt.Errorf("drive %s: %w", e.Name(), err)
		}
		maps.Copy(all.nodes, net.nodes)
		maps.Copy(all.ways, net.ways)
		g, err := net.graph()
		if err != nil {
			return nil, nil, fmt.Errorf("drive %s: %w", e.Name(), err)
		}
		d.net = newYardstick(g)
		drives = append(drives, d)
	}
	return drives, all, nil
}

func kubickaDrive(base, id string) (drive, *network, error) {
	number, err := strconv.ParseInt(id, 10, 64)
	if err != nil {
		return drive{}, nil, err
	}
	first := number*1_000_000 + 1
	net := newNetwork()
	next := first
	err = numbers(base+".nodes.gz", func(v []float64) {
		net.nodes[next] = roadnet.Point{Lon: v[0], Lat: v[1]}
		next++
	})
	if err != nil {
		return drive{}, nil, err
	}
	pairs, err := kubickaArcs(net, base, first)
	if err != nil {
		return drive{}, nil, err
	}
	d := drive{id: id}
	err = numbers(base+".track.gz", func(v []float64) {
		d.obs = append(d.obs, bare(time.UnixMilli(int64(v[2]*1000)), roadnet.Point{Lon: v[0], Lat: v[1]}))
	})
	if err != nil {
		return drive{}, nil, err
	}
	err = numbers(base+".route.gz", func(v []float64) { d.truth = append(d.truth, pairs[int(v[0])]) })
	return d, net, err
}

// kubickaArcs makes ways of arcs, and says which pair each arc is.
func kubickaArcs(net *network, base string, first int64) ([]mapmatch.Pair, error) {
	var arcs [][2]int64
	index := make(map[[2]int64]int)
	err := numbers(base+".arcs.gz", func(v []float64) {
		a := [2]int64{int64(v[0]), int64(v[1])}
		if _, ok := index[a]; !ok {
			index[a] = len(arcs)
		}
		arcs = append(arcs, a)
	})
	if err != nil {
		return nil, err
	}
	pairs := make([]mapmatch.Pair, len(arcs))
	for i, a := range arcs {
		j, both := index[[2]int64{a[1], a[0]}]
		id := index[a]
		if both {
			id = min(id, j)
		}
		pairs[i] = mapmatch.Pair{Way: first + int64(id), From: first + a[0], To: first + a[1]}
		if a[0] == a[1] || id != i {
			continue
		}
		w := way{refs: []int64{first + a[0], first + a[1]}, tags: [][2]string{{"highway", "secondary"}, {"maxspeed", "90"}}}
		if !both {
			w.tags = append(w.tags, [2]string{"oneway", "yes"})
		}
		net.ways[first+int64(i)] = w
	}
	return pairs, nil
}

// numbers reads a gzipped file of numbers, a row a line.
func numbers(path string, row func(v []float64)) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	z, err := gzip.NewReader(f)
	if err != nil {
		return fmt.Errorf("%s: %w", filepath.Base(path), err)
	}
	lines := bufio.NewScanner(z)
	for lines.Scan() {
		var v []float64
		for s := range strings.FieldsSeq(lines.Text()) {
			x, err := strconv.ParseFloat(s, 64)
			if err != nil {
				return fmt.Errorf("%s: %w", filepath.Base(path), err)
			}
			v = append(v, x)
		}
		if len(v) > 0 {
			row(v)
		}
	}
	return lines.Err()
}

// kubickaBase is how the names of a drive's files begin.
func kubickaBase(data, id string) string { return filepath.Join(data, "kubicka", id, id) }
