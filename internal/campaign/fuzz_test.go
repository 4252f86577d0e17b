//go:build linux

package main

import (
	"os"
	"path/filepath"
	"testing"
)

// TestFuzzTargetsRunAndAreCounted is the campaign fuzz, with one target for a second.
func TestFuzzTargetsRunAndAreCounted(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	corpus := t.TempDir()
	try(t, "-run", "fuzz", "-duration", "30s", "-times", "1", "-corpus", corpus)
	counts, err := os.ReadFile(filepath.Join(corpus, "fuzz.json"))
	if err != nil || len(counts) < len(`{"x": 1}`) {
		t.Errorf("how often targets ran: %s, %v", counts, err)
	}
}
