package main

import (
	"os"
	"syscall"
	"unsafe"
)

// fromTerminal reports whether a signal is most likely one that the terminal sent to all its foreground
// processes: isotap, and the command with it, are in the foreground of one.
func fromTerminal(s os.Signal) bool {
	if s != os.Interrupt && s != syscall.SIGQUIT {
		return false
	}
	tty, err := os.Open("/dev/tty")
	if err != nil {
		return false // no terminal: somebody sent it to isotap alone
	}
	defer tty.Close()
	var group int32
	_, _, errno := syscall.Syscall(syscall.SYS_IOCTL, tty.Fd(), syscall.TIOCGPGRP, uintptr(unsafe.Pointer(&group)))
	return errno == 0 && int(group) == syscall.Getpgrp()
}
