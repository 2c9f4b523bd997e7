package telemetry

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Server is the operator's HTTP surface.
type Server struct {
	listener net.Listener
	server   *http.Server
	mux      *http.ServeMux
}

// Listen binds the address at once, so that a taken port is an error of the start. ready returns nil when the process
// is ready, else why it is not.
func Listen(address string, gatherer prometheus.Gatherer, ready func() error, log *slog.Logger) (*Server, error) {
	l, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listen on %s for health and metrics (choose another with --listen): %w", address, err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /livez", func(w http.ResponseWriter, _ *http.Request) { answer(w, nil) })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) { answer(w, ready()) })
	mux.Handle("GET /metrics", promhttp.HandlerFor(gatherer, promhttp.HandlerOpts{ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelError)}))
	return &Server{listener: l, mux: mux, server: &http.Server{
		Handler: mux, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second, IdleTimeout: time.Minute,
	}}, nil
}

func answer(w http.ResponseWriter, err error) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	if err != nil {
		w.WriteHeader(http.StatusServiceUnavailable)
		fmt.Fprintln(w, "not ready:", err)
		return
	}
	fmt.Fprintln(w, "ok")
}

// Handle adds what an operator may ask of the process; see http.ServeMux for the pattern.
func (s *Server) Handle(pattern string, h http.HandlerFunc) { s.mux.HandleFunc(pattern, h) }

// Handler is what answers, for tests of it.
func (s *Server) Handler() http.Handler { return s.mux }

// Address is where the server listens; the port is real also where 0 was asked for.
func (s *Server) Address() string { return s.listener.Addr().String() }

// Run serves until ctx ends, then lets running requests finish for a moment.
func (s *Server) Run(ctx context.Context) error {
	ended := make(chan error, 1)
	go func() { ended <- s.server.Serve(s.listener) }()
	select {
	case err := <-ended:
		return fmt.Errorf("serve health and metrics: %w", err)
	case <-ctx.Done():
	}
	stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	if err := s.server.Shutdown(stop); err != nil {
		_ = s.server.Close() // requests that outlast the moment are cut; the process is ending
	}
	if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve health and metrics: %w", err)
	}
	return nil
}
