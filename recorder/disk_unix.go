//go:build linux || darwin

package recorder

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// statfsReadOnly is the flag of a file system that takes no writes, the same on both systems.
const statfsReadOnly = 1

// diskSpace returns what an ordinary user may still write where dir is kept, and reports whether its file system has
// become read-only.
func diskSpace(dir string) (free int64, readOnly bool, err error) {
	var s syscall.Statfs_t
	if err := syscall.Statfs(dir, &s); err != nil {
		return 0, false, fmt.Errorf("free space of %s: %w", dir, err)
	}
	return int64(s.Bavail) * int64(s.Bsize), uint64(s.Flags)&statfsReadOnly != 0, nil
}

// probeLock reports whether nobody writes to the recording (shared) or nobody has it open at all. Badger
// holds the lock that it probes; asking first keeps the checks of the files from meeting files that
// change.
func probeLock(dir string, shared bool) error {
	f, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("lock recording: %w", err)
	}
	defer f.Close()
	how := syscall.LOCK_EX
	if shared {
		how = syscall.LOCK_SH
	}
	err = syscall.Flock(int(f.Fd()), how|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return inUse(dir)
	}
	if err != nil {
		return fmt.Errorf("lock recording %s: %w", dir, err)
	}
	return nil
}
