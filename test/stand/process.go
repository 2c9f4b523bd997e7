package stand

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// Process is a run of the program. It does not outlive the test.
type Process struct {
	Name string

	tb   testing.TB
	cmd  *exec.Cmd
	out  *lines
	done chan struct{}
	err  error // read after done
}

// Run starts a program, with settings added to the environment.
func Run(tb testing.TB, name, path string, env []string, args ...string) *Process {
	tb.Helper()
	p := &Process{Name: name, tb: tb, out: &lines{changed: make(chan struct{})}, done: make(chan struct{})}
	p.cmd = exec.Command(path, args...) //nolint:noctx // it is ended by the test's cleanup
	p.cmd.Env = append(os.Environ(), env...)
	p.cmd.Stdout, p.cmd.Stderr = p.out, p.out
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	p.cmd.WaitDelay = 5 * time.Second
	if err := p.cmd.Start(); err != nil {
		tb.Fatalf("start %s: %v", name, err)
	}
	go func() {
		p.err = p.cmd.Wait()
		close(p.done)
	}()
	tb.Cleanup(func() {
		_ = p.cmd.Process.Kill() // gone already is fine
		<-p.done
		if tb.Failed() {
			tb.Logf("%s said last:\n%s", name, p.out.tail(60))
		}
	})
	return p
}

// PID is the process's id.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Signal sends sig; a process that is gone fails the test.
func (p *Process) Signal(sig syscall.Signal) {
	p.tb.Helper()
	if err := p.cmd.Process.Signal(sig); err != nil {
		p.tb.Fatalf("signal %s with %s: %v", p.Name, sig, err)
	}
}

// Kill ends the process as kill -9 does and waits until it is gone.
func (p *Process) Kill() {
	p.tb.Helper()
	p.Signal(syscall.SIGKILL)
	<-p.done
}

// Terminate asks the process to end and waits for its exit code; -1 when a signal ended it.
func (p *Process) Terminate(grace time.Duration) int {
	p.tb.Helper()
	p.Signal(syscall.SIGTERM)
	return p.Wait(grace)
}

// Wait waits until the process has ended and returns its exit code; -1 when a signal ended it.
func (p *Process) Wait(d time.Duration) int {
	p.tb.Helper()
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-p.done:
	case <-timer.C:
		p.tb.Fatalf("%s has not ended within %s", p.Name, d)
	}
	var exit *exec.ExitError
	if p.err != nil && !errors.As(p.err, &exit) {
		p.tb.Fatalf("wait for %s: %v", p.Name, p.err)
	}
	return p.cmd.ProcessState.ExitCode()
}

// WaitLine waits until the process has said a line that contains part, and gives the line.
func (p *Process) WaitLine(d time.Duration, part string) string {
	p.tb.Helper()
	ctx, cancel := context.WithTimeout(p.tb.Context(), d)
	defer cancel()
	line, err := p.out.wait(ctx, p.done, part)
	if err != nil {
		p.tb.Fatalf("%s: wait for a line with %q: %v", p.Name, part, err)
	}
	return line
}

// Lines gives the lines so far that contain part.
func (p *Process) Lines(part string) []string { return p.out.with(part) }

// lines keeps what was said and wakes whoever waits for a line.
type lines struct {
	mu      sync.Mutex
	all     []string
	partial []byte
	changed chan struct{} // closed and replaced at each write
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.partial = append(l.partial, b...)
	for {
		line, rest, ok := bytes.Cut(l.partial, []byte("\n"))
		if !ok {
			break
		}
		l.all, l.partial = append(l.all, string(line)), rest
	}
	close(l.changed)
	l.changed = make(chan struct{})
	return len(b), nil
}

func (l *lines) wait(ctx context.Context, ended <-chan struct{}, part string) (string, error) {
	for {
		l.mu.Lock()
		changed := l.changed
		l.mu.Unlock()
		over := false
		select {
		case <-ended:
			over = true // what it said last is here by now
		default:
		}
		if found := l.with(part); len(found) > 0 {
			return found[0], nil
		}
		if over {
			return "", errors.New("the process has ended")
		}
		select {
		case <-changed:
		case <-ended:
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}
}

func (l *lines) with(part string) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var found []string
	for _, line := range l.all {
		if strings.Contains(line, part) {
			found = append(found, line)
		}
	}
	return found
}

func (l *lines) tail(n int) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.all[max(len(l.all)-n, 0):], "\n")
}
