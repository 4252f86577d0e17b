//go:build unix

package main

import (
	"os"
	"os/exec"
	"syscall"
)

// group has a program, and what it starts, be signalled together: PHP's server does not end those that work for it.
func group(c *exec.Cmd) { c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// signalGroup sends a signal to a program of its own group and to what it has started. That they have ended is no
// error.
func signalGroup(c *exec.Cmd, s os.Signal) error {
	_ = syscall.Kill(-c.Process.Pid, s.(syscall.Signal))
	return nil
}
