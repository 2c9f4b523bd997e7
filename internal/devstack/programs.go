package devstack

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// minPostgres is the oldest major version that Milepost is tested on.
const minPostgres = 15

var versionNumber = regexp.MustCompile(`\(PostgreSQL\) (\d+)`)

// findPostgres returns the bin folder of the newest installed Postgres that is
// new enough, or of a fetched one.
func findPostgres(ctx context.Context, logger *slog.Logger) (string, error) {
	best, bestVersion := "", 0
	for _, dir := range programFolders(ctx) {
		version, ok := postgresVersion(ctx, dir)
		if ok && version >= minPostgres && version > bestVersion {
			best, bestVersion = dir, version
		}
	}
	if best != "" {
		logger.InfoContext(ctx, "using the installed Postgres", slog.Int("version", bestVersion))

		return best, nil
	}

	return fetchPostgres(ctx, logger)
}

// programFolders lists where server programs may be.
func programFolders(ctx context.Context) []string {
	var dirs []string
	if tool, err := exec.LookPath("pg_config"); err == nil {
		if out, err := runTool(ctx, command{name: "pg_config", path: tool, args: []string{"--bindir"}}, ""); err == nil {
			dirs = append(dirs, strings.TrimSpace(out))
		}
	}
	if tool, err := exec.LookPath("postgres"); err == nil {
		dirs = append(dirs, filepath.Dir(tool))
	}
	for _, pattern := range []string{
		"/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin", "/usr/local/pgsql/bin",
		"/opt/homebrew/opt/postgresql@*/bin", "/usr/local/opt/postgresql@*/bin",
	} {
		found, _ := filepath.Glob(pattern) // the pattern is well formed
		dirs = append(dirs, found...)
	}

	return slices.Compact(dirs)
}

// postgresVersion is the major version of the server programs in dir; not ok
// when one that is needed is missing.
func postgresVersion(ctx context.Context, dir string) (int, bool) {
	for _, name := range []string{"postgres", "initdb"} {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.IsDir() {
			return 0, false
		}
	}
	out, err := runTool(ctx, command{name: "postgres --version", path: filepath.Join(dir, "postgres"), args: []string{"--version"}}, "")
	if err != nil {
		return 0, false
	}
	m := versionNumber.FindStringSubmatch(out)
	if m == nil {
		return 0, false
	}
	version, err := strconv.Atoi(m[1])

	return version, err == nil
}

// serverAccount is the user that Postgres runs under: this one, or, as it
// refuses root, a user without rights.
func serverAccount() (*account, error) {
	if os.Getuid() != 0 {
		return nil, nil
	}

	return lookupAccount("postgres", "nobody")
}

// reachable checks that who may enter dir: each folder above it must let
// others pass.
func reachable(dir string, who *account) error {
	if who == nil {
		return nil
	}
	for up := filepath.Dir(dir); ; up = filepath.Dir(up) {
		info, err := os.Stat(up)
		if err != nil {
			return fmt.Errorf("check the way to the data folder: %w", err)
		}
		if info.Mode().Perm()&0o001 == 0 {
			return fmt.Errorf("postgres does not run as root, and its user cannot enter folder %s: give another data folder", filepath.Base(up))
		}
		if up == filepath.Dir(up) {
			return nil
		}
	}
}
