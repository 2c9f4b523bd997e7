package main

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"milepost/internal/telemetry"
)

// hostileFiles makes files that nobody means, and gives them by what is wrong with them.
func hostileFiles(t *testing.T) map[string]string {
	t.Helper()
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		write(t, path, text)
		return path
	}
	dangling := filepath.Join(dir, "dangling")
	if err := os.Symlink(filepath.Join(dir, "gone"), dangling); err != nil {
		t.Fatal(err)
	}
	loop := filepath.Join(dir, "loop")
	if err := os.Symlink(loop, loop); err != nil {
		t.Fatal(err)
	}
	files := map[string]string{
		"missing":   filepath.Join(dir, "missing"),
		"directory": dir,
		"dangling":  dangling,
		"loop":      loop,
		"binary":    file("binary", "\x00\xff\xfe\x7fELF\x01\x02"+strings.Repeat("\x80", 100)),
		"deep":      file("deep", "version = "+strings.Repeat("[", 1<<19)),
		"dotted":    file("dotted", strings.Repeat("a.", 1<<18)+"a = 1"),
		"not utf-8": file("latin1", "version = \"\xe9\"\n"),
		"in a file": filepath.Join(file("plain", "x"), "below"),
	}
	if _, err := os.Stat("/dev/zero"); err == nil {
		files["endless"] = "/dev/zero"
	}
	if os.Getuid() != 0 {
		files["forbidden"] = file("forbidden", "x")
		if err := os.Chmod(files["forbidden"], 0); err != nil {
			t.Fatal(err)
		}
	}
	return files
}

// V3, P28: whatever a file turns out to be, the verb ends with an error that names the flag or the file, in bounded memory and time, and prints
// no result.
func TestHostileFiles(t *testing.T) {
	t.Setenv("MILEPOST_DSN", "postgres://u:hunter2@127.0.0.1:1/d")
	verbs := map[string]func(path string) []string{
		"config":   func(p string) []string { return []string{"run", "--config", p} },
		"catalog":  func(p string) []string { return []string{"catalog", "check", p} },
		"profiles": func(p string) []string { return []string{"match", "--map", os.DevNull, "--profiles", p, os.DevNull} },
		"map":      func(p string) []string { return []string{"graph", "info", p} },
		"ca":       func(p string) []string { return []string{"replay", "--kafka-ca", p, os.DevNull} },
		"token": func(p string) []string {
			return []string{"replay", "--kafka-sasl", "oauthbearer", "--kafka-token-file", p, os.DevNull}
		},
		"operators": func(p string) []string {
			return []string{"catalog", "reload", "--address", "127.0.0.1:1", "--operator-token-file", p}
		},
		"client key": func(p string) []string { return []string{"replay", "--kafka-cert", p, "--kafka-key", p, os.DevNull} },
	}
	for verb, args := range verbs {
		for what, path := range hostileFiles(t) {
			if verb == "map" && what == "endless" {
				continue // a map may be of any size; it is mapped or read as a stream
			}
			t.Run(verb+"/"+what, func(t *testing.T) {
				began := time.Now()
				got := orchestrator(t, "", args(path)...)
				if got.code != exitFailed && got.code != exitUsage {
					t.Errorf("%v: %+v, want a failure", args(path), got)
				}
				if !strings.Contains(got.err, filepath.Base(path)) && !strings.Contains(got.err, "--kafka-") {
					t.Errorf("the error names neither file nor flag: %s", got.err)
				}
				if strings.Contains(got.err, "hunter2") || strings.Contains(got.err, "goroutine ") || len(got.err) > 4096 {
					t.Errorf("the error tells too much: %.4096s", got.err)
				}
				if took := time.Since(began); took > time.Minute {
					t.Errorf("it took %s", took)
				}
			})
		}
	}
}

// FuzzConfigFile: any configuration file is taken, or refused as wrong usage with its name.
func FuzzConfigFile(f *testing.F) {
	for _, seed := range []string{
		"lanes = 5\n", "brokers = [\"a:1\", \"b:2\"]\n", "lanes = {a = 1}\n", "lanes = 1979-05-27T07:32:00Z\n", "\"\" = 1\n", "a.b = [[1]]\n",
		"session-timeout = \"20s\"\n", "dsn = \"\xff\"\n", "lanes = nan\n", "\x00", "[lanes]\n", "lanes = 99999999999999999999\n", "yes = true\n", "config = \"x\"\n",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		path := filepath.Join(t.TempDir(), "milepost.toml")
		write(t, path, string(text))
		var out, stderr bytes.Buffer
		switch code := execute(t.Context(), []string{"config", "--config", path}, strings.NewReader(""), &out, &stderr); code {
		case exitDone:
		case exitUsage:
			if strings.TrimSpace(stderr.String()) == "" {
				t.Error("refused without a reason")
			}
		default:
			t.Errorf("exit code %d: %s", code, stderr.String())
		}
	})
}

// operatorServer is a process's HTTP surface without a process.
func operatorServer(tb testing.TB) http.Handler {
	tb.Helper()
	log := slog.New(slog.DiscardHandler)
	server, err := telemetry.Listen("127.0.0.1:0", prometheus.NewRegistry(), func() error { return nil }, log)
	if err != nil {
		tb.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- server.Run(ctx) }()
	tb.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			tb.Error(err)
		}
	})
	reload := newReloader("", "", &territory{}, log)
	reload.count = func(string) {}
	reload.ready.Store(true)
	tb.Cleanup(reload.close)
	server.Handle("POST /catalog/reload", telemetry.Operators{}.Only(reload.serve))
	return server.Handler()
}

// FuzzHTTP: any request that the HTTP parser lets through has an answer, and none but a program of this machine reloads anything.
func FuzzHTTP(f *testing.F) {
	for _, seed := range []string{
		"GET /livez HTTP/1.1\r\nHost: x\r\n\r\n", "GET /readyz?%zz HTTP/1.1\r\nHost: x\r\n\r\n", "GET /metrics HTTP/1.0\r\nAccept-Encoding: gzip\r\n\r\n",
		"POST /catalog/reload HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 3\r\n\r\nabc", "POST /catalog/reload HTTP/1.1\r\nHost: [::1]:1\r\nOrigin: http://evil\r\n\r\n",
		"POST //catalog/../catalog/reload HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer \x80\r\n\r\n", "OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n",
		"GET /metrics?name[]=%00 HTTP/1.1\r\nHost: x\r\nAccept: application/openmetrics-text;q=-1;version=9999999999999\r\n\r\n",
	} {
		f.Add([]byte(seed))
	}
	handler := operatorServer(f)
	f.Fuzz(func(t *testing.T, raw []byte) {
		request, err := http.ReadRequest(bufio.NewReader(io.LimitReader(bytes.NewReader(raw), 1<<20)))
		if err != nil {
			return
		}
		request.RemoteAddr = "192.0.2.1:1234"
		answer := httptest.NewRecorder()
		handler.ServeHTTP(answer, request)
		if answer.Code < 200 || answer.Code >= 500 {
			t.Errorf("answered %d: %s", answer.Code, answer.Body)
		}
		if strings.HasSuffix(request.URL.Path, "/reload") && answer.Code == http.StatusOK {
			t.Errorf("a stranger reloaded the catalog: %s", answer.Body)
		}
	})
}
