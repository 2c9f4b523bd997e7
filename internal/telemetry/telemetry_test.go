package telemetry_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"

	"milepost/internal/telemetry"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("net/http.(*persistConn).readLoop"), goleak.IgnoreTopFunction("net/http.(*persistConn).writeLoop"))
}

func get(t *testing.T, url string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(body)
}

// A20, E5, F27: health, readiness with the reason, metrics of the given registry; the server ends with its context.
func TestServer(t *testing.T) {
	reg := prometheus.NewRegistry()
	counter := prometheus.NewCounter(prometheus.CounterOpts{Name: "milepost_things_total", Help: "things"})
	reg.MustRegister(counter)
	counter.Add(3)
	notReady := errors.New("partition raw/3 is not recovered")
	s, err := telemetry.Listen("127.0.0.1:0", reg, func() error { return notReady }, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	for path, want := range map[string]struct {
		status int
		body   string
	}{
		"/livez":   {200, "ok"},
		"/readyz":  {503, "not ready: partition raw/3 is not recovered"},
		"/metrics": {200, "milepost_things_total 3"},
		"/other":   {404, ""},
	} {
		status, body := get(t, "http://"+s.Address()+path)
		if status != want.status || !strings.Contains(body, want.body) {
			t.Errorf("%s: %d %q, want %d and %q", path, status, body, want.status, want.body)
		}
	}
	if _, err := telemetry.Listen(s.Address(), reg, func() error { return nil }, slog.New(slog.DiscardHandler)); err == nil || !strings.Contains(err.Error(), "--listen") {
		t.Errorf("a taken port: %v, want an error that names the flag", err)
	}
	http.DefaultClient.CloseIdleConnections()
	stop()
	if err := <-ended; err != nil {
		t.Errorf("run: %v", err)
	}
}

// E2: a secret prints as stars, in every format and in every way of printing.
func TestSecretNeverPrints(t *testing.T) {
	for _, f := range []telemetry.Format{telemetry.FormatText, telemetry.FormatJSON, telemetry.FormatAuto} {
		var out bytes.Buffer
		log, err := telemetry.NewLogger(&out, f, slog.LevelInfo)
		if err != nil {
			t.Fatal(err)
		}
		log.Info("connecting", slog.Any("password", telemetry.Secret("hunter2")))
		if got := out.String(); strings.Contains(got, "hunter2") || !strings.Contains(got, "***") {
			t.Errorf("%s prints %q", f, got)
		}
	}
	if _, err := telemetry.NewLogger(io.Discard, "xml", slog.LevelInfo); err == nil {
		t.Error("an unknown format is accepted")
	}
	if _, err := telemetry.ParseLevel("loud"); err == nil {
		t.Error("an unknown level is accepted")
	}
}

// E6: durations have their unit, in a group too.
func TestDurationsHaveUnits(t *testing.T) {
	var out bytes.Buffer
	log, err := telemetry.NewLogger(&out, telemetry.FormatJSON, slog.LevelInfo)
	if err != nil {
		t.Fatal(err)
	}
	log.Info("waiting", slog.Duration("next", 1500*time.Millisecond), slog.Group("import", slog.Any("took", 5*time.Second)))
	for _, want := range []string{`"next":"1.5s"`, `"took":"5s"`} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the line is %s, want %s in it", out.String(), want)
		}
	}
}
