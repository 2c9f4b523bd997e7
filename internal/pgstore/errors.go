package pgstore

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"milepost/internal/commit"
)

// classify gives err the class of its SQLSTATE and says what was tried. The server's detail, which may quote a row, is
// not in the message.
func classify(ctx context.Context, what string, err error) error {
	var pg *pgconn.PgError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &pg) && permanent(pg.Code):
		return fmt.Errorf("%s: %w: %w", what, commit.ErrPermanent, err)
	case errors.As(err, &pg):
		return fmt.Errorf("%s: %w", what, err)
	case ctx.Err() != nil:
		// The statement's own context ends by cancelling even where the caller's ended by its deadline.
		return fmt.Errorf("%s: %w", what, ctx.Err())
	case errors.Is(err, context.Canceled):
		return fmt.Errorf("%s: connection given up: %w", what, context.DeadlineExceeded)
	}
	return fmt.Errorf("%s: %w", what, err)
}

// permanent tells the SQLSTATE classes that no retry can help: data exceptions (22), constraint violations (23) and
// program limits (54). Everything else is transient: an operator or time can mend it.
func permanent(code string) bool {
	return strings.HasPrefix(code, "22") || strings.HasPrefix(code, "23") || strings.HasPrefix(code, "54")
}

// isolate runs write over the items and, where that fails with a permanent error, over its halves until the culprit is
// alone; then refuse makes the culprit's verdict.
func isolate[T, V any](items []T, write func([]T) ([]V, error), refuse func(error) V) ([]V, error) {
	if len(items) == 0 {
		return nil, nil
	}
	verdicts, err := write(items)
	switch {
	case err == nil:
		return verdicts, nil
	case !errors.Is(err, commit.ErrPermanent):
		return nil, err
	case len(items) == 1:
		return []V{refuse(err)}, nil
	}
	half := len(items) / 2
	left, err := isolate(items[:half], write, refuse)
	if err != nil {
		return nil, err
	}
	right, err := isolate(items[half:], write, refuse)
	if err != nil {
		return nil, err
	}
	return append(left, right...), nil
}
