//go:build integration

package integration_test

import (
	"syscall"
	"testing"
	"time"

	"milepost/test/stand"
)

// matcher starts a matcher of the job.
func (j *job) matcher(t *testing.T, name string, more ...string) *stand.Process {
	t.Helper()
	args := append([]string{
		"matcher", "--brokers", j.stack.Brokers[0], "--prefix", j.prefix, "--listen", "127.0.0.1:0", "--log", "json",
		"--session-timeout", "6s", "--solver-secret", "shared",
	}, append(j.territory(), more...)...)
	return stand.Run(t, name, j.program, nil, args...)
}

// A9, A10, A19, F15, F31: jobs are decided by three matchers, one killed with -9 in mid-job, one stopped for 10 s as a process that hangs,
// one joining late: nothing lost, nothing repeated, each vehicle in order; worker and matchers drain and exit with 0.
func TestRemoteSolvingSurvivesMatchers(t *testing.T) {
	j := newJob(t, useStack(t), 100)
	w := j.worker(t, "worker", "--solver", "remote", "--solver-secret", "shared")
	w.WaitLine(time.Minute, "recovered")
	killed, stopped := j.matcher(t, "killed"), j.matcher(t, "stopped")
	killed.WaitLine(time.Minute, "matcher")
	stopped.WaitLine(time.Minute, "matcher")
	var late *stand.Process
	j.drive(t, 30, func(second int) {
		switch second {
		case 6:
			killed.Kill()
		case 9:
			late = j.matcher(t, "late")
		case 14:
			stopped.Signal(syscall.SIGSTOP)
		case 24:
			stopped.Signal(syscall.SIGCONT)
		}
	})
	if v := j.judged(t, time.Minute); !v.Clean() {
		t.Errorf("after matchers were killed and stopped: %s", v)
	}
	for _, p := range []*stand.Process{w, stopped, late} {
		if code := p.Terminate(40 * time.Second); code != 0 {
			t.Errorf("drain: exit code %d", code)
		}
	}
	if n := j.preparedLeft(t); n != 0 {
		t.Errorf("%d commits left prepared after the drain", n)
	}
}
