package testdb

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// MySQLVariable is the environment variable that names MySQL's mysqld where it is not in the PATH.
const MySQLVariable = "ISOTAP_MYSQLD"

// ErrMySQLNotInstalled says that this machine has no MySQL server, and how it gets one.
var ErrMySQLNotInstalled = errors.New(`MySQL is not installed: isotap starts its mysqld, 8.0 or later, from the PATH or from where ISOTAP_MYSQLD says:
  Ubuntu:        sudo apt-get update && sudo apt-get install --no-install-recommends mysql-server
  Fedora, RHEL:  sudo dnf install mysql-server
  macOS:         brew install mysql
  elsewhere:     unpack the tar file of https://dev.mysql.com/downloads/mysql/, and set ISOTAP_MYSQLD=DIR/bin/mysqld
or name one that runs: --upstream mysql://root@127.0.0.1:3306/`)

// HasMySQL reports whether MySQL is on this machine.
func HasMySQL() bool {
	_, err := findMySQL()
	return err == nil
}

// findMySQL looks for MySQL's mysqld, which prepares its own data directory. Where MariaDB is installed its server goes
// by that name, too.
func findMySQL() (programs, error) {
	if path := os.Getenv(MySQLVariable); path != "" {
		if err := isMySQL(path); err != nil {
			return programs{}, fmt.Errorf("%s: %w", MySQLVariable, err)
		}
		return programs{path, path}, nil
	}
	dirs := append(filepath.SplitList(os.Getenv("PATH")), "/usr/sbin", "/usr/libexec", "/usr/local/mysql/bin",
		"/opt/homebrew/opt/mysql/bin")
	for _, dir := range dirs {
		if path, err := exec.LookPath(filepath.Join(dir, "mysqld")); err == nil && isMySQL(path) == nil {
			return programs{path, path}, nil
		}
	}
	return programs{}, ErrMySQLNotInstalled
}

// versionTimeout bounds how long a program may take to say its version.
const versionTimeout = 10 * time.Second

// isMySQL returns what keeps a program from being MySQL's server.
func isMySQL(path string) error {
	ctx, cancel := context.WithTimeout(context.Background(), versionTimeout)
	defer cancel()
	out, err := exec.CommandContext(ctx, path, "--version").CombinedOutput()
	switch {
	case err != nil:
		return fmt.Errorf("%s --version: %w%s", path, err, tail("\n"+string(out)))
	case strings.Contains(string(out), "MariaDB") || !strings.Contains(string(out), "Ver "):
		return fmt.Errorf("%s is no MySQL server: it says %q", path, strings.TrimSpace(string(out)))
	}
	return nil
}

// StartMySQL is [Start] for MySQL. Where there is none the error wraps [ErrMySQLNotInstalled].
func StartMySQL(ctx context.Context, o Options) (*Server, error) {
	return begin(ctx, kind{"MySQL", "mysql", o.find(findMySQL), "Bind on TCP/IP port"}, initMySQL,
		func(ctx context.Context, at installation, port int) (*Server, error) {
			return launchWith(ctx, at, port, slices.Concat(carelessMySQL, o.Args))
		})
}

// initMySQL fills the data directory.
func initMySQL(ctx context.Context, at installation) error {
	return at.prepare(ctx, "--no-defaults", "--initialize-insecure", "--datadir="+dataDir(at.dir), "--tmpdir="+at.dir,
		"--skip-log-bin")
}

// carelessMySQL are settings that make the server quick and not durable. The binary log stays on as it is by default:
// it has an effect on what REPEATABLE READ shows. Options that not every version has are loose.
var carelessMySQL = []string{
	"--server-id=1",
	"--secure-file-priv=NULL", // the packages' own directory need not be there
	"--innodb-flush-log-at-trx-commit=0",
	"--sync-binlog=0",
	"--innodb-doublewrite=OFF",
	"--innodb-buffer-pool-size=64M",
	"--loose-innodb-redo-log-capacity=64M",
	"--loose-mysqlx=OFF",
}
