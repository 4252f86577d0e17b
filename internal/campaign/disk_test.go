//go:build linux

package main

import (
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"
)

// TestDisksComeAndGo is the campaign disk, with a disk that fails while transactions are refused, and one that is full
// while they are.
func TestDisksComeAndGo(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	if os.Geteuid() != 0 {
		t.Skip("the campaign mounts a disk, and needs root for that; that a full disk is told and left is covered by the recorder's tests of space")
	}
	try(t, "-run", "disk", "-durability", "commit", "-times", "1", "-seed", "22", "-slack", "1s")
}

func TestRecordingsAreKeptWithoutSockets(t *testing.T) {
	from, to := t.TempDir(), filepath.Join(t.TempDir(), "recording")
	if err := os.WriteFile(filepath.Join(from, "000001.vlog"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", filepath.Join(from, "follow.sock"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if err := keepFiles(to, from); err != nil {
		t.Fatal(err)
	}
	if kept, err := os.ReadFile(filepath.Join(to, "000001.vlog")); err != nil || string(kept) != "x" {
		t.Errorf("kept %q, %v", kept, err)
	}
}

func TestSlowServerIsNoFaultOfTheDisk(t *testing.T) {
	for why, want := range map[string]bool{
		"the server does not answer: context deadline exceeded":                true,
		"the server does not answer: dial tcp 127.0.0.1:1: connection refused": false,
		"recording stands still: not recorded":                                 false,
	} {
		if got := fit(http.StatusServiceUnavailable, why); got != want {
			t.Errorf("fit(%q) = %t", why, got)
		}
	}
}
