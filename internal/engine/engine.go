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
	"slices"
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

// An Engine is a kind of server that can be started here, or one program or version of it. It is not changed.
type Engine struct {
	Name      string // as in flags
	also      string // what else people call it
	title     string
	program   string // its path, where one was named
	version   string // that its own has to begin with, where one was named
	installed func() bool
	install   func(ctx context.Context, w io.Writer) error // what can be installed without a question
	start     func(ctx context.Context, o testdb.Options) (Server, error)
	ready     func(ctx context.Context, target dsn.Target, columns bool) error
}

// String returns the text that [Find] finds it by.
func (e *Engine) String() string {
	text := e.Name
	if e.version != "" {
		text += "@" + e.version
	}
	if e.program != "" {
		text += "=" + e.program
	}
	return text
}

var engines = []*Engine{
	{Name: "mariadb", title: "MariaDB", installed: testdb.HasMariaDB, install: testdb.Install, start: startMariaDB,
		ready: instrument},
	{Name: "postgres", also: "postgresql", title: "PostgreSQL", installed: testdb.HasPostgreSQL,
		install: testdb.InstallPostgreSQL, start: startPostgreSQL, ready: instrumentPostgreSQL},
	{Name: "mysql", title: "MySQL", installed: testdb.HasMySQL, install: nothing, start: startMySQL, ready: instrument},
	{Name: "tidb", title: "TiDB", installed: testdb.HasTiDB, install: nothing, start: startTiDB, ready: instrument},
}

// Names are the names of the engines, in the order in which they are looked for.
func Names() []string {
	names := make([]string, len(engines))
	for i, e := range engines {
		names[i] = e.Name
	}
	return names
}

// Find returns the engine that a text names: NAME, of which distributions' places are searched; NAME=PATH, its server's
// program; NAME@VERSION or NAME@VERSION=PATH, which [Engine.Start] holds it to. With no text it is the first that is
// installed, and MariaDB when none is.
func Find(text string) (*Engine, error) {
	name, program, named := strings.Cut(text, "=")
	name, version, versioned := strings.Cut(name, "@")
	if named && program == "" || versioned && version == "" {
		return nil, fmt.Errorf("engine %q: the path or the version is empty", text)
	}
	for _, e := range engines {
		if name != "" && (e.Name == name || e.also == name) || text == "" && e.installed() {
			found := *e
			found.program, found.version = program, version
			return &found, nil
		}
	}
	if text == "" {
		return engines[0], nil
	}
	return nil, fmt.Errorf("there is no engine %q: %s", name, strings.Join(Names(), ", "))
}

// Start installs the engine where it is missing and no program was named, and starts a server with command line options
// beside isotap's own. What is done is said to w, a line each. A server of another version than the named one is ended,
// and an error.
func (e *Engine) Start(ctx context.Context, w io.Writer, args ...string) (Server, error) {
	if e.program == "" {
		if err := e.install(ctx, w); err != nil {
			return nil, err
		}
	}
	o := testdb.Options{Program: e.program, Args: args}
	if e.Name == "postgres" && e.program == "" && e.version != "" {
		o.Program = testdb.PostgreSQLOfVersion(e.version)
	}
	server, err := e.start(ctx, o)
	if err != nil {
		return nil, err
	}
	if !isVersion(server.Version(), e.version) {
		err := fmt.Errorf("this machine's %s is %s, not %s: name the program of that version, as --engine %s@%s=PATH",
			e.title, server.Version(), e.version, e.Name, e.version)
		return nil, errors.Join(err, server.Stop())
	}
	fmt.Fprintf(w, "started %s %s on %s\n", e.title, server.Version(), server.Addr())
	return server, nil
}

// isVersion reports whether a server's version is the wanted one, or begins with its numbers: 10.11.19 is 10.11, and
// not 10.1. What TiDB says of itself begins with the MySQL that it is like, and has its own behind "TiDB-v".
func isVersion(says, want string) bool {
	if _, own, ok := strings.Cut(says, "TiDB-v"); ok {
		says = own
	}
	rest, ok := strings.CutPrefix(says, strings.TrimPrefix(want, "v"))
	return ok && (want == "" || rest == "" || rest[0] < '0' || rest[0] > '9')
}

// Ready does with the tables of the target's database what isotap needs; columns has PostgreSQL's rows known by
// isotap's columns.
func (e *Engine) Ready(ctx context.Context, target dsn.Target, columns bool) error {
	return e.ready(ctx, target, columns)
}

func startMariaDB(ctx context.Context, o testdb.Options) (Server, error) {
	o.Args = slices.Concat(testdb.BinaryLog, o.Args)
	return testdb.Start(ctx, o)
}

func startPostgreSQL(ctx context.Context, o testdb.Options) (Server, error) {
	return testdb.StartPostgreSQL(ctx, testdb.PostgreSQLOptions{Program: o.Program, Args: o.Args})
}

func startMySQL(ctx context.Context, o testdb.Options) (Server, error) {
	return testdb.StartMySQL(ctx, o)
}

func startTiDB(ctx context.Context, o testdb.Options) (Server, error) {
	return testdb.StartTiDB(ctx, o)
}

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
