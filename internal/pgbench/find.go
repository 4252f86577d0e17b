package pgbench

import (
	"errors"

	"github.com/isotap/isotap/internal/testdb"
)

// ErrNotInstalled says that this machine has no pgbench, and how it gets one.
var ErrNotInstalled = errors.New(`pgbench is not installed:
  Debian, Ubuntu:  sudo apt-get install --no-install-recommends postgresql
  Fedora, RHEL:    sudo dnf install postgresql-contrib
  Arch:            sudo pacman -S postgresql
  Alpine:          sudo apk add postgresql-client
  macOS:           brew install postgresql`)

// Find returns the path of the program: the one beside the server of package testdb, else that in the PATH.
func Find() (string, error) {
	path := testdb.PostgreSQLProgram("pgbench")
	if path == "" {
		return "", ErrNotInstalled
	}
	return path, nil
}
