//go:build !linux

package main

import "os"

// fromTerminal is not known on this system.
func fromTerminal(os.Signal) bool { return false }
