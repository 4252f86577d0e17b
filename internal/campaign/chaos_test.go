//go:build linux

package main

import "testing"

// TestChaosLeavesNothingBehind is the campaign of that name, a few rounds long.
func TestChaosLeavesNothingBehind(t *testing.T) {
	try(t, "-run", "chaos", "-durability", "commit", "-times", "2")
}
