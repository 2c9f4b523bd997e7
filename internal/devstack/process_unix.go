//go:build unix && !linux

package devstack

import "syscall"

// childAttr puts the child into its own process group. Only Linux has a
// parent-death signal; elsewhere a child outlives a kill -9 of this process.
func childAttr(who *account, _ syscall.Signal) *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Setpgid: true}
	if who != nil {
		attr.Credential = &syscall.Credential{Uid: who.uid, Gid: who.gid}
	}

	return attr
}

// awaitStopped does not wait: only Linux tells the state of a process's threads in a file.
func awaitStopped(string, int) error { return nil }
