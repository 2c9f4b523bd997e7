//go:build linux

package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"

	"milepost/test/chaos/judge"
)

// worker is a place at which one orchestrator process runs; one that ends without being told to is started again, as a supervisor would.
type worker struct {
	name, program, dir string
	args, env          []string

	mu      sync.Mutex
	wanted  bool
	process *running // nil: none runs
	starts  int
	exits   []judge.Exit
	running sync.WaitGroup
}

// running is one process of a worker.
type running struct {
	cmd  *exec.Cmd
	log  string
	done chan struct{}
	code int // read after done
}

// start makes the worker run and stay.
func (w *worker) start() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.wanted = true
	if w.process != nil {
		return nil
	}
	return w.startLocked()
}

func (w *worker) startLocked() error {
	w.starts++
	r := &running{log: filepath.Join(w.dir, fmt.Sprintf("%s-%d.log", w.name, w.starts)), done: make(chan struct{})}
	log, err := os.Create(r.log)
	if err != nil {
		return err
	}
	r.cmd = exec.Command(w.program, w.args...) //nolint:noctx // signals end it
	r.cmd.Env = append(os.Environ(), w.env...)
	r.cmd.Stdout, r.cmd.Stderr = log, log
	r.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	started := make(chan error, 1) // capacity 1: the sender never waits
	w.running.Go(func() {
		runtime.LockOSThread() // never unlocked: Linux sends the parent-death signal when the thread that forked ends
		err := r.cmd.Start()
		started <- err
		if err == nil {
			w.attend(r)
		}
	})
	err = <-started
	_ = log.Close() // the child has its own
	if err != nil {
		return fmt.Errorf("start %s: %w", w.name, err)
	}
	w.process = r
	return nil
}

// restartDelay is how long a supervisor lets a worker be that ended by itself.
const restartDelay = time.Second

// attend waits for the process, and starts the next one where nobody told it to end.
func (w *worker) attend(r *running) {
	_ = r.cmd.Wait() // the exit code says it
	r.code = r.cmd.ProcessState.ExitCode()
	close(r.done)
	w.mu.Lock()
	w.process = nil
	w.exits = append(w.exits, judge.Exit{Worker: filepath.Base(r.log), Code: r.code, Panic: lastWords(r.log)})
	w.mu.Unlock()
	time.Sleep(restartDelay)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.wanted && w.process == nil {
		if err := w.startLocked(); err != nil {
			w.exits = append(w.exits, judge.Exit{Worker: w.name, Code: -1, Panic: err.Error()})
		}
	}
}

// lastWords gives what a process said of its panic.
func lastWords(file string) string {
	b, err := os.ReadFile(file)
	if err != nil {
		return ""
	}
	for _, word := range []string{"panic: ", "fatal error: ", "SIGSEGV"} {
		if _, after, ok := bytes.Cut(b, []byte(word)); ok {
			return word + strings.ReplaceAll(string(after[:min(len(after), 1500)]), "\n", " | ")
		}
	}
	return ""
}

// kill ends the process as kill -9 does and waits until it is gone; the worker stays down.
func (w *worker) kill() {
	if r := w.unwanted(); r != nil {
		_ = r.cmd.Process.Kill() // gone already is fine
		<-r.done
	}
}

func (w *worker) unwanted() *running {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.wanted = false
	return w.process
}

// terminate asks the process to end and waits; one that does not within the bound is killed. The code is -1 then, and 0 where none ran.
func (w *worker) terminate(ctx context.Context, bound time.Duration) int {
	r := w.unwanted()
	if r == nil {
		return 0
	}
	_ = r.cmd.Process.Signal(syscall.SIGTERM) // gone already is fine
	bounded, cancel := context.WithTimeout(ctx, bound)
	defer cancel()
	select {
	case <-r.done:
		return r.code
	case <-bounded.Done():
		_ = r.cmd.Process.Kill()
		<-r.done
		return -1
	}
}

// signal sends to the process, if one runs.
func (w *worker) signal(sig syscall.Signal) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.process != nil {
		_ = w.process.cmd.Process.Signal(sig) // gone already is fine
	}
}

// dump ends the process as Go programs end that show their goroutines; the worker stays down.
func (w *worker) dump(ctx context.Context) {
	if r := w.unwanted(); r != nil {
		_ = r.cmd.Process.Signal(syscall.SIGQUIT) // gone already is fine
		bounded, cancel := context.WithTimeout(ctx, 10*time.Second)
		defer cancel()
		select {
		case <-r.done:
		case <-bounded.Done():
		}
	}
}

// ended gives how the processes have ended so far.
func (w *worker) ended() []judge.Exit {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]judge.Exit(nil), w.exits...)
}

// close kills what runs and waits for the attendants.
func (w *worker) close() {
	w.kill()
	w.running.Wait()
}
