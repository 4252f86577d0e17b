//go:build linux

package recorder

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/isotap/isotap/history"
)

// fingerprint returns for each file of a directory, and for itself, what it holds, its mode and when it changed.
func fingerprint(t *testing.T, dir string) map[string]string {
	t.Helper()
	prints := make(map[string]string)
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		text := []byte(nil)
		if e.Type().IsRegular() {
			if text, err = os.ReadFile(path); err != nil {
				return err
			}
		}
		prints[path] = fmt.Sprintf("%x %v %v", sha256.Sum256(text), info.Mode(), info.ModTime())
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return prints
}

// TestReadingChangesNothing reads recordings in every state that there is, the last one while it is written.
func TestReadingChangesNothing(t *testing.T) {
	writing := t.TempDir()
	w := create(t, writing, Options{})
	defer closed(t, w)
	for seq := uint32(1); seq < 40; seq++ {
		record(t, w, plainTxn(w.Run(), 1, seq))
	}
	flush(t, w)
	for name, recording := range map[string]struct {
		dir  string
		want int
	}{"closed": {largeRecording(t, true), damagedTxns}, "killed": {largeRecording(t, false), damagedTxns / 2},
		"being written": {writing, 39}} {
		t.Run(name, func(t *testing.T) {
			before := fingerprint(t, recording.dir)
			if read, err := tryRead(t, recording.dir); err != nil || read != recording.want {
				t.Errorf("%d transactions were read, want %d: %v", read, recording.want, err)
			}
			if after := fingerprint(t, recording.dir); !maps.Equal(before, after) {
				t.Errorf("the directory is\n%v\nand was\n%v", after, before)
			}
		})
	}
}

// TestReadOnlyFileSystemIsRead mounts a recording read-only, which only root may.
func TestReadOnlyFileSystemIsRead(t *testing.T) {
	for name, clean := range map[string]bool{"closed": true, "killed": false} {
		t.Run(name, func(t *testing.T) {
			dir := largeRecording(t, clean)
			mounted := t.TempDir()
			mount(t, "--bind", dir, mounted)
			remount(t, "remount,bind,ro", mounted)
			if err := os.WriteFile(filepath.Join(mounted, "x"), nil, 0o600); err == nil {
				t.Fatal("the file system takes writes")
			}
			want := damagedTxns / 2
			if clean {
				want = damagedTxns
			}
			if read, err := tryRead(t, mounted); err != nil || read != want {
				t.Errorf("%d transactions were read, want %d: %v", read, want, err)
			}
			if _, err := Create(mounted, history.Info{}, Options{}); err == nil {
				t.Error("a run was added to a recording that takes no writes")
			} else if errors.Is(err, ErrCorrupt) {
				t.Errorf("Create gave %v", err)
			}
		})
	}
}

// mount mounts a file system for the test. Who may not mount has another test to rely on.
func mount(t *testing.T, args ...string) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("only root mounts file systems; TestReadingChangesNothing needs none")
	}
	if out, err := exec.CommandContext(t.Context(), "mount", args...).CombinedOutput(); err != nil {
		t.Fatalf("mount %v: %v: %s", args, err, out)
	}
	t.Cleanup(func() {
		if out, err := exec.Command("umount", "-l", args[len(args)-1]).CombinedOutput(); err != nil {
			t.Errorf("umount: %v: %s", err, out)
		}
	})
}

func remount(t *testing.T, options, at string) {
	t.Helper()
	if out, err := exec.CommandContext(t.Context(), "mount", "-o", options, at).CombinedOutput(); err != nil {
		t.Fatalf("mount -o %s: %v: %s", options, err, out)
	}
}
