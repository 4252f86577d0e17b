//go:build !unix

package main

import (
	"os"
	"os/exec"
)

func group(*exec.Cmd) {}

func signalGroup(c *exec.Cmd, s os.Signal) error { return c.Process.Signal(s) }
