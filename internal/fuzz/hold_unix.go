//go:build linux || darwin

package fuzz

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// hold keeps other hunts out of a directory until the function that it returns is called, or the process ends.
func hold(dir string) (leave func() error, err error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, fmt.Errorf("lock the hunt's directory: %w", err)
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		err = fmt.Errorf("another hunt is under way in %s: name another directory (--out)", dir)
	} else if err != nil {
		err = fmt.Errorf("lock the hunt's directory %s: %w", dir, err)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f.Close, nil
}
