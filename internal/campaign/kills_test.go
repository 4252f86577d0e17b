//go:build linux

package main

import (
	"testing"
)

// TestKillsLoseNothingAcknowledged is the campaign of that name, a few rounds long.
func TestKillsLoseNothingAcknowledged(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	try(t, "-run", "kills", "-times", "1", "-slack", "1s")
}
