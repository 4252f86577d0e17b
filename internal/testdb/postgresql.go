package testdb

import (
	"context"
	"database/sql"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
)

// PostgreSQLOptions are the options of a throw-away PostgreSQL. The zero PostgreSQLOptions are fine.
type PostgreSQLOptions struct {
	// Args are further command line options of postgres, as "-c", "max_connections=17"; they override
	// those that the package sets.
	Args []string
	// Program is the path of postgres, with initdb beside it; empty: where distributions put it.
	Program string
	// HBA are the lines of pg_hba.conf that come before those that let everybody in without a password.
	HBA []string
	// Authority makes the server offer TLS, with the authority's certificate "server", and take the authority's
	// certificates from clients.
	Authority *Authority
}

// A PostgreSQLServer is a running PostgreSQL. Its user is the superuser postgres without a password, from
// this machine only. Its methods may be called from several goroutines.
type PostgreSQLServer struct {
	instance
	major int
}

// StartPostgreSQL makes a cluster, starts a server on it and waits until it answers. The caller ends it
// with Stop; ctx only bounds the start. When PostgreSQL is not there the error wraps
// [ErrPostgreSQLNotInstalled].
func StartPostgreSQL(ctx context.Context, o PostgreSQLOptions) (*PostgreSQLServer, error) {
	find := (&Options{Program: o.Program}).find(findPostgreSQL, "initdb")
	return begin(ctx, kind{"PostgreSQL", "postgres", find, "could not bind"},
		func(ctx context.Context, at installation) error { return initCluster(ctx, at, o) },
		func(ctx context.Context, at installation, port int) (*PostgreSQLServer, error) {
			return launchPostgreSQL(ctx, at, port, o)
		})
}

// initCluster fills the data directory. The locale C is the one that every system has and that sorts
// everywhere alike.
func initCluster(ctx context.Context, at installation, o PostgreSQLOptions) error {
	err := at.prepare(ctx, "--pgdata="+dataDir(at.dir), "--username=postgres", "--auth=trust", "--no-sync",
		"--encoding=UTF8", "--locale=C")
	if err != nil {
		return err
	}
	if err := prependHBA(at.dir, o.HBA); err != nil || o.Authority == nil {
		return err
	}
	return o.Authority.certify(at)
}

// prependHBA puts lines before those that initdb wrote. The first that fits a connection counts.
func prependHBA(dir string, lines []string) error {
	file := filepath.Join(dataDir(dir), "pg_hba.conf")
	rest, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("reading who may log in: %w", err)
	}
	text := strings.Join(append(lines, string(rest)), "\n")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil { // the owner stays
		return fmt.Errorf("writing who may log in: %w", err)
	}
	return nil
}

// carelessPostgreSQL are settings that make the server quick and not durable, and room for what tests do.
var carelessPostgreSQL = []string{
	"-c", "fsync=off",
	"-c", "full_page_writes=off",
	"-c", "shared_buffers=64MB",
	"-c", "max_connections=200",
	"-c", "max_prepared_transactions=64",
	// Who reads the log to its end waits for what no COMMIT flushes: a ROLLBACK's record, say.
	"-c", "wal_writer_delay=10ms",
}

// launchPostgreSQL starts the server and waits until it answers.
func launchPostgreSQL(ctx context.Context, at installation, port int, o PostgreSQLOptions) (*PostgreSQLServer, error) {
	args := append([]string{
		"-D", dataDir(at.dir),
		"-p", strconv.Itoa(port),
		"-c", "listen_addresses=127.0.0.1",
		"-c", "unix_socket_directories=" + at.dir,
	}, carelessPostgreSQL...)
	if o.Authority != nil {
		args = append(args, "-c", "ssl=on", "-c", "ssl_ca_file=root.crt")
	}
	s := &PostgreSQLServer{instance: instance{dir: at.dir, host: "127.0.0.1", port: port, user: "postgres"}}
	s.again = func(ctx context.Context) (err error) {
		// SIGQUIT is the immediate shutdown. After a SIGKILL the shared memory would stay, and sessions that
		// compute, which are in no group of the postmaster's.
		if s.process, err = at.start(syscall.SIGQUIT, append(args, o.Args...)...); err != nil {
			return err
		}
		// Over the socket: on the port another server might answer.
		if err := s.awaitReady(ctx); err != nil {
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

func (s *PostgreSQLServer) awaitReady(ctx context.Context) error {
	c, err := s.config(s.dir, "postgres")
	if err != nil {
		return err
	}
	return s.process.await(ctx, func(ctx context.Context) error { return s.askVersion(ctx, c) })
}

// askVersion learns the server's version.
func (s *PostgreSQLServer) askVersion(ctx context.Context, c *pgx.ConnConfig) error {
	conn, err := pgx.ConnectConfig(ctx, c)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	var number int
	const query = "SELECT current_setting('server_version'), current_setting('server_version_num')::int"
	if err := conn.QueryRow(ctx, query).Scan(&s.version, &number); err != nil {
		return fmt.Errorf("asking for the server's version: %w", err)
	}
	s.major = number / 10000
	return nil
}

// Socket is the path of the server's unix socket; its directory is what PGHOST takes.
func (s *PostgreSQLServer) Socket() string {
	return filepath.Join(s.dir, ".s.PGSQL."+strconv.Itoa(s.port))
}

// URL is the server's address as isotap's --upstream takes it.
func (s *PostgreSQLServer) URL() string { return s.address("").String() }

// Major is the server's major version, as 15.
func (s *PostgreSQLServer) Major() int { return s.major }

// DSN is libpq's connection URI of a database on the server, over TCP without TLS. The name may be empty:
// the database is then postgres.
func (s *PostgreSQLServer) DSN(database string) string {
	u := s.address(database)
	u.RawQuery = "sslmode=disable"
	return u.String()
}

// DB opens a pool of connections to a database on the server, over TCP. The caller closes it.
func (s *PostgreSQLServer) DB(database string) (*sql.DB, error) {
	c, err := s.config(s.host, database)
	if err != nil {
		return nil, err
	}
	return stdlib.OpenDB(*c), nil
}

func (s *PostgreSQLServer) address(database string) *url.URL {
	return &url.URL{Scheme: "postgres", User: s.login(), Host: s.Addr(), Path: "/" + database}
}

// config returns how to connect to the database at host, which is a name or the socket's directory.
func (s *PostgreSQLServer) config(host, database string) (*pgx.ConnConfig, error) {
	c, err := pgx.ParseConfig(s.DSN(database))
	if err != nil {
		return nil, fmt.Errorf("connecting to a throw-away server: %w", err)
	}
	c.Host = host
	return c, nil
}
