package demo

import (
	"context"
	"database/sql"
	"fmt"
	"io"
	"strings"

	"github.com/isotap/isotap/catalog"
	catalogpostgres "github.com/isotap/isotap/catalog/postgres"
	"github.com/isotap/isotap/internal/testdb"
	sqlmysql "github.com/isotap/isotap/rewrite/mysql"
	sqlpostgres "github.com/isotap/isotap/rewrite/postgres"
)

// A server is a throw-away one.
type server interface {
	URL() string // without a database
	Addr() string
	Version() string
	DB(database string) (*sql.DB, error)
	Stop() error
}

// An engine is what a demo can run on.
type engine struct {
	name, title string
	installed   func() bool
	install     func(ctx context.Context, w io.Writer) error
	start       func(ctx context.Context) (server, error)
	// ready does with the shop's tables what isotap needs; columns has PostgreSQL's rows known by isotap's columns.
	ready func(ctx context.Context, target catalog.Target, columns bool) error
}

var engines = []engine{
	{"mariadb", "MariaDB", testdb.HasMariaDB, testdb.Install, startMariaDB, instrument},
	{"postgres", "PostgreSQL", testdb.HasPostgreSQL, testdb.InstallPostgreSQL, startPostgreSQL, instrumentPostgreSQL},
}

// Engines are the names of the engines, in the order in which they are looked for.
func Engines() []string {
	names := make([]string, len(engines))
	for i, e := range engines {
		names[i] = e.name
	}
	return names
}

// CheckEngine says what is wrong with the name of an engine.
func CheckEngine(name string) error {
	_, err := chooseEngine(name)
	return err
}

// chooseEngine gives the engine of the name.
func chooseEngine(name string) (engine, error) {
	for _, e := range engines {
		if e.name == name || name == "" && e.installed() {
			return e, nil
		}
	}
	if name == "" {
		return engines[0], nil
	}
	return engine{}, fmt.Errorf("there is no engine %q: %s", name, strings.Join(Engines(), " or "))
}

func startMariaDB(ctx context.Context) (server, error) {
	return testdb.Start(ctx, testdb.Options{})
}

func startPostgreSQL(ctx context.Context) (server, error) {
	return testdb.StartPostgreSQL(ctx, testdb.PostgreSQLOptions{})
}

// instrument gives the tables isotap's columns.
func instrument(ctx context.Context, target catalog.Target, _ bool) error {
	conn, err := catalog.Connect(ctx, target)
	if err != nil {
		return err
	}
	defer conn.Close()
	_, err = catalog.Instrument(ctx, conn, catalog.Options{Schemas: []string{database}, WListBytes: sqlmysql.DefaultWListBytes})
	return err
}

// instrumentPostgreSQL gives the tables isotap's columns if rows are to be known by them.
func instrumentPostgreSQL(ctx context.Context, target catalog.Target, columns bool) error {
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
