// Package tempdb has isotap's own clients work on a database that is made for them and dropped afterwards, through a
// proxy with a recording, which is then analyzed: any client ([Run]), one after the other ([Pool]), a known workload
// for `isotap workload` ([RunWorkload]), and the shop of `isotap demo`, whose server is made for it as well
// ([RunDemo]).
package tempdb

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/isotap/isotap/analyzer"
	"github.com/isotap/isotap/dbms"
	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/internal/analysis"
	"github.com/isotap/isotap/internal/dsn"
	"github.com/isotap/isotap/internal/proxyserver"
	"github.com/isotap/isotap/serverlog"
	"github.com/isotap/isotap/workload"
)

// Options say what [Run] runs.
type Options struct {
	// Database is its name. Where a database of that name is there already, a number is appended: what this run did not
	// make may be another run's, or the user's.
	Database string
	// Recording is the directory of the recording, which stays; empty: it is a temporary one.
	Recording  string
	Columns    bool // see proxyserver.Options
	Predicates bool // see proxyserver.Options
	// Definitions: see proxyserver.Options.
	Definitions bool
	ServerLog   serverlog.Use // see proxyserver.Options
	Version     string        // isotap's own
	// Patience is how long making and dropping the database may take; 0: a minute.
	Patience time.Duration
}

// Run makes the database on the target's server, as a user who may, gives the data source of it through isotap to work,
// drops it, and analyzes what was recorded.
func Run(ctx context.Context, target dsn.Target, o Options,
	work func(ctx context.Context, dsn string) error) (*analyzer.Result, error) {
	return analyzed(ctx, o, func(o Options) (history.Run, error) { return record(ctx, target, o, work) })
}

// analyzed analyzes what a function records.
func analyzed(ctx context.Context, o Options, record func(Options) (history.Run, error)) (result *analyzer.Result,
	err error) {
	if o.Recording == "" {
		dir, err := os.MkdirTemp("", "isotap-scratch-")
		if err != nil {
			return nil, fmt.Errorf("make a directory for the recording: %w", err)
		}
		defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
		o.Recording = filepath.Join(dir, "recording")
	}
	run, err := record(o)
	if err != nil {
		return nil, err
	}
	return analysis.AnalyzeRun(ctx, o.Recording, run, analyzer.Options{})
}

// defaultPatience is how long making and dropping a database may take where nothing else is said.
const defaultPatience = time.Minute

// drain is how long isotap may go on with sessions whose client has left: it may still be asking what a write did.
const drain = 10 * time.Second

// record makes the database, has the work done on it through isotap, and drops it.
func record(ctx context.Context, target dsn.Target, o Options,
	work func(ctx context.Context, dsn string) error) (run history.Run, err error) {
	if target.Family == dbms.PostgreSQLFamily {
		target.Database = cmp.Or(target.Database, "postgres")
	}
	admin, err := open(target)
	if err != nil {
		return run, err
	}
	defer admin.Close()
	patience := cmp.Or(o.Patience, defaultPatience)
	making, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	database, err := create(making, admin, o.Database)
	if err != nil {
		return run, fmt.Errorf("make the database %s: %w", o.Database, err)
	}
	defer func() {
		dropping, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
		defer cancel()
		if dropErr := drop(dropping, admin, target.Family, database); err == nil && dropErr != nil {
			err = fmt.Errorf("drop the database %s: %w", database, dropErr)
		}
	}()
	return through(ctx, target, database, o, work)
}

// through has the work done on a database through isotap.
func through(ctx context.Context, target dsn.Target, database string, o Options,
	work func(ctx context.Context, dsn string) error) (run history.Run, err error) {
	target.Database = database
	srv, err := proxyserver.Start(context.WithoutCancel(ctx),
		proxyserver.Options{Upstream: target, Listen: "127.0.0.1:0", Recording: o.Recording, Args: true,
			Drain: drain, Columns: o.Columns, Predicates: o.Predicates, Definitions: o.Definitions,
			ServerLog: o.ServerLog, Version: o.Version})
	if err != nil {
		return run, err
	}
	defer func() { err = errors.Join(err, srv.Stop()) }()
	return srv.Run(), work(ctx, srv.DSN(database))
}

// open returns a pool of connections to the server itself.
func open(target dsn.Target) (*sql.DB, error) {
	if target.Family == dbms.PostgreSQLFamily {
		return workload.PostgreSQL.Open(target.URL(), false)
	}
	c := mysql.NewConfig()
	c.User, c.Passwd, c.Net, c.Addr = target.User, target.Password, cmp.Or(target.Network, "tcp"), target.Address
	var err error
	if c.TLS, err = target.TLSConfig(); err != nil {
		return nil, err
	}
	c.Logger = &mysql.NopLogger{} // what it would log comes as an error, too
	c.AllowFallbackToPlaintext = target.TLS.Mode == dsn.TLSPrefer
	connector, err := mysql.NewConnector(c)
	if err != nil {
		return nil, fmt.Errorf("the server's address: %w", err)
	}
	return sql.OpenDB(connector), nil
}

// mostNames bounds how many names are tried for a database. Who has so many left over wants to know.
const mostNames = 1000

// create makes a database of the given name or, where that is taken, of the name with the first number from 2 on that
// is free, and returns its name. The server decides whether a name is free, so several runs may ask at the same time.
func create(ctx context.Context, admin *sql.DB, name string) (string, error) {
	for n := range mostNames {
		database := name
		if n > 0 {
			database = fmt.Sprintf("%s_%d", name, n+1)
		}
		_, err := admin.ExecContext(ctx, "CREATE DATABASE "+database)
		if err == nil {
			return database, nil
		}
		if !nameTaken(err) {
			return "", err
		}
	}
	return "", fmt.Errorf("it is there already, and so are %[1]s_2 to %[1]s_%[2]d: drop those that no run works in",
		name, mostNames)
}

// PostgreSQL's SQLSTATEs for a database whose name is taken: by one that is there, and by one that another session is
// just making.
const (
	duplicateDatabase = "42P04"
	uniqueViolation   = "23505"
)

// databaseExists is the MySQL family's error number for a database whose name is taken, ER_DB_CREATE_EXISTS.
const databaseExists = 1007

// nameTaken reports whether CREATE DATABASE failed because there is a database of that name.
func nameTaken(err error) bool {
	var my *mysql.MySQLError
	if errors.As(err, &my) {
		return my.Number == databaseExists
	}
	var pg *pgconn.PgError
	return errors.As(err, &pg) && (pg.Code == duplicateDatabase || pg.Code == uniqueViolation)
}

// drop removes the database if it is there.
func drop(ctx context.Context, admin *sql.DB, f dbms.Family, name string) error {
	// DROP DATABASE WITH (FORCE) is of version 13; without, it waits for those who are told to go.
	if f == dbms.PostgreSQLFamily {
		if _, err := admin.ExecContext(ctx, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = $1",
			name); err != nil {
			return err
		}
	}
	_, err := admin.ExecContext(ctx, "DROP DATABASE IF EXISTS "+name)
	return err
}
