package devstack

import "syscall"

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
