//go:build linux

package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"syscall"
	"time"

	"github.com/go-sql-driver/mysql"
	_ "github.com/jackc/pgx/v5/stdlib" // the driver "pgx"

	"github.com/isotap/isotap/catalog"
	catalogmysql "github.com/isotap/isotap/catalog/mysql"
	"github.com/isotap/isotap/dbms"
	"github.com/isotap/isotap/internal/dsn"
	"github.com/isotap/isotap/internal/testdb"
)

// A family is what campaigns must know of an engine.
type family struct {
	name  dbms.Engine
	works []work
	// start starts a server that loses nothing at kill -9, which takes this many clients. Where it is reached over
	// cables it listens on all addresses, and soon ends sessions of whom it does not hear.
	start func(ctx context.Context, clients int, over network) (server, error)
	// open opens a pool of connections to the campaigns' database at an address, with parameters of the driver.
	open func(address, parameters string) (*sql.DB, error)
	// timeouts are further parameters, for a driver whose ROLLBACK would wait for an answer forever.
	timeouts func(limit time.Duration) string
	// tables makes those of the works.
	tables []string
	// slots and entries are the queries of readStored.
	slots, entries string
	// session is a query for the process on the server that runs the present session; empty where it is a thread.
	session string
	// length has a packet say that it has n bytes.
	length func(p []byte, n uint32)
	crowd  int // how many clients it takes on a machine of some GiB
}

// A server is a throw-away server of either family.
type server interface {
	Addr() string
	URL() string
	Version() string
	Log() string
	DB(database string) (*sql.DB, error)
	Signal(syscall.Signal)
	Done() <-chan struct{}
	Restart(context.Context) error
	Stop() error
}

// database is the campaigns' own.
const database = "campaign"

var families = []family{
	{dbms.MariaDB, works, startMariaDB, openMySQL, mysqlTimeouts, []string{
		"CREATE TABLE slot (id INT PRIMARY KEY, marker VARCHAR(40) NOT NULL)",
		"CREATE TABLE entry (id INT AUTO_INCREMENT PRIMARY KEY, marker VARCHAR(40) NOT NULL)",
	}, "SELECT id, isotap_rowid, marker FROM slot", "SELECT isotap_rowid, marker, isotap_wlist FROM entry", "",
		mysqlLength, 10_000},
	{dbms.PostgreSQL, postgresWorks, startPostgreSQL, openPgx, func(time.Duration) string { return "" }, []string{
		"CREATE TABLE slot (id int PRIMARY KEY, marker text NOT NULL)",
		"CREATE TABLE entry (id serial PRIMARY KEY, marker text NOT NULL)",
	}, "SELECT id, id::text, marker FROM slot", "SELECT id::text, marker, xmin::text || ' ' || ctid::text FROM entry",
		"SELECT pg_backend_pid()", postgresLength, 2_000},
}

// mysql reports whether the engine is of the MySQL family, whose tables carry isotap's columns.
func (f *family) mysql() bool { return f.name.Family() == dbms.MySQLFamily }

// upstream is where a proxy finds the campaigns' database when the server is at the address.
func (f *family) upstream(address string) string {
	if f.mysql() {
		return "mysql://root@" + address + "/" + database
	}
	return "postgres://postgres@" + address + "/" + database + "?sslmode=disable"
}

func startMariaDB(ctx context.Context, clients int, over network) (server, error) {
	// A log that is written at each commit is in the kernel's hands when the server dies, and so are pages; those that
	// were being written when it died come from the doublewrite buffer.
	args := []string{"--innodb-flush-log-at-trx-commit=2", "--innodb-doublewrite=ON",
		fmt.Sprintf("--max-connections=%d", clients), "--back-log=1000"}
	if over == namespaces {
		args = append(args, "--bind-address=0.0.0.0", "--tcp-keepalive-time=2", "--tcp-keepalive-interval=1",
			"--tcp-keepalive-probes=3")
	}
	s, err := testdb.Start(ctx, testdb.Options{Args: args})
	if err != nil || over != namespaces {
		return s, err
	}
	if err := letInCabled(ctx, s); err != nil {
		return nil, errors.Join(err, s.Stop())
	}
	return s, nil
}

// letInCabled lets root in from the addresses of cables, too.
func letInCabled(ctx context.Context, s *testdb.Server) error {
	db, err := s.DB("")
	if err != nil {
		return err
	}
	defer db.Close()
	mask := net.CIDRMask(cabled.Bits(), 32)
	root := fmt.Sprintf("root@'%v/%d.%d.%d.%d'", cabled.Addr(), mask[0], mask[1], mask[2], mask[3])
	for _, statement := range []string{"CREATE USER " + root, "GRANT ALL ON *.* TO " + root + " WITH GRANT OPTION"} {
		if _, err := db.ExecContext(ctx, statement); err != nil {
			return fmt.Errorf("let clients in that come over cables: %w", err)
		}
	}
	return nil
}

