package devstack

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
)

const (
	// mapModule carries the state of Delaware as test data (© OpenStreetMap
	// contributors, ODbL). Every build of Milepost has it in its module cache.
	mapModule = "github.com/paulmach/osm@v0.8.0"
	mapFile   = "testdata/delaware-latest.osm.pbf"
)

// DelawareMap returns the path of a real road map of the state of Delaware,
// asking the go command for the module that carries it; that downloads it
// where the module cache does not have it yet.
func DelawareMap(ctx context.Context, logger *slog.Logger) (string, error) {
	goTool, err := exec.LookPath("go")
	if err != nil {
		return "", fmt.Errorf("find the demo's road map: it comes with Go module %s and needs the go command (or give --map FILE.osm.pbf): %w", mapModule, err)
	}
	logger.InfoContext(ctx, "looking for the demo's road map", slog.String("module", mapModule))

	// Outside any module, so that the caller's go.mod plays no part.
	out, runErr := runTool(ctx, command{
		name: "go mod download", path: goTool, dir: os.TempDir(),
		args: []string{"mod", "download", "-json", mapModule},
		env:  append(os.Environ(), "GOWORK=off", "GO111MODULE=on"),
	}, "")
	if runErr != nil {
		return "", fmt.Errorf("download the demo's road map (or give --map FILE.osm.pbf): %w", runErr)
	}
	var answer struct{ Dir, Error string }
	if err := json.Unmarshal([]byte(out), &answer); err != nil {
		return "", fmt.Errorf("read the go command's answer about %s: %w", mapModule, err)
	}
	if answer.Error != "" {
		return "", fmt.Errorf("download the demo's road map (or give --map FILE.osm.pbf): %w", errors.New(answer.Error))
	}
	path := filepath.Join(answer.Dir, filepath.FromSlash(mapFile))
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("find the demo's road map in module %s: %w", mapModule, err)
	}

	return path, nil
}
