//go:build linux

package main

import "testing"

// TestHostilePeersHarmNobodyElse is the campaign peers, a few rounds long.
func TestHostilePeersHarmNobodyElse(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	try(t, "-run", "peers", "-durability", "commit", "-times", "1", "-seed", "30")
}
