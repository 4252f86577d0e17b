//go:build linux

package main

import "testing"

// TestHostileTextsAreCounted is the campaign splicing, with a few texts.
func TestHostileTextsAreCounted(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	try(t, "-run", "splicing", "-engine", "postgresql", "-times", "1", "-texts", "60")
}
