//go:build !linux

package testdb

import (
	"os"
	"syscall"
)

// attributes leaves everything as it is: only Linux ties a child's life to its parent's, and only
// there do tests usually run as root.
func attributes(*account) *syscall.SysProcAttr { return nil }

// killGroup kills a process. That it has ended already is no error.
func killGroup(p *os.Process) { _ = p.Kill() }
