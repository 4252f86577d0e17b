// Package engine starts throw-away database servers for isotap's own clients: the demo, replayed scenarios, the
// generator. MariaDB and PostgreSQL are installed by package name where they are missing; of MySQL and TiDB the error
// says where they come from (package testdb).
package engine

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/isotap/isotap/catalog"
	catalogmysql "github.com/isotap/isotap/catalog/mysql"
	catalogpostgres "github.com/isotap/isotap/catalog/postgres"
	"github.com/isotap/isotap/dbms"
	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/internal/dsn"
	"github.com/isotap/isotap/internal/testdb"
	sqlmysql "github.com/isotap/isotap/rewrite/mysql"
	sqlpostgres "github.com/isotap/isotap/rewrite/postgres"
)

// A Server is a throw-away server. Stop ends it and removes everything it wrote.
type Server interface {
	URL() string // without a database
	Addr() string
	Version() string
	DB(database string) (*sql.DB, error)
	Log() string // the end of what it logged
	Stop() error
}

// An Engine is a kind of server that can be started here.
type Engine struct {
	Name      string // as in flags
	also      string // what else people call it
	title     string
	installed func() bool
	install   func(ctx context.Context, w io.Writer) error // what can be installed without a question
	start     func(ctx context.Context) (Server, error)
	ready     func(ctx context.Context, target dsn.Target, columns bool) error
}

var engines = []*Engine{
	{"mariadb", "", "MariaDB", testdb.HasMariaDB, testdb.Install, startMariaDB, instrument},
	{"postgres", "postgresql", "PostgreSQL", testdb.HasPostgreSQL, testdb.InstallPostgreSQL, startPostgreSQL, instrumentPostgreSQL},
	{"mysql", "", "MySQL", testdb.HasMySQL, nothing, startMySQL, instrument},
	{"tidb", "", "TiDB", testdb.HasTiDB, nothing, startTiDB, instrument},
}

// Names are the names of the engines, in the order in which they are looked for.
func Names() []string {
	names := make([]string, len(engines))
	for i, e := range engines {
		names[i] = e.Name
	}
	return names
}

// Find returns the engine of the name; with none, the first that is installed, and MariaDB when none is.
func Find(name string) (*Engine, error) {
	for _, e := range engines {
		if name != "" && (e.Name == name || e.also == name) || name == "" && e.installed() {
			return e, nil
		}
	}
	if name == "" {
		return engines[0], nil
	}
	return nil, fmt.Errorf("there is no engine %q: %s", name, strings.Join(Names(), ", "))
}

// Start installs the engine where it is missing and starts a server. What is done is said to w, a line each.
func (e *Engine) Start(ctx context.Context, w io.Writer) (Server, error) {
	if err := e.install(ctx, w); err != nil {
		return nil, err
	}
	server, err := e.start(ctx)
	if err != nil {
		return nil, err
	}
	fmt.Fprintf(w, "started %s %s on %s\n", e.title, server.Version(), server.Addr())
	return server, nil
}

// Ready does with the tables of the target's database what isotap needs; columns has PostgreSQL's rows known by
// isotap's columns.
func (e *Engine) Ready(ctx context.Context, target dsn.Target, columns bool) error {
	return e.ready(ctx, target, columns)
}

func startMariaDB(ctx context.Context) (Server, error) {
	return testdb.Start(ctx, testdb.Options{Args: testdb.BinaryLog})
}

func startPostgreSQL(ctx context.Context) (Server, error) {
	return testdb.StartPostgreSQL(ctx, testdb.PostgreSQLOptions{})
}

func startMySQL(ctx context.Context) (Server, error) { return testdb.StartMySQL(ctx) }

func startTiDB(ctx context.Context) (Server, error) { return testdb.StartTiDB(ctx) }

// nothing is installed: the start says what is missing.
func nothing(context.Context, io.Writer) error { return nil }

// instrument gives the tables isotap's columns.
func instrument(ctx context.Context, target dsn.Target, _ bool) error {
	conn, err := catalogmysql.Connect(ctx, target)
	if err != nil {
		return err
	}
	defer conn.Close()
	_, err = catalogmysql.Instrument(ctx, conn, catalog.Options{Schemas: []string{target.Database},
		WListBytes: sqlmysql.DefaultWListBytes})
	return err
}

// instrumentPostgreSQL gives the tables isotap's columns if rows are to be known by them.
func instrumentPostgreSQL(ctx context.Context, target dsn.Target, columns bool) error {
	if !columns {
		return nil
	}
	conn, err := catalogpostgres.NewConn(target, "")
	if err != nil {
		return err
	}
	defer conn.Close()
	_, err = catalogpostgres.Instrument(ctx, conn, catalog.Options{WListBytes: sqlpostgres.DefaultWListBytes})
	return err
}

// Identify asks a server who it is.
func Identify(ctx context.Context, target dsn.Target) (history.Server, error) {
	facts, err := Ask(ctx, target)
	return facts.Server, err
}

// Facts are what a server says of itself, and what sessions on it begin with.
type Facts struct {
	Server history.Server
	Level  history.Level
	// Conflicts says that its sessions choose how conflicts of writes end: by MariaDB's innodb_snapshot_isolation, by
	// TiDB's tidb_txn_mode, which Optimistic is about.
	Conflicts, Optimistic bool
}

// Ask asks a server for its facts.
func Ask(ctx context.Context, target dsn.Target) (Facts, error) {
	if target.Family == dbms.PostgreSQLFamily {
		c, err := catalogpostgres.NewConn(target, "")
		if err != nil {
			return Facts{}, err
		}
		s, err := catalogpostgres.ServerFacts(ctx, c)
		return Facts{Server: s.Server, Level: s.Level}, errors.Join(err, c.Close())
	}
	c, err := catalogmysql.Connect(ctx, target)
	if err != nil {
		return Facts{}, err
	}
	s, err := catalogmysql.ServerFacts(ctx, c)
	return Facts{Server: s.Server, Level: s.Level, Conflicts: s.AsksConflicts, Optimistic: s.Optimistic},
		errors.Join(err, c.Close())
}
