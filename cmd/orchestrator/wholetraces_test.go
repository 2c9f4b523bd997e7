package main

import (
	"bufio"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
)

// program starts the orchestrator as a process of its own and gives the address that it says.
func program(t *testing.T, args ...string) (cmd *exec.Cmd, address string) {
	t.Helper()
	cmd = exec.CommandContext(t.Context(), os.Args[0], args...) //nolint:gosec // our own binary
	cmd.Env = append(os.Environ(), asProgram+"=1")
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(stderr)
	var said strings.Builder
	for {
		line, err := lines.ReadString('\n')
		said.WriteString(line)
		if m := regexp.MustCompile(`POST http://([0-9.:]+)/v1/match`).FindStringSubmatch(line); m != nil {
			return cmd, m[1]
		}
		if err != nil {
			t.Fatalf("no address: %v; it said %s", cmd.Wait(), said.String())
		}
	}
}

// ask sends a request and gives the answer.
func ask(t *testing.T, method, url, body string, header ...string) (status int, answer []byte) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	res, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	if answer, err = io.ReadAll(res.Body); err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, answer
}

// Issue 6: a process answers whole traces over HTTP, with metrics and a description, says who may ask, and ends with exit code 0.
func TestServeProcess(t *testing.T) {
	token := filepath.Join(t.TempDir(), "token")
	write(t, token, "open sesame\n")
	if got := orchestrator(t, "", "match", "--serve", "--map", "m.osm", "--match-token-file", token); got.code != exitUsage || !strings.Contains(got.err, "one word") {
		t.Errorf("a token of two words: %+v", got)
	}
	write(t, token, "sesame\n")
	cmd, address := program(t, "match", "--serve", "--map", mapFile(t), "--listen", "127.0.0.1:0", "--vehicle", "car,bicycle", "--match-token-file", token)
	const body = `{"costing":"bicycle","shape":[{"lat":48.00002,"lon":9.0010,"time":0},{"lat":48.00001,"lon":9.0040,"time":20},{"lat":48.0020,"lon":9.0050,"time":40}]}`
	status, answer := ask(t, http.MethodPost, "http://"+address+"/v1/match", body, "Authorization", "Bearer sesame")
	var a struct {
		Edges []struct {
			WayID int64 `json:"way_id"`
		}
	}
	if err := json.Unmarshal(answer, &a); err != nil || status != http.StatusOK || len(a.Edges) != 2 || a.Edges[0].WayID != 100 || a.Edges[1].WayID != 101 {
		t.Errorf("status %d, %v: %s", status, err, answer)
	}
	for _, c := range []struct {
		method, path, body string
		status             int
		say                string
	}{
		{http.MethodPost, "/v1/match", body, http.StatusUnauthorized, "bearer token"},
		{http.MethodGet, "/v1/openapi.yaml", "", http.StatusOK, "openapi: 3.0.3"},
		{http.MethodGet, "/readyz", "", http.StatusOK, "ok"},
		{http.MethodGet, "/metrics", "", http.StatusOK, `milepost_match_requests_total{outcome="ok"} 1`},
	} {
		status, answer := ask(t, c.method, "http://"+address+c.path, c.body)
		if status != c.status || !strings.Contains(string(answer), c.say) {
			t.Errorf("%s: %d, want %d and %q: %.300s", c.path, status, c.status, c.say, answer)
		}
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("ended with %v", err)
	}
}

// V3: what --serve does not go with, and what a worker's API needs, is said.
func TestServeUsage(t *testing.T) {
	for say, flags := range map[string][]string{
		"--map must be set":            {"match", "--serve"},
		"not from files":               {"match", "--serve", "--map", "m.osm", "x.gpx"},
		"--format is for files":        {"match", "--serve", "--map", "m.osm", "--format", "gpx"},
		`--vehicle is "tank"`:          {"match", "--serve", "--map", "m.osm", "--vehicle", "car,tank"},
		"--match-traces is -1":         {"match", "--serve", "--map", "m.osm", "--match-traces", "-1"},
		"--match-token-file: read the": {"match", "--serve", "--map", "m.osm", "--match-token-file", "nowhere"},
		"or --serve (see":              {"match", "--map", "m.osm"},
		"--match-traces is -2":         {"matcher", "--map", "m.osm", "--match-traces", "-2"},
		"--event-geometry: \"kml\"":    {"run", "--dsn", "postgres://x", "--map", "m.osm", "--event-geometry", "kml"},
		"--match-traces is -3":         {"run", "--dsn", "postgres://x", "--map", "m.osm", "--match-traces", "-3"},
	} {
		got := orchestrator(t, "", flags...)
		if got.code != exitUsage || !strings.Contains(got.err, say) || got.out != "" {
			t.Errorf("%v: %+v, want exit code 2 and %q", flags, got, say)
		}
	}
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	if got := orchestrator(t, "", "match", "--serve", "--map", mapFile(t), "--listen", l.Addr().String()); got.code != exitFailed || !strings.Contains(got.err, "--listen") {
		t.Errorf("a taken port: %+v", got)
	}
}
