package stand

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// Shared is what the tests of a package share.
type Shared struct {
	Stand   *Stand
	Program string // the path of the program under test
}

// Main is the TestMain of a package whose tests share servers, and a program that is built with the tags; it gives the exit code.
func (s *Shared) Main(m *testing.M, c Config, tags ...string) int {
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	code, err := s.run(m, c, tags, log)
	if leak := goleak.Find(); code == 0 && err == nil {
		err = leak
	}
	if err != nil {
		log.Error("tests that share servers", slog.Any("err", err))
		return 1
	}
	return code
}

func (s *Shared) run(m *testing.M, c Config, tags []string, log *slog.Logger) (code int, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	dir, err := os.MkdirTemp("", "milepost-stand-")
	if err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if s.Program, err = Build(ctx, dir, tags...); err != nil {
		return 1, err
	}
	if s.Stand, err = Start(ctx, c, log); err != nil {
		return 1, err
	}
	code = m.Run()
	return code, s.Stand.Stop()
}
