package testdb

import (
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
)

// maxSocketPath is the longest path that every system accepts for a unix socket (sun_path holds 104
// bytes on macOS, 108 on Linux, with the closing NUL).
const maxSocketPath = 103

func dataDir(dir string) string    { return filepath.Join(dir, "data") }
func socketFile(dir string) string { return filepath.Join(dir, "sock") }
func logFile(dir string) string    { return filepath.Join(dir, "log") }

// An account is the user that a server runs as when we are root: mariadbd and postgres refuse to be.
type account struct{ uid, gid int }

// unprivilegedUser finds an account for the server, that of its package or else nobody; nil when we are
// not root and need none.
func unprivilegedUser(packaged string) (*account, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	for _, name := range []string{packaged, "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err := strconv.Atoi(u.Uid)
		if err != nil {
			return nil, fmt.Errorf("user %s has the id %q: %w", name, u.Uid, err)
		}
		gid, err := strconv.Atoi(u.Gid)
		if err != nil {
			return nil, fmt.Errorf("user %s has the group %q: %w", name, u.Gid, err)
		}
		return &account{uid, gid}, nil
	}
	return nil, fmt.Errorf("the server does not run as root, "+
		"and this system has neither a user %s nor a user nobody to run it as", packaged)
}

// makeDirectory makes a server's directory, with its data directory in it, the account's own.
func makeDirectory(owner *account) (string, error) {
	parent := os.TempDir()
	if len(parent)+len("/isotap-db-1234567890/.s.PGSQL.65535") > maxSocketPath {
		parent = "/tmp"
	}
	dir, err := os.MkdirTemp(parent, "isotap-db-")
	if err != nil {
		return "", fmt.Errorf("making a directory for a throw-away server: %w", err)
	}
	if err := os.Mkdir(dataDir(dir), 0o700); err != nil {
		return "", fmt.Errorf("making a directory for a throw-away server: %w", err)
	}
	if owner == nil {
		return dir, nil
	}
	for _, d := range []string{dir, dataDir(dir)} {
		if err := os.Chown(d, owner.uid, owner.gid); err != nil {
			return "", fmt.Errorf("giving a throw-away server its directory: %w", err)
		}
	}
	return dir, nil
}

const tailLines = 20

// logTail returns the end of the error log of the server in dir; what went wrong when it cannot be read.
func logTail(dir string) string {
	b, err := os.ReadFile(logFile(dir))
	if err != nil {
		return err.Error()
	}
	return tail(string(b))
}

func tail(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-tailLines):], "\n")
}
