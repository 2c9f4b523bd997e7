package mutations

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
)

var (
	sample = flag.Int("sample", 8, "run every n-th mutation only; 1: all")
	seeds  = flag.Int("seeds", 600, "seeds that the simulator has to catch one of partition's")
)

const (
	partition = "internal/partition"
	protocol  = "internal/commit"
)

// mutation is one seeded fault: in file, the text old, which stands there once, becomes new.
type mutation struct {
	name, folder, file string
	old, new           string
}

// T7, A19: each seeded fault is caught by the simulator, a script or a test of the protocol. A fault whose text is no longer in its file, or
// that does not compile, is an error: the list follows the code.
func TestMutationsAreCaught(t *testing.T) {
	if testing.Short() {
		t.Skip("builds and runs a test binary for each mutation")
	}
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	for i, m := range mutations() {
		if i%*sample != 0 {
			continue
		}
		t.Run(m.name, func(t *testing.T) {
			binary := m.build(t, root)
			run := []string{"-test.timeout", "5m", "-test.failfast"}
			if m.folder == partition {
				run = append(run, "-test.run", "^(TestScripts|TestSim)$", "-seeds", strconv.Itoa(*seeds))
			}
			cmd := exec.CommandContext(t.Context(), binary, run...)
			cmd.Dir = filepath.Join(root, m.folder)
			out, err := cmd.CombinedOutput()
			if err == nil {
				t.Errorf("no test caught it:\n- %s\n+ %s", m.old, m.new)
			}
			t.Log(caughtBy(out))
		})
	}
}

// build makes the test binary of the mutation's package with the fault in it.
func (m mutation) build(t *testing.T, root string) string {
	t.Helper()
	path := filepath.Join(root, m.folder, m.file)
	source, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if n := bytes.Count(source, []byte(m.old)); n != 1 {
		t.Fatalf("%s has this text %d times, want once:\n%s", m.file, n, m.old)
	}
	dir := t.TempDir()
	mutant, overlay, binary := filepath.Join(dir, m.file), filepath.Join(dir, "overlay.json"), filepath.Join(dir, "mutant.test")
	if runtime.GOOS == "windows" {
		binary += ".exe"
	}
	replace, err := json.Marshal(map[string]map[string]string{"Replace": {path: mutant}})
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string][]byte{mutant: bytes.Replace(source, []byte(m.old), []byte(m.new), 1), overlay: replace} {
		if err := os.WriteFile(name, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), "go", "test", "-c", "-vet=off", "-tags", "invariants", "-overlay", overlay, "-o", binary, "./"+m.folder)
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("it does not compile: %v\n%s", err, out)
	}
	return binary
}

// caughtBy gives the lines that say what failed.
func caughtBy(out []byte) string {
	var said []string
	for line := range strings.Lines(string(out)) {
		if line = strings.TrimSpace(line); strings.HasPrefix(line, "--- FAIL") || strings.Contains(line, "seed ") || strings.Contains(line, "panic: ") {
			said = append(said, line[:min(len(line), 200)])
		}
		if len(said) == 3 {
			break
		}
	}
	return strings.Join(said, "\n")
}
