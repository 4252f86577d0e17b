//go:build linux

package main

import (
	"os"
	"testing"
)

// TestDisksFillUpAndRecover is the campaign disk, a few rounds long.
func TestDisksFillUpAndRecover(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("it mounts a disk, and needs root for that")
	}
	try(t, "-run", "disk", "-times", "3")
}
