//go:build integration

package integration_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

// buildOnce is the program's path, built once for the package.
var buildOnce = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "milepost-it-")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "orchestrator")
	args := []string{"build", "-o", path}
	if raceEnabled {
		args = append(args, "-race")
	}
	// As released: the embedded stack has no part in these tests.
	cmd := exec.Command("go", append(args, "-tags", "nodev", "milepost/cmd/orchestrator")...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the program: %w: %s", err, out)
	}

	return path, nil
})

// BuildOrchestrator returns the path of the program under test.
func BuildOrchestrator(t *testing.T) string {
	t.Helper()
	path, err := buildOnce()
	if err != nil {
		t.Fatal(err)
	}

	return path
}
