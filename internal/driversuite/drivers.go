package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/isotap/isotap/dbms"
	"github.com/isotap/isotap/internal/dsn"
	"github.com/isotap/isotap/internal/proxyserver"
)

// A driver has a test suite.
type driver struct {
	name string // as -driver has it
	// database is where the suite makes its tables.
	database string
	// setUp are statements that make what else the suite expects: each on the database, in autocommit.
	setUp   []string
	program program
	// open returns the server at the URL, or a throw-away one, and how it is connected to.
	open func(ctx context.Context, url, database string, over road) (host, error)
}

// A road is how the suite's connections are made, through isotap as directly. MySQL's suite has tests of its own
// for TLS, and knows tcp only.
type road string

const (
	tcp     road = "tcp"
	overTLS road = "tls"
	socket  road = "socket"
)

// A host is the server that suites run on.
type host interface {
	// target is where it is, for isotap.
	target() dsn.Target
	// clients is the TLS that isotap is to offer, and listen where it is to listen.
	clients() proxyserver.ClientTLS
	listen(dir string) string
	facts(ctx context.Context) (engine, version string, err error)
	// renew makes the suite's database anew and runs statements on it.
	renew(ctx context.Context, setUp []string) error
	// environment returns the variables that tell the tests where the server is, or isotap in front of it.
	environment(network, address string) []string
	close() error
}

var drivers = []*driver{
	{
		name: "mysql", database: "gotest", open: openMySQL,
		program: &goTests{module: "github.com/go-sql-driver/mysql", packages: []pkg{{dir: "."}},
			// An address in the Internet that must not answer.
			skipped: "TestConnectorReturnsTimeout"},
	},
	{
		name: "pgx", database: "pgx_test", open: openPostgreSQL, setUp: pgxSetUp,
		program: &goTests{module: "github.com/jackc/pgx/v5", packages: []pkg{
			{title: "pgx", dir: "."}, {title: "pgconn", dir: "pgconn"}, {title: "pgtype", dir: "pgtype"},
			{title: "zeronull", dir: "pgtype/zeronull"},
			{title: "pgxpool", dir: "pgxpool"}, {title: "stdlib", dir: "stdlib"}, {title: "tracelog", dir: "tracelog"},
		}},
	},
	{
		name: "pq", database: "pqgotest", open: openPostgreSQL, setUp: pgxSetUp,
		program: &goTests{module: "github.com/lib/pq", version: "v1.10.9", packages: []pkg{
			{title: "pq", dir: "."}, {title: "pq-binary", dir: ".", env: []string{"PQTEST_BINARY_PARAMETERS=yes"}},
			{title: "hstore", dir: "hstore"},
		}},
	},
	{name: "pymysql", database: "test1", open: openMySQL, setUp: []string{"CREATE DATABASE IF NOT EXISTS test2"},
		program: pyMySQL},
	{name: "mysql2", database: "test", open: openMySQL, program: mysql2},
	{name: "mariadb-nodejs", database: "testn", open: openMySQL, program: mariadbNodeJS},
	{name: "django-mysql", database: "django_default", open: openMySQL,
		setUp: []string{"CREATE DATABASE IF NOT EXISTS django_other"}, program: django()},
	{name: "sqlalchemy-mysql", database: "test", open: openMySQL, program: sqlAlchemy(),
		setUp: []string{"CREATE DATABASE IF NOT EXISTS test_schema", "CREATE DATABASE IF NOT EXISTS test_schema_2"}},
	{name: "connector-j", database: "test", open: openMySQL, program: connectorJ},
	{name: "pgjdbc", database: "pgjdbc_test", program: pgJDBC,
		open: openPostgreSQLWith("-c", "wal_level=logical", "-c", "max_prepared_transactions=64"),
		setUp: []string{"DROP ROLE IF EXISTS test", "CREATE ROLE test LOGIN REPLICATION PASSWORD 'test'",
			"GRANT ALL ON DATABASE pgjdbc_test TO test", "ALTER SCHEMA public OWNER TO test", "CREATE EXTENSION hstore"}},
	{name: "pg_regress", database: "regress_test", open: openPostgreSQLWith("-c", "max_prepared_transactions=2"),
		program: &regressTests{major: "15"}},
	{name: "psycopg", database: "psycopg_test", open: openPostgreSQL, program: psycopg},
	{name: "node-postgres", database: "node_test", open: openPostgreSQL, program: nodePostgres},
	{name: "django", database: "django_default", open: openPostgreSQL, program: django()},
	{name: "sqlalchemy", database: "sqlalchemy_test", open: openPostgreSQL, program: sqlAlchemy(),
		setUp: []string{"CREATE SCHEMA test_schema", "CREATE SCHEMA test_schema_2", "CREATE EXTENSION hstore",
			"CREATE EXTENSION citext"}},
}

func driverNames() []string {
	names := make([]string, len(drivers))
	for i, d := range drivers {
		names[i] = d.name
	}
	return names
}

// chooseDriver returns the driver of the name, or when it is empty the first for the server.
func chooseDriver(name, server string) (*driver, error) {
	if name == "" {
		name = "mysql"
		if t, err := dsn.Parse(server); err == nil && t.Family == dbms.PostgreSQLFamily {
			name = "pgx"
		}
	}
	for _, d := range drivers {
		if d.name == name {
			return d, nil
		}
	}
	return nil, fmt.Errorf("-driver: there is no suite of %q: %s", name, strings.Join(driverNames(), ", "))
}
