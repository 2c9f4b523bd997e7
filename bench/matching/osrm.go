package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"milepost/internal/mapmatch"
)

const osrmTuned = "10" // metres of radius

// osrm is osrm-routed over HTTP.
type osrm struct {
	*child
	url string
}

// startOSRM prepares a map, once, and serves it with one thread.
func startOSRM(ctx context.Context, p peers, mapFile, work string) (*osrm, error) {
	base := filepath.Join(work, "osrm", "map.osrm")
	if err := once(filepath.Join(work, "osrm.built"), func() error {
		if err := os.MkdirAll(filepath.Dir(base), 0o755); err != nil {
			return err
		}
		if err := run(ctx, p.osrmBin("osrm-extract"), "-t", "1", "-p", filepath.Join(p.osrmFolder(), "osrm", "share", "profiles", "car.lua"), "-o", base, mapFile); err != nil {
			return err
		}
		if err := run(ctx, p.osrmBin("osrm-partition"), "-t", "1", base); err != nil {
			return err
		}
		return run(ctx, p.osrmBin("osrm-customize"), "-t", "1", base)
	}); err != nil {
		return nil, err
	}
	port, err := freePort(ctx)
	if err != nil {
		return nil, err
	}
	c, err := launch(exec.CommandContext(ctx, p.osrmBin("osrm-routed"), "--ip", "127.0.0.1", "--port", strconv.Itoa(port), "-t", "1", "--algorithm", "mld",
		"--max-matching-size", "1000000", "--max-matching-radius", "200", base), filepath.Join(work, "osrm.log"))
	if err != nil {
		return nil, err
	}
	addr := fmt.Sprintf("127.0.0.1:%d", port)
	if err := c.listening(ctx, addr); err != nil {
		return nil, err
	}
	return &osrm{child: c, url: "http://" + addr + "/match/v1/driving/"}, nil
}

func (o *osrm) process() *child { return o.child }

// match asks under a setting: "default" or the radius of every position.
func (o *osrm) match(ctx context.Context, setting string, obs []mapmatch.Observation) (answer, error) {
	var places, times, radii []string
	for _, x := range obs {
		places = append(places, fmt.Sprintf("%.6f,%.6f", x.Point.Lon, x.Point.Lat))
		times = append(times, strconv.FormatInt(x.Time.Unix(), 10))
		radii = append(radii, setting)
	}
	url := o.url + strings.Join(places, ";") + "?overview=full&geometries=polyline6&timestamps=" + strings.Join(times, ";")
	if setting != "default" {
		url += "&tidy=true&gaps=ignore&radiuses=" + strings.Join(radii, ";")
	}
	var r struct {
		Code, Message string
		Matchings     []struct{ Geometry string }
	}
	if err := call(ctx, http.MethodGet, url, nil, &r); err != nil {
		return answer{}, err
	}
	if r.Code != "Ok" {
		return answer{}, errors.New(r.Code + ": " + r.Message)
	}
	var a answer
	for _, m := range r.Matchings {
		line, err := polyline6(m.Geometry)
		if err != nil {
			return answer{}, err
		}
		a.lines = append(a.lines, line)
	}
	return a, nil
}
