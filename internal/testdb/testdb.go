// Package testdb starts throw-away database servers: a MariaDB or a PostgreSQL of its own data directory,
// port and socket, gone without trace when it is stopped. Tests use it, and so does "isotap demo".
//
// A server is the system's own mariadbd or postgres, run as an unprivileged user, with the settings that
// make it quick to start and careless about durability, and none that touches isolation. On Linux it
// dies with the process that started it, however that one ends.
//
// Nothing is cached between servers: preparing a data directory takes about half a second for MariaDB, a
// second for PostgreSQL.
//
// testdb.go starts MariaDB, postgresql.go PostgreSQL, mysql.go MySQL where somebody installed it, tidb.go the TiDB that
// "make tidb" built; instance.go has what all need. shared.go gives all tests of a process one of each, engines.go runs
// them once more on servers of other engines and versions that the environment names.
package testdb

import (
	"context"
	"database/sql"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"

	"github.com/go-sql-driver/mysql"
)

// Options of a server. The zero Options are fine.
type Options struct {
	// Args are further command line options of mariadbd; they override those that the package sets.
	Args []string
	// Program is the path of the server's program; empty: where distributions put it.
	Program string
}

// A Server is a running server of the MySQL family. Its user is root without a password, from this machine only. Its
// methods may be called from several goroutines.
type Server struct{ instance }

// BinaryLog are the Args of a MariaDB or MySQL whose binary log holds all rows that are written, for isotap to read.
var BinaryLog = []string{"--log-bin=log", "--server-id=1", "--binlog-format=ROW", "--binlog-row-image=FULL",
	"--sync-binlog=0"}

// Start prepares a data directory, starts a server on it and waits until it answers. The caller
// ends it with [Server.Stop]; ctx only bounds the start. When MariaDB is not there the error wraps
// [ErrNotInstalled].
func Start(ctx context.Context, o Options) (*Server, error) {
	find := o.find(findPrograms, "mariadb-install-db", "mysql_install_db")
	return begin(ctx, kind{"MariaDB", "mysql", find, "Bind on TCP/IP port"}, install,
		func(ctx context.Context, at installation, port int) (*Server, error) { return launch(ctx, at, port, o) })
}

// find returns what looks for the programs: find where none is named, else the named one, and what prepares its data
// directory: one of the installers in a directory where distributions put it, or without any the program itself.
func (o *Options) find(find func() (programs, error), installers ...string) func() (programs, error) {
	if o.Program == "" {
		return find
	}
	return func() (programs, error) { return programsAt(o.Program, installers...) }
}

// programsAt are the programs of a server whose own is at a path.
func programsAt(path string, installers ...string) (programs, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return programs{}, fmt.Errorf("find the server's program: %w", err)
	}
	if _, err := exec.LookPath(path); err != nil {
		return programs{}, fmt.Errorf("the server's program: %w", err)
	}
	if len(installers) == 0 {
		return programs{path, path}, nil
	}
	dir := filepath.Dir(path)
	for _, beside := range []string{dir, filepath.Join(dir, "../bin"), filepath.Join(dir, "../scripts")} {
		for _, name := range installers {
			if found, err := exec.LookPath(filepath.Join(beside, name)); err == nil {
				return programs{path, found}, nil
			}
		}
	}
	return programs{}, fmt.Errorf("there is no %s beside %s, nor in ../bin or ../scripts", installers[0], path)
}

// smallEngine are the settings that both the preparation of the data directory and the server need
// to agree on.
var smallEngine = []string{
	"--innodb-log-file-size=16M",
	"--innodb-buffer-pool-size=64M",
	"--innodb-flush-log-at-trx-commit=0",
	"--innodb-flush-method=nosync",
	// Each definition of a table waits for the disk otherwise, several times. Old versions may not have it.
	"--loose-debug-no-sync",
}

// install fills the data directory with the system tables.
func install(ctx context.Context, at installation) error {
	args := append([]string{
		"--no-defaults",
		"--datadir=" + dataDir(at.dir),
		"--tmpdir=" + at.dir,
		"--auth-root-authentication-method=normal",
		"--skip-test-db",
		"--skip-name-resolve",
	}, smallEngine...)
	return at.prepare(ctx, args...)
}

// launch starts the server and waits until it answers.
func launch(ctx context.Context, at installation, port int, o Options) (*Server, error) {
	return launchWith(ctx, at, port, slices.Concat([]string{
		"--skip-name-resolve",
		"--skip-log-bin",
		"--innodb-doublewrite=OFF",
		"--sync-frm=OFF",
		// What the distributions' own configuration says; mariadbd without one still says latin1.
		"--character-set-server=utf8mb4",
	}, smallEngine, o.Args))
}

// launchWith starts a MariaDB or MySQL with options of its own beside those that say where everything is, and waits
// until it answers.
func launchWith(ctx context.Context, at installation, port int, options []string) (*Server, error) {
	args := append([]string{
		"--no-defaults",
		"--datadir=" + dataDir(at.dir),
		"--tmpdir=" + at.dir,
		"--socket=" + socketFile(at.dir),
		"--pid-file=" + filepath.Join(at.dir, "pid"),
		"--bind-address=127.0.0.1",
		"--port=" + strconv.Itoa(port),
	}, options...)
	s := &Server{instance{dir: at.dir, host: "127.0.0.1", port: port, user: "root"}}
	s.again = func(ctx context.Context) (err error) {
		if s.process, err = at.start(syscall.SIGKILL, args...); err != nil {
			return err
		}
		// Over the socket: on the port another server might answer.
		if err := s.awaitReady(ctx, s.config("unix", s.Socket(), "")); err != nil {
			s.process.kill()
			return err
		}
		return nil
	}
	if err := s.again(ctx); err != nil {
		return nil, err
	}
	return s, nil
}

// awaitReady returns once the server answers at an address, or has ended, or ctx is done.
func (s *Server) awaitReady(ctx context.Context, at *mysql.Config) error {
	at.Logger = &mysql.NopLogger{} // the driver would log each connection that the server refuses
	db, err := open(at)
	if err != nil {
		return err
	}
	defer db.Close()
	return s.process.await(ctx, func(ctx context.Context) error {
		return db.QueryRowContext(ctx, "SELECT VERSION()").Scan(&s.version)
	})
}

// Socket is the path of the server's unix socket.
func (s *Server) Socket() string { return socketFile(s.dir) }

// URL is the server's address as isotap's --upstream takes it.
func (s *Server) URL() string { return "mysql://" + s.login().String() + "@" + s.Addr() + "/" }

// DSN is go-sql-driver's data source name of a database on the server, over TCP. The name may be
// empty.
func (s *Server) DSN(database string) string { return s.config("tcp", s.Addr(), database).FormatDSN() }

// DB opens a pool of connections to a database on the server, over TCP. The caller closes it.
func (s *Server) DB(database string) (*sql.DB, error) {
	return open(s.config("tcp", s.Addr(), database))
}

func (s *Server) config(network, addr, database string) *mysql.Config {
	c := mysql.NewConfig()
	c.User, c.Passwd, c.Net, c.Addr, c.DBName = s.user, s.password, network, addr, database
	return c
}

func open(c *mysql.Config) (*sql.DB, error) {
	connector, err := mysql.NewConnector(c)
	if err != nil {
		return nil, fmt.Errorf("connecting to a throw-away server: %w", err)
	}
	return sql.OpenDB(connector), nil
}
