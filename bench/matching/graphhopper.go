package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"milepost/internal/mapmatch"
	"milepost/internal/roadnet"
)

// graphhopper is LineServer.java: a line a drive.
type graphhopper struct{ *talker }

// startGraphHopper imports a map, once, and waits for drives.
func startGraphHopper(ctx context.Context, p peers, mapFile, work string) (*graphhopper, error) {
	cmd := exec.CommandContext(ctx, "java", "-XX:ActiveProcessorCount=1", "-Xmx3g", "-cp", p.graphHopperClasses(), "LineServer", mapFile, filepath.Join(work, "graphhopper"))
	log := filepath.Join(work, "graphhopper.log")
	t, err := launchTalker(cmd, log)
	if err != nil {
		return nil, err
	}
	g := &graphhopper{talker: t}
	for {
		line, err := g.out.ReadString('\n')
		if err != nil {
			return nil, fmt.Errorf("GraphHopper did not start, see %s: %w", log, err)
		}
		if strings.TrimSpace(line) == "ready" {
			return g, nil
		}
	}
}

func (g *graphhopper) process() *child { return g.child }

// match sends "sigma lon,lat lon,lat ..." and reads "lon,lat lon,lat ..." or "error: why".
func (g *graphhopper) match(_ context.Context, setting string, obs []mapmatch.Observation) (answer, error) {
	var b strings.Builder
	b.WriteString(setting)
	for _, o := range obs {
		fmt.Fprintf(&b, " %.7f,%.7f", o.Point.Lon, o.Point.Lat)
	}
	b.WriteByte('\n')
	if _, err := io.WriteString(g.in, b.String()); err != nil {
		return answer{}, err
	}
	text, err := g.out.ReadString('\n')
	if err != nil {
		return answer{}, err
	}
	text = strings.TrimSpace(text)
	if why, failed := strings.CutPrefix(text, "error: "); failed {
		return answer{}, errors.New(why)
	}
	var line []roadnet.Point
	for s := range strings.FieldsSeq(text) {
		lon, lat, _ := strings.Cut(s, ",")
		var p roadnet.Point
		if p.Lon, err = strconv.ParseFloat(lon, 64); err != nil {
			return answer{}, err
		}
		if p.Lat, err = strconv.ParseFloat(lat, 64); err != nil {
			return answer{}, err
		}
		line = append(line, p)
	}
	return answer{lines: [][]roadnet.Point{line}}, nil
}
