// Package private makes files that hold what clients read and wrote: they are their user's alone, whatever the umask.
package private

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
)

const (
	fileMode fs.FileMode = 0o600
	dirMode  fs.FileMode = 0o700
)

// Create makes a file, or empties the one that is there, whose permissions it takes back. What is no regular file, such
// as /dev/stdout or a pipe, keeps its own.
func Create(name string) (*os.File, error) {
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_TRUNC, fileMode)
	if errors.Is(err, fs.ErrPermission) {
		f, err = os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, fileMode) // a pipe that others read
	}
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && info.Mode().IsRegular() && info.Mode().Perm() != fileMode {
		err = f.Chmod(fileMode)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("make %s private: %w", name, err), f.Close())
	}
	return f, nil
}

// WriteFile writes a file that [Create] makes.
func WriteFile(name string, text []byte) error {
	f, err := Create(name)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	return errors.Join(err, f.Close())
}

// MkdirAll makes a directory and those above it that are missing. Those that are there stay as they are.
func MkdirAll(dir string) error { return os.MkdirAll(dir, dirMode) }
