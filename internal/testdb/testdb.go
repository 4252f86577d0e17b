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
// testdb.go starts MariaDB, postgresql.go PostgreSQL. shared.go gives all tests of a process one of each,
// engines.go runs them once more on servers of other engines and versions that the environment names,
// tidb.go has the TiDB that "make tidb" built.
package testdb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/go-sql-driver/mysql"
)

// Options of a server. The zero Options are fine.
type Options struct {
	// Args are further command line options of mariadbd; they override those that the package sets.
	Args []string
}

// A Server is a running MariaDB. Its user is root without a password, from this machine only. Its
// methods may be called from several goroutines.
type Server struct {
	instance       // has no process where the server is somebody else's
	host           string
	port           int
	user, password string
	version        string
}

// startTimeout bounds how long a server may take until it answers: a second is usual, a busy
// machine with a slow disk needs more.
const startTimeout = time.Minute

// Start prepares a data directory, starts a server on it and waits until it answers. The caller
// ends it with [Server.Stop]; ctx only bounds the start. When MariaDB is not there the error wraps
// [ErrNotInstalled].
func Start(ctx context.Context, o Options) (*Server, error) {
	bin, err := findPrograms()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	user, err := unprivilegedUser("mysql")
	if err != nil {
		return nil, err
	}
	dir, err := makeDirectory(user)
	if err != nil {
		return nil, err
	}
	s, err := start(ctx, bin, user, dir, o)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("starting MariaDB: %w", err), os.RemoveAll(dir))
	}
	return s, nil
}

func start(ctx context.Context, bin programs, user *account, dir string, o Options) (*Server, error) {
	if err := install(ctx, bin, user, dir); err != nil {
		return nil, err
	}
	for {
		s, err := launch(ctx, bin, user, dir, o)
		if err == nil {
			return s, nil
		}
		// Between the search for a free port and its use another process may take it.
		if ctx.Err() != nil || !strings.Contains(logTail(dir), "Bind on TCP/IP port") {
			return nil, fmt.Errorf("%w\n%s", err, logTail(dir))
		}
	}
}

// smallEngine are the settings that both the preparation of the data directory and the server need
// to agree on.
var smallEngine = []string{
	"--innodb-log-file-size=16M",
	"--innodb-buffer-pool-size=64M",
	"--innodb-flush-log-at-trx-commit=0",
	"--innodb-flush-method=nosync",
}

// install fills the data directory with the system tables.
func install(ctx context.Context, bin programs, user *account, dir string) error {
	args := append([]string{
		"--no-defaults",
		"--datadir=" + dataDir(dir),
		"--tmpdir=" + dir,
		"--auth-root-authentication-method=normal",
		"--skip-test-db",
		"--skip-name-resolve",
	}, smallEngine...)
	if out, err := run(ctx, user, dir, bin.install, args...); err != nil {
		return fmt.Errorf("preparing a data directory with %s: %w\n%s", bin.install, err, tail(out))
	}
	return nil
}

// launch starts the server on a free port and waits until it answers.
func launch(ctx context.Context, bin programs, user *account, dir string, o Options) (*Server, error) {
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	args := append([]string{
		"--no-defaults",
		"--datadir=" + dataDir(dir),
		"--tmpdir=" + dir,
		"--socket=" + socketFile(dir),
		"--pid-file=" + filepath.Join(dir, "pid"),
		"--bind-address=127.0.0.1",
		"--port=" + strconv.Itoa(port),
		"--skip-name-resolve",
		"--skip-log-bin",
		"--innodb-doublewrite=OFF",
		"--sync-frm=OFF",
		// What the distributions' own configuration says; mariadbd without one still says latin1.
		"--character-set-server=utf8mb4",
	}, smallEngine...)
	log, err := os.Create(logFile(dir))
	if err != nil {
		return nil, fmt.Errorf("making the server's log: %w", err)
	}
	defer log.Close() // the server has its own handle
	p, err := startProcess(user, dir, log, syscall.SIGKILL, bin.server, append(args, o.Args...)...)
	if err != nil {
		return nil, err
	}
	s := &Server{instance: instance{dir: dir, process: p}, host: "127.0.0.1", port: port, user: "root"}
	if err := s.awaitReady(ctx); err != nil {
		p.kill()
		return nil, err
	}
	return s, nil
}

// awaitReady returns once the server answers, or has ended, or ctx is done. It asks over the socket:
// on the port another server might answer.
func (s *Server) awaitReady(ctx context.Context) error {
	c := s.config("unix", s.Socket(), "")
	c.Logger = &mysql.NopLogger{} // the driver would log each connection that the server refuses
	db, err := open(c)
	if err != nil {
		return err
	}
	defer db.Close()
	return s.process.await(ctx, func(ctx context.Context) error {
		return db.QueryRowContext(ctx, "SELECT VERSION()").Scan(&s.version)
	})
}

// Addr is the server's TCP address, "host:port".
func (s *Server) Addr() string { return net.JoinHostPort(s.host, strconv.Itoa(s.port)) }

// Socket is the path of the server's unix socket.
func (s *Server) Socket() string { return socketFile(s.dir) }

// URL is the server's address as isotap's --upstream takes it.
func (s *Server) URL() string {
	login := url.User(s.user)
	if s.password != "" {
		login = url.UserPassword(s.user, s.password)
	}
	return "mysql://" + login.String() + "@" + s.Addr() + "/"
}

// Version is what the server answers to SELECT VERSION(), as "10.11.19-MariaDB-0+deb12u1".
func (s *Server) Version() string { return s.version }

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

func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("looking for a free port: %w", err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	if err := l.Close(); err != nil {
		return 0, fmt.Errorf("looking for a free port: %w", err)
	}
	return port, nil
}
