//go:build linux

package main

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
)

// clockEnv names the file that a worker's wall clock is stepped by.
const clockEnv = "CHAOS_CLOCK"

// clockHook is put into the program that is tested, and into no other: it maps the file, whose eight bytes are the step in seconds.
const clockHook = `package main

import (
	"os"
	"syscall"
	"time"
	"unsafe"
)

func init() {
	name := os.Getenv("` + clockEnv + `")
	if name == "" {
		return
	}
	f, err := os.Open(name)
	if err != nil {
		panic(err)
	}
	b, err := syscall.Mmap(int(f.Fd()), 0, 8, syscall.PROT_READ, syscall.MAP_SHARED)
	if err != nil {
		panic(err)
	}
	time.ChaosStep = (*int64)(unsafe.Pointer(&b[0]))
}
`

// buildProgram builds the worker with its invariants checked and a wall clock that can be stepped: the standard library's time.Now adds what
// the hook points at (go build -overlay; no file of the tree or of Go's is touched). Timers and durations go by the monotonic clock, as
// they do when an operator or NTP steps a machine's.
func buildProgram(dir string) (string, error) {
	root, err := exec.Command("go", "env", "GOROOT").Output() //nolint:noctx // a moment
	if err != nil {
		return "", fmt.Errorf("go env: %w", err)
	}
	original := filepath.Join(strings.TrimSpace(string(root)), "src", "time", "time.go")
	source, err := os.ReadFile(original)
	if err != nil {
		return "", err
	}
	const now = "func Now() Time {\n\tsec, nsec, mono := runtimeNow()\n"
	if strings.Count(string(source), now) != 1 {
		return "", errors.New("this Go's time.Now is not the one that the clock hook knows")
	}
	stepped := strings.Replace(string(source), now, "var ChaosStep *int64\n\n"+now+"\tif ChaosStep != nil {\n\t\tsec += *ChaosStep\n\t}\n", 1)
	folder, err := exec.Command("go", "list", "-f", "{{.Dir}}", "milepost/cmd/orchestrator").Output() //nolint:noctx // a moment
	if err != nil {
		return "", fmt.Errorf("go list: %w", err)
	}
	hook := filepath.Join(strings.TrimSpace(string(folder)), "clock_hook_of_chaos.go")
	replace := map[string]string{}
	for place, content := range map[string]string{original: stepped, hook: clockHook} {
		file := filepath.Join(dir, filepath.Base(place))
		replace[place] = file
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			return "", err
		}
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	file, program := filepath.Join(dir, "overlay.json"), filepath.Join(dir, "orchestrator")
	if err := os.WriteFile(file, overlay, 0o600); err != nil {
		return "", err
	}
	//nolint:noctx // it is bounded by what it builds
	out, err := exec.Command("go", "build", "-overlay", file, "-tags", "nodev,invariants", "-o", program, "milepost/cmd/orchestrator").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("build the program: %w: %s", err, out)
	}
	return program, nil
}

// wallClock is what a worker's wall clock is stepped by.
type wallClock struct {
	file string
	step []byte
}

func newWallClock(file string) (*wallClock, error) {
	if err := os.WriteFile(file, make([]byte, 8), 0o600); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(file, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	step, err := syscall.Mmap(int(f.Fd()), 0, 8, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("map a clock: %w", err)
	}
	return &wallClock{file: file, step: step}, nil
}

func (c *wallClock) set(seconds int64) { binary.NativeEndian.PutUint64(c.step, uint64(seconds)) }

func (c *wallClock) close() { _ = syscall.Munmap(c.step) }
