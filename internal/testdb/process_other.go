//go:build !linux

package testdb

import (
	"os"
	"syscall"
)

// attributes leaves everything as it is: only Linux ties a child's life to its parent's, and only
// there do tests usually run as root.
func attributes(*account, syscall.Signal) *syscall.SysProcAttr { return nil }

// signalGroup sends the signal to a process. That it has ended already is no error.
func signalGroup(p *os.Process, s syscall.Signal) { _ = p.Signal(s) }
