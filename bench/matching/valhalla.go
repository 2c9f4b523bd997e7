package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"milepost/internal/mapmatch"
	"milepost/internal/roadnet"
)

// valhallaTuned is gps_accuracy and turn_penalty_factor.
const valhallaTuned = "8+200"

// valhalla is valhalla_service over HTTP.
type valhalla struct {
	*child
	url string
}

// valhallaOptions are the trace options of a setting, "default" or "accuracy+penalty".
func valhallaOptions(setting string) (map[string]any, error) {
	if setting == "default" {
		return nil, nil
	}
	var accuracy, penalty float64
	if _, err := fmt.Sscanf(setting, "%g+%g", &accuracy, &penalty); err != nil {
		return nil, fmt.Errorf("setting %q of valhalla: want accuracy+penalty: %w", setting, err)
	}
	return map[string]any{"gps_accuracy": accuracy, "search_radius": 50, "turn_penalty_factor": penalty}, nil
}

// startValhalla builds tiles of a map, once, and serves them with one thread.
func startValhalla(ctx context.Context, p peers, mapFile, work string) (*valhalla, error) {
	port, err := freePort(ctx)
	if err != nil {
		return nil, err
	}
	// The names of ipc sockets must not be longer than the system allows: they get a short folder of their own.
	sockets, err := os.MkdirTemp("", "valhalla")
	if err != nil {
		return nil, err
	}
	config, err := p.valhallaConfig(ctx, work, sockets, port)
	if err != nil {
		return nil, err
	}
	if err := once(filepath.Join(work, "valhalla.built"), func() error {
		return run(ctx, p.valhallaBin("valhalla_build_tiles"), "-c", config, "-j", "1", mapFile)
	}); err != nil {
		return nil, err
	}
	c, err := launch(exec.CommandContext(ctx, p.valhallaBin("valhalla_service"), config, "1"), filepath.Join(work, "valhalla.log"))
	if err != nil {
		return nil, err
	}
	c.scratch = sockets
	addr := fmt.Sprintf("127.0.0.1:%d", port)
	if err := c.listening(ctx, addr); err != nil {
		return nil, err
	}
	return &valhalla{child: c, url: "http://" + addr + "/trace_attributes"}, nil
}

// valhallaConfig writes a configuration by Valhalla's own script, with the folders and limits of this run.
func (p peers) valhallaConfig(ctx context.Context, work, sockets string, port int) (string, error) {
	script := filepath.Join(p.valhallaFolder(), "valhalla", "valhalla_build_config.py")
	cmd := exec.CommandContext(ctx, "python3", script, "--mjolnir-tile-dir", filepath.Join(work, "valhalla"))
	cmd.Env = append(os.Environ(), "PYTHONPATH="+p.valhallaFolder())
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("valhalla_build_config.py: %w", err)
	}
	var c map[string]any
	if err := json.Unmarshal(out, &c); err != nil {
		return "", err
	}
	part := func(path ...string) map[string]any {
		at := c
		for _, name := range path {
			next, ok := at[name].(map[string]any)
			if !ok {
				next = make(map[string]any)
				at[name] = next
			}
			at = next
		}
		return at
	}
	for _, stage := range []string{"loki", "thor", "odin", "meili"} {
		part(stage, "service")["proxy"] = "ipc://" + filepath.Join(sockets, stage)
	}
	httpd := part("httpd", "service")
	httpd["listen"] = fmt.Sprintf("tcp://127.0.0.1:%d", port)
	httpd["loopback"] = "ipc://" + filepath.Join(sockets, "loopback")
	httpd["interrupt"] = "ipc://" + filepath.Join(sockets, "interrupt")
	trace := part("service_limits", "trace")
	trace["max_shape"], trace["max_distance"], trace["max_search_radius"] = 1_000_000, 10_000_000.0, 200.0
	mjolnir := part("mjolnir")
	for _, key := range []string{"tile_extract", "traffic_extract", "admin", "landmarks", "timezone"} {
		delete(mjolnir, key)
	}
	text, err := json.Marshal(c)
	if err != nil {
		return "", err
	}
	path := filepath.Join(work, "valhalla.json")
	return path, os.WriteFile(path, text, 0o644)
}

func (v *valhalla) process() *child { return v.child }

func (v *valhalla) match(ctx context.Context, setting string, obs []mapmatch.Observation) (answer, error) {
	type place struct {
		Lat  float64 `json:"lat"`
		Lon  float64 `json:"lon"`
		Time float64 `json:"time"`
	}
	req := map[string]any{"costing": "auto", "shape_match": "map_snap", "filters": map[string]any{"attributes": []string{"shape"}, "action": "include"}}
	options, err := valhallaOptions(setting)
	if err != nil {
		return answer{}, err
	}
	if options != nil {
		req["trace_options"] = options
	}
	var shape []place
	for _, o := range obs {
		shape = append(shape, place{o.Point.Lat, o.Point.Lon, float64(o.Time.UnixMilli()) / 1000})
	}
	req["shape"] = shape
	body, err := json.Marshal(req)
	if err != nil {
		return answer{}, err
	}
	var r struct {
		Shape string `json:"shape"`
		Error string `json:"error"`
	}
	if err := call(ctx, http.MethodPost, v.url, body, &r); err != nil {
		return answer{}, err
	}
	if r.Error != "" {
		return answer{}, errors.New(r.Error)
	}
	line, err := polyline6(r.Shape)
	return answer{lines: [][]roadnet.Point{line}}, err
}

// call asks a server and reads its JSON, whatever its status says: an engine that finds nothing answers 400 with the reason.
func call(ctx context.Context, method, url string, body []byte, into any) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, into); err != nil {
		return fmt.Errorf("status %d: %w", resp.StatusCode, err)
	}
	return nil
}

// polyline6 decodes an encoded line of millionths of a degree.
func polyline6(s string) ([]roadnet.Point, error) {
	var out []roadnet.Point
	var at [2]int64 // lat, lon
	for i := 0; i < len(s); {
		for k := range at {
			var v int64
			for shift := 0; ; shift += 5 {
				if i == len(s) || shift > 60 {
					return nil, errors.New("an encoded line ends within a number")
				}
				b := int64(s[i]) - 63
				i++
				v |= b & 31 << shift
				if b < 32 {
					break
				}
			}
			at[k] += v>>1 ^ -(v & 1)
		}
		out = append(out, roadnet.Point{Lat: float64(at[0]) / 1e6, Lon: float64(at[1]) / 1e6})
	}
	return out, nil
}
