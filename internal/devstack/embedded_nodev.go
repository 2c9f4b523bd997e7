//go:build nodev

package devstack

import (
	"context"
	"fmt"
	"log/slog"
)

func fetchPostgres(context.Context, *slog.Logger) (string, error) {
	return "", fmt.Errorf("fetch a postgres: %w", ErrLeftOut)
}
