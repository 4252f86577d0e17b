package recorder

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// What a recording holds is its user's alone.
const (
	privateDir  fs.FileMode = 0o700
	privateFile fs.FileMode = 0o600
)

// makePrivate gives a recording's directory and the files in it their permissions, whatever the umask was when they
// were made: Badger makes files as the umask lets it. The directory keeps others out before that, too.
func makePrivate(dir string) error {
	if err := setMode(dir, privateDir); err != nil {
		return err
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("permissions of recording: %w", err)
	}
	for _, e := range entries {
		if !e.Type().IsRegular() {
			continue // a socket, or a link to one
		}
		// Badger may have taken the file away again.
		if err := setMode(filepath.Join(dir, e.Name()), privateFile); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// setMode sets a file's permissions if it has others.
func setMode(path string, mode fs.FileMode) error {
	info, err := os.Stat(path)
	if err == nil && info.Mode().Perm() != mode {
		err = os.Chmod(path, mode)
	}
	if err != nil {
		return fmt.Errorf("permissions of recording: %w", err)
	}
	return nil
}
