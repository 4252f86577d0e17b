package testdb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// TB is what this package needs of a *testing.T or *testing.B. It is spelled out so that isotap's
// own binary, which has "isotap demo", does not link the testing package.
type TB interface {
	Helper()
	Name() string
	Fatalf(format string, args ...any)
	Skipf(format string, args ...any)
	Cleanup(func())
}

// Patience is how long a test waits for what must come: so long that on the busiest machine only what never
// comes is missed. No test waits so long for what must not come.
const Patience = 5 * time.Minute

// shared is the MariaDB that all tests of a process use.
var shared struct {
	once   sync.Once
	server *Server
	err    error
}

// sharedPostgreSQL is the PostgreSQL that all tests of a process use. Admin is for what is made for tests.
var sharedPostgreSQL struct {
	once   sync.Once
	server *PostgreSQLServer
	admin  *sql.DB
	err    error
}

var databases atomic.Int64

// MariaDB returns the throw-away server that the process's tests share, started by the first call. The
// package's TestMain must be [Main], which stops it. Without MariaDB the test fails and says what to
// install. In a round on another engine the test is skipped; [Current] gives the server of any round.
func MariaDB(tb TB) *Server {
	tb.Helper()
	if elsewhere() {
		tb.Skipf("this test is for MariaDB, and ran there")
	}
	shared.once.Do(func() { shared.server, shared.err = Start(context.Background(), Options{}) })
	if shared.err != nil {
		tb.Fatalf("this test needs a database server: %v", shared.err)
	}
	return shared.server
}

// PostgreSQL returns the server that the process's tests of PostgreSQL use: the throw-away one that they
// share, started by the first call, and in the round of an engine of that family (see [Main]) the engine's.
// The package's TestMain must be [Main]. Without PostgreSQL the test fails and says what to install. In a
// round of the MySQL family the test is skipped.
func PostgreSQL(tb TB) *PostgreSQLServer {
	tb.Helper()
	if round.postgresql != nil {
		return round.postgresql
	}
	if elsewhere() {
		tb.Skipf("this test is for PostgreSQL, and ran there")
	}
	p := &sharedPostgreSQL
	p.once.Do(func() { p.err = startSharedPostgreSQL() })
	if p.err != nil {
		tb.Fatalf("this test needs a database server: %v", p.err)
	}
	return p.server
}

func startSharedPostgreSQL() (err error) {
	p := &sharedPostgreSQL
	// Autovacuum would visit one database after the other, ever more often the more of them tests made.
	o := PostgreSQLOptions{Args: []string{"-c", "autovacuum=off"}}
	if p.server, err = StartPostgreSQL(context.Background(), o); err != nil {
		return err
	}
	if p.admin, err = p.server.DB(""); err != nil {
		return err
	}
	// The first session in a database writes what the next ones begin with: it is copied from there on.
	template, err := p.server.DB("template1")
	if err != nil {
		return err
	}
	return errors.Join(template.Ping(), template.Close())
}

// Main is the body of a TestMain: it runs the tests (m is a *testing.M), once more for each of the engines
// that the environment names a server of, stops the shared servers that were started, and exits.
func Main(m interface{ Run() int }, also ...Engine) {
	code := rounds(m, also)
	var err error
	if shared.server != nil {
		err = shared.server.Stop()
	}
	if sharedPostgreSQL.server != nil {
		if sharedPostgreSQL.admin != nil {
			err = errors.Join(err, sharedPostgreSQL.admin.Close())
		}
		err = errors.Join(err, sharedPostgreSQL.server.Stop())
	}
	if sharedTiDB.server != nil {
		err = errors.Join(err, sharedTiDB.server.Stop())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = max(code, 1)
	}
	os.Exit(code)
}

// NewDatabase makes an empty database on the server of [Current] and returns its name, which no other test
// has. It stays until the server is stopped, or the round over: dropping it could wait for a lock that
// a failed test still holds.
func NewDatabase(tb TB) string {
	tb.Helper()
	name := newName(tb)
	db := Open(tb, "")
	if _, err := db.Exec("CREATE DATABASE `" + name + "`"); err != nil {
		tb.Fatalf("making a database for the test: %v", err)
	}
	return name
}

// NewPostgreSQLDatabase makes an empty database on the server of [PostgreSQL], as [NewDatabase] does on that
// of Current.
func NewPostgreSQLDatabase(tb TB) string {
	tb.Helper()
	server := PostgreSQL(tb) // skips the test before it makes a name
	name := newName(tb)
	create := "CREATE DATABASE " + name
	if server.Major() >= 15 {
		create += " STRATEGY file_copy" // half the time, where nothing is synced
	}
	admin := sharedPostgreSQL.admin
	if elsewhere() {
		admin = OpenPostgreSQL(tb, "")
	}
	if _, err := admin.Exec(create); err != nil {
		tb.Fatalf("making a database for the test: %v", err)
	}
	return name
}

// newName is a name for a database that no other test has.
func newName(tb TB) string {
	name := databaseName(tb.Name(), databases.Add(1))
	if elsewhere() {
		// Other processes test on the same server.
		name = fmt.Sprintf("%s_%d", name, os.Getpid())
		keep(name)
	}
	return name
}

// Open opens a pool of connections to a database of the server of [Current], over TCP, that is closed
// when the test ends.
func Open(tb TB, database string) *sql.DB {
	tb.Helper()
	db, err := Current(tb).DB(database)
	return closeAfter(tb, db, err)
}

// OpenPostgreSQL opens a pool of connections to a database of the server of [PostgreSQL], over TCP, that is
// closed when the test ends. Without a name the database is postgres.
func OpenPostgreSQL(tb TB, database string) *sql.DB {
	tb.Helper()
	db, err := PostgreSQL(tb).DB(database)
	return closeAfter(tb, db, err)
}

// Exec runs statements, and fails the test at the first that fails.
func Exec(tb TB, db *sql.DB, statements ...string) {
	tb.Helper()
	for _, s := range statements {
		if _, err := db.Exec(s); err != nil {
			tb.Fatalf("%s: %v", s, err)
		}
	}
}

func closeAfter(tb TB, db *sql.DB, err error) *sql.DB {
	tb.Helper()
	if err != nil {
		tb.Fatalf("%v", err)
	}
	tb.Cleanup(func() { _ = db.Close() })
	return db
}

// maxNameRunes keeps names under PostgreSQL's limit of 63 bytes, the shortest.
const maxNameRunes = 48

// databaseName makes a name that is readable and needs no quoting: the test's name, in lower case
// for servers that fold names, and a number that makes it unique.
func databaseName(test string, n int64) string {
	clean := strings.Map(func(r rune) rune {
		if r < 'a' || r > 'z' {
			return '_'
		}
		return r
	}, strings.ToLower(test))
	return fmt.Sprintf("%s_%d", clean[:min(len(clean), maxNameRunes)], n)
}
