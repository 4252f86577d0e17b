//go:build linux

package main

import "testing"

// TestChaosOfTheKernelLeavesNothingBehind is the campaign chaos over network namespaces, a few rounds long.
func TestChaosOfTheKernelLeavesNothingBehind(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	if err := canCable(); err != nil {
		t.Skip(err, "; relays break networks in TestChaosLeavesNothingBehind")
	}
	try(t, "-run", "chaos", "-durability", "commit", "-times", "2", "-network", "namespaces", "-engine", "mariadb")
}

// TestChaosLeavesNothingBehind is the campaign of that name, a few rounds long.
func TestChaosLeavesNothingBehind(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	try(t, "-run", "chaos", "-durability", "commit", "-times", "2")
}
