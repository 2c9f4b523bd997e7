package devstack

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"
)

// stopWithin bounds the wait for a process that was sent SIGSTOP: a thread in a disk's queue stops when it is out of it.
const stopWithin = 30 * time.Second

// awaitStopped waits until every thread of a process that was sent SIGSTOP has stopped: the signal is sent to one of them, and
// on a busy machine the others may run on for a while and answer. A process that is gone is no error.
func awaitStopped(name string, pid int) error {
	for deadline := time.Now().Add(stopWithin); ; time.Sleep(time.Millisecond) {
		running, err := runningThreads(pid)
		if err != nil || running == 0 {
			return err
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("stop %s: %d of its threads still run after %s", name, running, stopWithin)
		}
	}
}

// runningThreads counts the threads of a process that neither stopped nor ended.
func runningThreads(pid int) (running int, err error) {
	folder := fmt.Sprintf("/proc/%d/task", pid)
	threads, err := os.ReadDir(folder)
	if errors.Is(err, os.ErrNotExist) {
		return 0, nil
	}
	for _, t := range threads {
		stat, err := os.ReadFile(folder + "/" + t.Name() + "/stat")
		if err != nil {
			continue // it ended
		}
		// The state follows the name, which stands in parentheses and may hold any.
		rest := bytes.TrimSpace(stat[bytes.LastIndexByte(stat, ')')+1:])
		if len(rest) > 0 && !bytes.ContainsAny(rest[:1], "TtZX") {
			running++
		}
	}

	return running, err
}

// childAttr puts the child into its own process group (an interrupt typed at
// the terminal reaches this process only, which then stops its children in
// order) and has the kernel end it when the thread that started it is gone.
func childAttr(who *account, deathSignal syscall.Signal) *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Setpgid: true, Pdeathsig: deathSignal}
	if who != nil {
		attr.Credential = &syscall.Credential{Uid: who.uid, Gid: who.gid}
	}

	return attr
}
