package testdb

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// ErrPostgreSQLNotInstalled says that this machine has no PostgreSQL server, and how it gets one.
var ErrPostgreSQLNotInstalled = errors.New(`PostgreSQL is not installed: install its server (postgres and initdb), 12 or later:
  Debian, Ubuntu:  sudo apt-get update && sudo apt-get install --no-install-recommends postgresql
  Fedora, RHEL:    sudo dnf install postgresql-server postgresql-contrib
  Arch:            sudo pacman -S postgresql
  Alpine:          sudo apk add postgresql postgresql-contrib
  macOS:           brew install postgresql`)

// postgresqlPackages are the names of the server's packages on Debian and Ubuntu.
var postgresqlPackages = []string{"postgresql"}

// postgresqlPlaces are patterns of the directories where distributions put the programs; Debian keeps
// those of the server out of the PATH.
var postgresqlPlaces = []string{
	"/usr/lib/postgresql/*/bin",
	"/usr/lib/postgresql*/bin",
	"/usr/pgsql-*/bin",
	"/usr/libexec/postgresql*",
	"/opt/homebrew/opt/postgresql*/bin",
	"/usr/local/opt/postgresql*/bin",
	"/Applications/Postgres.app/Contents/Versions/*/bin",
}

// findPostgreSQL looks for the programs in the PATH, then where distributions put them, newest first.
func findPostgreSQL() (programs, error) {
	var dirs []string
	if path, err := exec.LookPath("initdb"); err == nil {
		if real, err := filepath.EvalSymlinks(path); err == nil {
			dirs = append(dirs, filepath.Dir(real))
		}
	}
	for _, dir := range append(dirs, newestFirst(postgresqlPlaces)...) {
		server, err := exec.LookPath(filepath.Join(dir, "postgres"))
		if err != nil {
			continue
		}
		if install, err := exec.LookPath(filepath.Join(dir, "initdb")); err == nil {
			return programs{server, install}, nil
		}
	}
	return programs{}, ErrPostgreSQLNotInstalled
}

// PostgreSQLOfVersion returns the path of postgres of a major version, as "16", where distributions put it; empty where
// there is none.
func PostgreSQLOfVersion(major string) string {
	for _, dir := range newestFirst(postgresqlPlaces) {
		path, err := exec.LookPath(filepath.Join(dir, "postgres"))
		if err == nil && versionInPath.FindString(dir) == major {
			return path
		}
	}
	return ""
}

// PostgreSQLProgram returns the path of one of PostgreSQL's programs, as "pgbench": the one beside the server
// that [StartPostgreSQL] starts, else that in the PATH; empty when there is none.
func PostgreSQLProgram(name string) string {
	if p, err := findPostgreSQL(); err == nil {
		if path, err := exec.LookPath(filepath.Join(filepath.Dir(p.server), name)); err == nil {
			return path
		}
	}
	return findProgram(name)
}

var versionInPath = regexp.MustCompile(`\d+`)

// newestFirst returns the directories that the patterns match, those with the highest first number in their
// paths first.
func newestFirst(patterns []string) []string {
	version := func(dir string) int {
		n, _ := strconv.Atoi(versionInPath.FindString(dir)) // no number: 0
		return n
	}
	var dirs []string
	for _, pattern := range patterns {
		found, _ := filepath.Glob(pattern) // the patterns are well-formed
		dirs = append(dirs, found...)
	}
	slices.SortStableFunc(dirs, func(a, b string) int { return cmp.Compare(version(b), version(a)) })
	return dirs
}

// HasPostgreSQL reports whether PostgreSQL is on this machine.
func HasPostgreSQL() bool {
	_, err := findPostgreSQL()
	return err == nil
}

// noCluster is a script for root: while the file named by its argument is there, Debian's package creates
// no cluster. It fails where the file is somebody's already.
const noCluster = `set -e; [ ! -e "$1" ]; mkdir -p "${1%/*}"; echo 'create_main_cluster = false' >"$1"`

// clusterSettings is a file that Debian's package reads when it is installed.
const clusterSettings = "/etc/postgresql-common/createcluster.d/isotap.conf"

// InstallPostgreSQL installs PostgreSQL by its package's name, where and as [Install] does. On Debian and
// Ubuntu the package is kept from creating and starting a cluster of the system's own.
func InstallPostgreSQL(ctx context.Context, w io.Writer) error {
	if HasPostgreSQL() {
		return nil
	}
	if err := installPostgreSQL(ctx, w); err != nil {
		return fmt.Errorf("%w\n(%w)", ErrPostgreSQLNotInstalled, err)
	}
	_, err := findPostgreSQL()
	return err
}

func installPostgreSQL(ctx context.Context, w io.Writer) error {
	root, err := asRoot(ctx)
	if err != nil {
		return err
	}
	as := func(args ...string) error {
		args = slices.Concat(root, args)
		// Also when ctx is done: what was written is to go again.
		cmd := exec.CommandContext(context.WithoutCancel(ctx), args[0], args[1:]...)
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w: %s", strings.Join(args, " "), err, tail(string(out)))
		}
		return nil
	}
	if as("sh", "-c", noCluster, "sh", clusterSettings) != nil {
		// A cluster too many is no reason to fail.
		return aptInstall(ctx, w, postgresqlPackages)
	}
	return errors.Join(aptInstall(ctx, w, postgresqlPackages), as("rm", "-f", clusterSettings))
}
