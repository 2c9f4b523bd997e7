//go:build failpoint

package failpoints_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"

	"milepost/test/stand"
)

// session is the group's session time-out: how long a process may be silent and stay an owner.
const session = 3 * time.Second

// shared is what the cells share.
var shared struct {
	stand   *stand.Stand
	program string
}

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	dir, err := os.MkdirTemp("", "milepost-failpoints-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if shared.program, err = stand.Build(ctx, dir, "failpoint"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	shared.stand, err = stand.Start(ctx, stand.Config{
		SessionTimeout: session, Postgres: map[string]string{"max_connections": "300"},
	}, log)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	code := m.Run()
	if err := shared.stand.Stop(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	if err := goleak.Find(); code == 0 && err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	return code
}