func startPostgreSQL(ctx context.Context, clients int, over network) (server, error) {
	o := testdb.PostgreSQLOptions{Args: []string{"-c", "full_page_writes=on", "-c",
		fmt.Sprintf("max_connections=%d", clients)}}
	if over == namespaces {
		o.Args = append(o.Args, "-c", "listen_addresses=0.0.0.0", "-c", "tcp_keepalives_idle=2", "-c",
			"tcp_keepalives_interval=1", "-c", "tcp_keepalives_count=3")
		o.HBA = []string{"host all all " + cabled.String() + " trust"}
	}
	return testdb.StartPostgreSQL(ctx, o)
}

func mysqlTimeouts(limit time.Duration) string {
	return fmt.Sprintf("&timeout=%v&readTimeout=%[1]v&writeTimeout=%[1]v", limit)
}

func openMySQL(address, parameters string) (*sql.DB, error) {
	config, err := mysql.ParseDSN(fmt.Sprintf("root@tcp(%s)/%s?%s", address, database, parameters))
	if err != nil {
		return nil, fmt.Errorf("open a client's connection: %w", err)
	}
	config.Logger = &mysql.NopLogger{} // it would log each connection that breaks
	connector, err := mysql.NewConnector(config)
	if err != nil {
		return nil, fmt.Errorf("open a client's connection: %w", err)
	}
	return sql.OpenDB(connector), nil
}

func openPgx(address, parameters string) (*sql.DB, error) {
	return sql.Open("pgx", fmt.Sprintf("postgres://postgres@%s/%s?sslmode=disable&%s", address, database, parameters))
}

// A site is a server with the campaigns' database on it.
type site struct {
	server
	family *family
	db     *sql.DB // goes to the server directly
}

// newSite starts a server for this many clients, which come over the network, and makes the database.
func (f *family) newSite(ctx context.Context, clients int, over network) (_ *site, err error) {
	s := &site{family: f}
	if s.server, err = f.start(ctx, clients, over); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Stop())
		}
	}()
	maker, err := s.DB("")
	if err != nil {
		return nil, err
	}
	defer maker.Close()
	if _, err := maker.ExecContext(ctx, "CREATE DATABASE "+database); err != nil {
		return nil, fmt.Errorf("make the database: %w", err)
	}
	if s.db, err = s.DB(database); err != nil {
		return nil, err
	}
	s.db.SetMaxIdleConns(-1) // a connection would not outlive the server's kill
	return s, nil
}

// close stops the server.
func (s *site) close() error { return errors.Join(s.db.Close(), s.Stop()) }

// run runs statements on the server.
func (s *site) run(ctx context.Context, statements ...string) error {
	for _, statement := range statements {
		if _, err := s.db.ExecContext(ctx, statement); err != nil {
			return fmt.Errorf("%s: %w", statement, err)
		}
	}
	return nil
}

// makeTables makes the works' tables anew and gives them what isotap needs.
func (s *site) makeTables(ctx context.Context) error {
	if err := s.run(ctx, "DROP TABLE IF EXISTS slot, entry"); err != nil {
		return err
	}
	if err := s.run(ctx, s.family.tables...); err != nil {
		return err
	}
	for slot := range len(s.family.works) + 1 {
		if err := s.run(ctx, fmt.Sprintf("INSERT INTO slot VALUES (%d, '')", slot)); err != nil {
			return err
		}
	}
	return s.instrument(ctx)
}

// instrument gives the tables of the MySQL family isotap's columns.
func (s *site) instrument(ctx context.Context) error {
	if !s.family.mysql() {
		return nil
	}
	target, err := dsn.Parse(s.family.upstream(s.Addr()))
	if err != nil {
		return err
	}
	conn, err := catalogmysql.Connect(ctx, target)
	if err != nil {
		return err
	}
	defer conn.Close()
	if _, err := catalogmysql.Instrument(ctx, conn, catalog.Options{Schemas: []string{database}}); err != nil {
		return fmt.Errorf("instrument the tables: %w", err)
	}
	return nil
}

// answers waits until a new client at the address gets an answer.
func (f *family) answers(ctx context.Context, address string, limit time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	db, err := f.open(address, "")
	if err != nil {
		return err
	}
	defer db.Close()
	for {
		var one int
		if err = db.QueryRowContext(ctx, "SELECT 1").Scan(&one); err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("no answer within %v: %w", limit, err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}
