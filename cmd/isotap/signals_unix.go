//go:build !windows

package main

import (
	"os"
	"syscall"
)

// forwarded are the signals that a command gets from isotap.
var forwarded = []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1,
	syscall.SIGUSR2}
