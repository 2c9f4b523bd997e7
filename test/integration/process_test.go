//go:build integration

package integration_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
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

// Process is a run of the program whose output is kept. It does not outlive
// the test.
type Process struct {
	name string
	cmd  *exec.Cmd
	out  *lineLog
	done chan struct{}
	err  error // read after done
}

// StartProcess runs the program with args and keeps what it says on stdout and
// stderr. The test's cleanup kills it, and shows its last lines if the test
// failed.
func StartProcess(t *testing.T, name, path string, args ...string) *Process {
	t.Helper()
	p := &Process{name: name, out: &lineLog{changed: make(chan struct{})}, done: make(chan struct{})}
	p.cmd = exec.Command(path, args...)
	p.cmd.Stdout, p.cmd.Stderr = p.out, p.out
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	p.cmd.WaitDelay = 5 * time.Second
	if err := p.cmd.Start(); err != nil {
		t.Fatalf("start %s: %v", name, err)
	}
	go func() {
		p.err = p.cmd.Wait()
		close(p.done)
	}()
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill() // gone already is fine
		<-p.done
		if t.Failed() {
			t.Logf("%s said last:\n%s", name, p.out.tail(40))
		}
	})

	return p
}

// Kill ends the process as kill -9 does and waits until it is gone.
func (p *Process) Kill(t *testing.T) {
	t.Helper()
	p.Signal(t, syscall.SIGKILL)
	<-p.done
}

// Pause stops the process in its tracks (SIGSTOP); Resume lets it go on.
func (p *Process) Pause(t *testing.T) {
	t.Helper()
	p.Signal(t, syscall.SIGSTOP)
}

// Resume lets the process go on after Pause.
func (p *Process) Resume(t *testing.T) {
	t.Helper()
	p.Signal(t, syscall.SIGCONT)
}

// Signal sends sig; a process that is gone fails the test.
func (p *Process) Signal(t *testing.T, sig syscall.Signal) {
	t.Helper()
	if err := p.cmd.Process.Signal(sig); err != nil {
		t.Fatalf("signal %s with %s: %v", p.name, sig, err)
	}
}

// Terminate asks the process to end (SIGTERM) and returns its exit code.
func (p *Process) Terminate(t *testing.T, grace time.Duration) int {
	t.Helper()
	p.Signal(t, syscall.SIGTERM)

	return p.Wait(t, grace)
}

// Wait waits until the process has ended by itself and returns its exit code;
// -1 when a signal ended it.
func (p *Process) Wait(t *testing.T, d time.Duration) int {
	t.Helper()
	select {
	case <-p.done:
	case <-limit(t, d).Done():
		t.Fatalf("%s has not ended within %s", p.name, d)
	}
	var exit *exec.ExitError
	if p.err != nil && !errors.As(p.err, &exit) {
		t.Fatalf("wait for %s: %v", p.name, p.err)
	}

	return p.cmd.ProcessState.ExitCode()
}

// WaitLine waits until the process has said a line that contains part, and
// returns that line.
func (p *Process) WaitLine(t *testing.T, d time.Duration, part string) string {
	t.Helper()
	line, err := p.out.wait(limit(t, d), p.done, part)
	if err != nil {
		t.Fatalf("%s: wait for a line with %q: %v", p.name, part, err)
	}

	return line
}

// Lines counts the lines so far that contain part.
func (p *Process) Lines(part string) int { return p.out.count(part) }

// lineLog keeps lines in order and wakes whoever waits for one.
type lineLog struct {
	mu      sync.Mutex
	lines   []string
	partial []byte
	changed chan struct{} // closed and replaced at each line
}

func (l *lineLog) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.partial = append(l.partial, b...)
	for {
		line, rest, ok := bytes.Cut(l.partial, []byte("\n"))
		if !ok {
			break
		}
		l.lines = append(l.lines, string(line))
		l.partial = rest
	}
	close(l.changed)
	l.changed = make(chan struct{})

	return len(b), nil
}

func (l *lineLog) wait(ctx context.Context, ended <-chan struct{}, part string) (string, error) {
	seen := 0
	for {
		l.mu.Lock()
		for ; seen < len(l.lines); seen++ {
			if strings.Contains(l.lines[seen], part) {
				line := l.lines[seen]
				l.mu.Unlock()

				return line, nil
			}
		}
		changed := l.changed
		l.mu.Unlock()
		select {
		case <-changed:
		case <-ended:
			// What it said last is in the log before done is closed.
			if l.count(part) == 0 {
				return "", errors.New("the process has ended")
			}
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}
}

func (l *lineLog) count(part string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := 0
	for _, line := range l.lines {
		if strings.Contains(line, part) {
			n++
		}
	}

	return n
}

func (l *lineLog) tail(n int) string {
	l.mu.Lock()
	defer l.mu.Unlock()

	return strings.Join(l.lines[max(len(l.lines)-n, 0):], "\n")
}
