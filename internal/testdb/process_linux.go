package testdb

import (
	"os"
	"syscall"
)

// attributes ties the child's life to ours: the kernel kills it when its starter ends.
func attributes(user *account) *syscall.SysProcAttr {
	a := &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if user != nil {
		a.Credential = &syscall.Credential{Uid: uint32(user.uid), Gid: uint32(user.gid)}
	}
	return a
}

// killGroup kills a process and its children. That they have ended already is no error.
func killGroup(p *os.Process) { _ = syscall.Kill(-p.Pid, syscall.SIGKILL) }
