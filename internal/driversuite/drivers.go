package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/isotap/isotap/catalog"
	"github.com/isotap/isotap/internal/tap"
)

// A driver is a module with a test suite.
type driver struct {
	name    string // as -driver has it
	module  string
	version string // empty: that of isotap's own go.mod
	// database is where the suite makes its tables.
	database string
	packages []pkg
	// skipped are tests that need something else than the server, as a pattern; empty: none.
	skipped string
	// open gives the server at the URL, or a throw-away one, and how it is connected to.
	open func(ctx context.Context, url, database string, over road) (host, error)
}

// A pkg is a package of a module and what its tests find in their environment.
type pkg struct {
	title string // begins the names of its tests; empty: they have only their own
	dir   string // in the module
	env   []string
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
	target() catalog.Target
	// clients is the TLS that isotap is to offer, and listen where it is to listen.
	clients() tap.ClientTLS
	listen(dir string) string
	facts(ctx context.Context) (engine, version string, err error)
	// renew gives the suite an empty database.
	renew(ctx context.Context) error
	// environment tells the tests where the server is, or isotap in front of it.
	environment(network, address string) []string
	close() error
}

var drivers = []*driver{
	{
		name: "mysql", module: "github.com/go-sql-driver/mysql", database: "gotest", packages: []pkg{{dir: "."}},
		// An address in the Internet that must not answer.
		skipped: "TestConnectorReturnsTimeout",
		open:    openMySQL,
	},
	{
		name: "pgx", module: "github.com/jackc/pgx/v5", database: "pgx_test", open: openPostgreSQL,
		packages: []pkg{
			{title: "pgx", dir: "."}, {title: "pgconn", dir: "pgconn"}, {title: "pgtype", dir: "pgtype"}, {title: "zeronull", dir: "pgtype/zeronull"},
			{title: "pgxpool", dir: "pgxpool"}, {title: "stdlib", dir: "stdlib"}, {title: "tracelog", dir: "tracelog"},
		},
	},
	{
		name: "pq", module: "github.com/lib/pq", version: "v1.10.9", database: "pqgotest", open: openPostgreSQL,
		packages: []pkg{
			{title: "pq", dir: "."}, {title: "pq-binary", dir: ".", env: []string{"PQTEST_BINARY_PARAMETERS=yes"}}, {title: "hstore", dir: "hstore"},
		},
	},
}

func driverNames() []string {
	names := make([]string, len(drivers))
	for i, d := range drivers {
		names[i] = d.name
	}
	return names
}

// chooseDriver gives the driver of the name, or when it is empty the first for the server.
func chooseDriver(name, server string) (*driver, error) {
	if name == "" {
		name = "mysql"
		if t, err := catalog.ParseTarget(server); err == nil && t.Family == catalog.PostgreSQL {
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
