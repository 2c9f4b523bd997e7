package devstack

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// logTail is how many bytes of a dead child's log go into the error.
const logTail = 2000

// account is a user that a child runs under; nil is this process's own.
type account struct{ uid, gid uint32 }

// command says how to start a child.
type command struct {
	name        string // for errors
	path        string
	args        []string
	dir         string
	env         []string // nil: this process's
	logFile     string   // stdout and stderr, appended
	who         *account
	deathSignal syscall.Signal
}

// process is a running child. The goroutine that started it waits for it;
// done is closed afterwards.
type process struct {
	name    string
	logFile string
	pid     int
	done    chan struct{}
	waitErr error // read after done
}

// startProcess starts the child and a goroutine that waits for it.
//
// The goroutine keeps its thread: Linux sends the parent-death signal when the
// thread that forked ends, and the Go runtime may end an idle thread.
func startProcess(c command) (*process, error) {
	log, err := os.OpenFile(c.logFile, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644) //nolint:gosec // a server's log
	if err != nil {
		return nil, fmt.Errorf("open the log of %s: %w", c.name, err)
	}
	defer func() { _ = log.Close() }()

	p := &process{name: c.name, logFile: c.logFile, done: make(chan struct{})}
	cmd := exec.Command(c.path, c.args...) //nolint:noctx // it outlives the starting context; Stop ends it
	cmd.Dir, cmd.Env = c.dir, c.env
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = childAttr(c.who, c.deathSignal)

	started := make(chan error, 1) // capacity 1: the sender never waits
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine, after the child

		err := cmd.Start()
		if err == nil {
			p.pid = cmd.Process.Pid
		}
		started <- err
		if err != nil {
			return
		}
		p.waitErr = cmd.Wait()
		close(p.done)
	}()

	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", c.name, err)
	}

	return p, nil
}

// alive tells whether the child still runs.
func (p *process) alive() bool {
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

// signal sends sig to the child; a child that is gone is no error.
func (p *process) signal(sig syscall.Signal) error {
	if !p.alive() {
		return nil
	}
	if err := syscall.Kill(p.pid, sig); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("signal %s with %s: %w", p.name, sig, err)
	}

	return nil
}

// pause stops the child in its tracks and waits until it stands still.
func (p *process) pause() error {
	if err := p.signal(syscall.SIGSTOP); err != nil || !p.alive() {
		return err
	}

	return awaitStopped(p.name, p.pid)
}

// stop sends each signal in turn and waits up to grace after each; the last
// resort is SIGKILL. It returns when the child is gone.
func (p *process) stop(grace time.Duration, signals ...syscall.Signal) error {
	for _, sig := range signals {
		if err := p.signal(sig); err != nil {
			return err
		}
		timer := time.NewTimer(grace)
		select {
		case <-p.done:
			timer.Stop()

			return nil
		case <-timer.C:
		}
	}
	if err := p.signal(syscall.SIGKILL); err != nil {
		return err
	}
	<-p.done

	return nil
}

// waitReady calls probe every interval until it succeeds, the child ends, or
// ctx is done.
func (p *process) waitReady(ctx context.Context, interval time.Duration, probe func(context.Context) error) error {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()

	var last error
	for {
		attempt, cancel := context.WithTimeout(ctx, 5*time.Second)
		last = probe(attempt)
		cancel()
		if last == nil {
			return nil
		}
		select {
		case <-p.done:
			return fmt.Errorf("%s ended while starting (%s): %s", p.name, exitText(p.waitErr), p.tail())
		case <-ctx.Done():
			return fmt.Errorf("wait for %s: %w (last: %w)", p.name, context.Cause(ctx), last)
		case <-ticker.C:
		}
	}
}

// tail is the end of the child's log on one line.
func (p *process) tail() string {
	b, err := os.ReadFile(p.logFile)
	if err != nil {
		return "no log"
	}
	if len(b) > logTail {
		b = b[len(b)-logTail:]
	}

	return strings.Join(strings.FieldsFunc(string(bytes.TrimSpace(b)), func(r rune) bool { return r == '\n' }), " | ")
}

func exitText(err error) string {
	if err == nil {
		return "exit status 0"
	}

	return err.Error()
}

// runTool runs a short-lived program to its end and returns its output; the
// error carries the output's end.
func runTool(ctx context.Context, c command, stdin string) (string, error) {
	cmd := exec.CommandContext(ctx, c.path, c.args...)
	cmd.Dir, cmd.Env = c.dir, c.env
	cmd.SysProcAttr = childAttr(c.who, syscall.SIGKILL)
	cmd.WaitDelay = 5 * time.Second
	if stdin != "" {
		cmd.Stdin = strings.NewReader(stdin)
	}
	var out, diag bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &diag

	// Stay on one thread from fork to wait, for the parent-death signal.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := cmd.Run(); err != nil {
		text := strings.TrimSpace(diag.String() + " " + out.String())
		if len(text) > logTail {
			text = text[len(text)-logTail:]
		}

		return "", fmt.Errorf("run %s: %w: %s", c.name, err, strings.ReplaceAll(text, "\n", " | "))
	}

	return out.String(), nil
}
