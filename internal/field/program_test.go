//go:build unix

package main

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestNothingOutlivesAProgram has one start another that it does not end itself.
func TestNothingOutlivesAProgram(t *testing.T) {
	answers := httptest.NewServer(http.NotFoundHandler())
	defer answers.Close()
	dir := t.TempDir()
	p := program{path: "sh", args: []string{"-c", "sleep 600 & echo $! > child; wait"}, dir: dir, log: filepath.Join(dir, "log"),
		ready: answers.URL, stop: syscall.SIGTERM}
	child := 0
	err := p.while(t.Context(), func() (err error) {
		for deadline := time.Now().Add(5 * time.Second); child == 0 && time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
			text, _ := os.ReadFile(filepath.Join(dir, "child")) // it may not be there yet
			child, _ = strconv.Atoi(strings.TrimSpace(string(text)))
		}
		return nil
	})
	if err != nil || child == 0 {
		t.Fatalf("child %d: %v", child, err)
	}
	for deadline := time.Now().Add(5 * time.Second); runs(child); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			_ = syscall.Kill(child, syscall.SIGKILL)
			t.Fatal("what the program started runs on")
		}
	}
}

// runs reports whether a process runs: one that has ended, and that nobody has asked for its end, does not.
func runs(pid int) bool {
	stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	return syscall.Kill(pid, 0) == nil && (err != nil || !strings.Contains(string(stat), ") Z "))
}
