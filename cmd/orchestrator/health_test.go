package main

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestHealth: the container's health check is good exactly when /readyz is.
func TestHealth(t *testing.T) {
	status := http.StatusOK
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/readyz" {
			t.Errorf("asked for %s", r.URL.Path)
		}
		w.WriteHeader(status)
	}))
	address := strings.TrimPrefix(server.URL, "http://")
	for _, c := range []struct{ status, want int }{{http.StatusOK, exitDone}, {http.StatusServiceUnavailable, exitFailed}} {
		status = c.status
		var out, stderr strings.Builder
		if got := execute(t.Context(), []string{"health", "--address", address}, nil, &out, &stderr); got != c.want {
			t.Errorf("status %d: exit code %d, want %d (%s)", c.status, got, c.want, stderr.String())
		}
	}
	server.Close()
	if got := execute(t.Context(), []string{"health", "--address", address}, nil, &strings.Builder{}, &strings.Builder{}); got != exitFailed {
		t.Errorf("no server: exit code %d, want %d", got, exitFailed)
	}
}
