// Command withkafka runs a command with MILEPOST_TEST_BROKERS naming a real
// Kafka broker that it starts for it and ends with it. Where the machine cannot
// run one it says why and runs the command without. A broker that is named
// already is used.
//
//	withkafka go test ./...
package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"milepost/internal/devstack"
)

const brokersEnv = "MILEPOST_TEST_BROKERS"

func main() { os.Exit(run(os.Args[1:])) }

func run(args []string) int {
	if len(args) == 0 {
		fmt.Fprintln(os.Stderr, "usage: withkafka COMMAND [ARG…]")

		return 2
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	env := os.Environ()
	if os.Getenv(brokersEnv) == "" {
		starting, cancel := context.WithTimeout(ctx, 5*time.Minute)
		kafka, err := devstack.StartKafka(starting, devstack.KafkaConfig{Logger: slog.New(slog.NewTextHandler(os.Stderr, nil))})
		cancel()
		if err != nil {
			fmt.Fprintln(os.Stderr, "no real Kafka broker, its tests are skipped:", err)
		} else {
			defer func() { _ = kafka.Stop() }()
			env = append(env, brokersEnv+"="+strings.Join(kafka.Addrs(), ","))
		}
	}
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr = env, os.Stdin, os.Stdout, os.Stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 30 * time.Second
	err := cmd.Run()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit):
		return max(exit.ExitCode(), 1)
	default:
		fmt.Fprintln(os.Stderr, "withkafka:", err)

		return 1
	}
}
