package testdb

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
)

// ErrNotInstalled says that this machine has no MariaDB server, and how it gets one.
// [ErrPostgreSQLNotInstalled] says so of PostgreSQL.
var ErrNotInstalled = errors.New(`MariaDB is not installed: install its server (mariadbd and mariadb-install-db), 10.6 or later:
  Debian, Ubuntu:  sudo apt-get update && sudo apt-get install --no-install-recommends mariadb-server mariadb-client
  Fedora, RHEL:    sudo dnf install mariadb-server mariadb
  Arch:            sudo pacman -S mariadb
  Alpine:          sudo apk add mariadb mariadb-client
  macOS:           brew install mariadb`)

// packages are the names of the server and its client on Debian and Ubuntu.
var packages = []string{"mariadb-server", "mariadb-client"}

// programs are the paths of MariaDB's programs.
type programs struct{ server, install string }

// findPrograms looks where distributions put the programs: the server is often not in the PATH of
// ordinary users.
func findPrograms() (programs, error) {
	server := findProgram("mariadbd", "/usr/sbin", "/usr/libexec", "/usr/local/sbin", "/usr/local/bin",
		"/opt/homebrew/bin")
	install := findProgram("mariadb-install-db", "/usr/bin", "/usr/local/bin", "/opt/homebrew/bin")
	if server == "" || install == "" {
		return programs{}, ErrNotInstalled
	}
	return programs{server, install}, nil
}

// findProgram looks for a program in the PATH, then in dirs; empty when it is nowhere.
func findProgram(name string, dirs ...string) string {
	if path, err := exec.LookPath(name); err == nil {
		return path
	}
	for _, dir := range dirs {
		if path, err := exec.LookPath(filepath.Join(dir, name)); err == nil {
			return path
		}
	}
	return ""
}

// installed reports whether MariaDB is on this machine: nil or [ErrNotInstalled].
func installed() error {
	_, err := findPrograms()
	return err
}

// HasMariaDB reports whether MariaDB is on this machine.
func HasMariaDB() bool { return installed() == nil }

// Install installs MariaDB by its packages' names where that needs no question: on Debian and
// Ubuntu as root, or with a sudo that asks for no password. Elsewhere, and when it fails, the error
// wraps [ErrNotInstalled]. It writes what apt-get prints to w, and does nothing when MariaDB is
// there. The packages may start a MariaDB of the system's own; this package does not use it.
func Install(ctx context.Context, w io.Writer) error {
	if installed() == nil {
		return nil
	}
	if err := aptInstall(ctx, w, packages); err != nil {
		return fmt.Errorf("%w\n(%w)", ErrNotInstalled, err)
	}
	return installed()
}

// aptInstall installs Debian's packages without asking anything.
func aptInstall(ctx context.Context, w io.Writer, packages []string) error {
	root, err := asRoot(ctx)
	if err != nil {
		return err
	}
	apt := append(root, "DEBIAN_FRONTEND=noninteractive", "apt-get", "-o", "DPkg::Lock::Timeout=120")
	update := []string{"update", "-q"}
	install := append([]string{"install", "-q", "-y", "--no-install-recommends"}, packages...)
	for _, args := range [][]string{update, install} {
		cmd := exec.CommandContext(ctx, apt[0], slices.Concat(apt[1:], args)...)
		cmd.Stdout, cmd.Stderr = w, w
		if err := cmd.Run(); err != nil {
			return fmt.Errorf("apt-get %s: %w", args[0], err)
		}
	}
	return nil
}

// asRoot is the beginning of a command line that runs a program as root without asking anything, on a
// system with apt-get.
func asRoot(ctx context.Context) ([]string, error) {
	if _, err := exec.LookPath("apt-get"); err != nil {
		return nil, errors.New("isotap installs it by itself with apt-get only, which this system does not have")
	}
	if os.Geteuid() == 0 {
		return []string{"env"}, nil
	}
	if err := exec.CommandContext(ctx, "sudo", "-n", "true").Run(); err != nil {
		return nil, errors.New("isotap installs it by itself only as root, or with a sudo that asks for no password")
	}
	return []string{"sudo", "-n", "env"}, nil
}
