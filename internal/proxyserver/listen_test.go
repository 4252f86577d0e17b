package proxyserver

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestStaleSocketIsReplacedAndNothingElse(t *testing.T) {
	dir := t.TempDir()
	stale, file := filepath.Join(dir, "stale"), filepath.Join(dir, "file")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: stale, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false) // as if its process had been killed
	l.Close()
	if err := os.WriteFile(file, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	all, err := listen("unix:"+stale, defaultSocketMode, false)
	if err != nil {
		t.Fatalf("a stale socket: %v", err)
	}
	closeAll(all)
	if _, err := listen("unix:"+file, defaultSocketMode, false); err == nil ||
		!strings.Contains(err.Error(), "no socket") {
		t.Errorf("a file: %v", err)
	}
	if text, err := os.ReadFile(file); string(text) != "precious" {
		t.Errorf("the file holds %q, %v", text, err)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "stale*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestListenersThatCannotBeAreNamed(t *testing.T) {
	for listen, want := range map[string]string{"systemd": "LISTEN_FDS", "systemd:clients": "systemd:clients",
		"unix:@isotap": "abstract"} {
		all, err := listenAt(listen, defaultSocketMode, false)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", listen, errors.Join(err, closeAll(all)))
		}
	}
}
