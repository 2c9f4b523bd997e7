package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// newHealth is the container's own health check: its image has no shell and no
// curl.
func newHealth(streams streams) *cobra.Command {
	address := "127.0.0.1:9464"
	cmd := &cobra.Command{
		Use:     "health",
		Short:   "Ask a running worker whether it is ready; exit code 1 when it is not",
		Example: "  orchestrator health --address 127.0.0.1:9464",
		Args:    args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			said, err := readiness(cmd.Context(), address)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(streams.out, said)

			return err
		},
	}
	cmd.Flags().StringVar(&address, "address", address, "the worker's --listen address")

	return cmd
}

// readiness returns what /readyz answers, and an error when that is not 200.
func readiness(ctx context.Context, address string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/readyz", http.NoBody)
	if err != nil {
		return "", usagef("address %s: %w", address, err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", fmt.Errorf("ask for health: %w", err)
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(response.Body, 4096))
	if err != nil {
		return "", fmt.Errorf("read the health answer: %w", err)
	}
	said := strings.TrimSpace(string(body))
	if response.StatusCode != http.StatusOK {
		return "", fmt.Errorf("ask for health: status %d: %s", response.StatusCode, said)
	}

	return said, nil
}
