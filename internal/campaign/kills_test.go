//go:build linux

package main

import (
	"testing"
)

// TestKillsLoseNothingAcknowledged is the campaign of that name, a few rounds long.
func TestKillsLoseNothingAcknowledged(t *testing.T) {
	try(t, "-run", "kills", "-times", "2", "-slack", "1s")
}
