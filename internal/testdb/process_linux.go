package testdb

import (
	"os"
	"syscall"
)

// attributes ties the child's life to ours: the kernel sends it the signal when its starter ends.
func attributes(user *account, last syscall.Signal) *syscall.SysProcAttr {
	a := &syscall.SysProcAttr{Setpgid: true, Pdeathsig: last}
	if user != nil {
		a.Credential = &syscall.Credential{Uid: uint32(user.uid), Gid: uint32(user.gid)}
	}
	return a
}

// signalGroup sends the signal to a process and its children. That they have ended already is no error.
func signalGroup(p *os.Process, s syscall.Signal) { _ = syscall.Kill(-p.Pid, s) }
