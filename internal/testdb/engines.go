package testdb

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
)

// An Engine is a server other than the throw-away MariaDB and PostgreSQL, which tests also run on where an
// environment variable says that there is one.
type Engine struct {
	Name     string
	Variable string // holds mysql://root@127.0.0.1:3306/ or postgres://postgres@127.0.0.1:5432/
}

// The engines of the MySQL family. "make test-engines" starts servers of them.
var (
	MySQL      = Engine{"mysql", "ISOTAP_TEST_MYSQL_URL"}
	MariaDB118 = Engine{"mariadb118", "ISOTAP_TEST_MARIADB118_URL"}
)

// PostgreSQLs are the versions of PostgreSQL that "make test-engines" starts servers of, and last any other
// server that somebody names.
var PostgreSQLs = []Engine{
	{"pg12", "ISOTAP_TEST_PG12_URL"},
	{"pg14", "ISOTAP_TEST_PG14_URL"},
	{"pg16", "ISOTAP_TEST_PG16_URL"},
	{"pg17", "ISOTAP_TEST_PG17_URL"},
	{"pg18", "ISOTAP_TEST_PG18_URL"},
	{"postgresql", "ISOTAP_TEST_POSTGRESQL_URL"},
}

// mariaDB is the name of the first round, which runs on the throw-away servers.
const mariaDB = "mariadb"

// onlyVariable names the environment variable that leaves the round of one engine, by its name.
const onlyVariable = "ISOTAP_TEST_ONLY"

// round is the present round of the process's tests. In the first, on the throw-away servers, both servers
// are nil.
var round struct {
	engine     Engine
	server     *Server
	postgresql *PostgreSQLServer

	mu        sync.Mutex
	databases []string // made by the tests
}

// elsewhere reports whether the present round is that of an engine, not the first.
func elsewhere() bool { return round.engine.Name != "" }

// rounds runs all tests on the throw-away servers and then once more on each engine that there is a server
// of, or only the round that [onlyVariable] names. It gives the exit code.
func rounds(m interface{ Run() int }, also []Engine) int {
	only, code := os.Getenv(onlyVariable), 0
	if only == "" || only == mariaDB {
		code = m.Run()
	}
	for _, e := range also {
		if only != "" && only != e.Name {
			continue
		}
		address := os.Getenv(e.Variable)
		if address == "" {
			fmt.Fprintf(os.Stderr, "testdb: no tests on %s: %s is not set (see make test-engines)\n", e.Name,
				e.Variable)
			continue
		}
		version, err := enter(e, address)
		if err != nil {
			fmt.Fprintf(os.Stderr, "testdb: %s: %v\n", e.Variable, err)
			code = max(code, 1)
			continue
		}
		fmt.Printf("testdb: the same tests on %s, %s\n", e.Name, version)
		code = max(code, m.Run())
		if err := leave(); err != nil {
			fmt.Fprintf(os.Stderr, "testdb: %s: %v\n", e.Variable, err)
		}
	}
	return code
}

// enter makes the server at a URL that of the present round and returns its version.
func enter(e Engine, address string) (version string, err error) {
	u, err := url.Parse(address)
	if err != nil || u.Hostname() == "" || u.User.Username() == "" {
		return "", errors.New("not a server's URL: write mysql://root@127.0.0.1:3306/ or postgres://postgres@127.0.0.1:5432/")
	}
	round.engine, round.server, round.postgresql, round.databases = e, nil, nil, nil
	if u.Scheme != "mysql" {
		if round.postgresql, err = connectPostgreSQL(u); err != nil {
			return "", err
		}
		return round.postgresql.Version(), nil
	}
	if round.server, err = connect(u); err != nil {
		return "", err
	}
	return round.server.Version(), nil
}

// leave removes what the present round's tests left on its server.
func leave() error {
	if round.postgresql != nil {
		return dropPostgreSQLDatabases(round.postgresql, round.databases)
	}
	return dropDatabases(round.server, round.databases)
}

// connect returns the server of the MySQL family at a URL.
func connect(u *url.URL) (*Server, error) {
	s := &Server{}
	if err := s.locate(u, 3306); err != nil {
		return nil, err
	}
	db, err := s.DB("")
	if err != nil {
		return nil, err
	}
	defer db.Close()
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	if err := db.QueryRowContext(ctx, "SELECT VERSION()").Scan(&s.version); err != nil {
		return nil, fmt.Errorf("reach %s: %w", s.Addr(), err)
	}
	return s, nil
}

// connectPostgreSQL returns the PostgreSQL at a URL.
func connectPostgreSQL(u *url.URL) (*PostgreSQLServer, error) {
	s := &PostgreSQLServer{}
	if err := s.locate(u, 5432); err != nil {
		return nil, err
	}
	c, err := s.config(s.host, "postgres")
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	if err := s.askVersion(ctx, c); err != nil {
		return nil, fmt.Errorf("reach %s: %w", s.Addr(), err)
	}
	return s, nil
}

// keep notes that the database is to be dropped at the round's end.
func keep(database string) {
	round.mu.Lock()
	defer round.mu.Unlock()
	round.databases = append(round.databases, database)
}

// dropDatabases removes what the tests of a round made, as far as no lock is in the way.
func dropDatabases(s *Server, names []string) error {
	db, err := s.DB("")
	if err != nil {
		return err
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	if _, err := db.Exec("SET SESSION lock_wait_timeout = 2"); err != nil {
		return fmt.Errorf("dropping the tests' databases: %w", err)
	}
	var errs []error
	for _, name := range names {
		if _, err := db.Exec("DROP DATABASE IF EXISTS `" + name + "`"); err != nil {
			errs = append(errs, fmt.Errorf("dropping the tests' databases: %w", err))
		}
	}
	return errors.Join(errs...)
}

// dropPostgreSQLDatabases removes what the tests of a round made, and ends the sessions in it.
func dropPostgreSQLDatabases(s *PostgreSQLServer, names []string) error {
	db, err := s.DB("")
	if err != nil {
		return err
	}
	defer db.Close()
	var errs []error
	for _, name := range names {
		_, err := db.Exec("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = $1", name)
		if err == nil {
			_, err = db.Exec("DROP DATABASE IF EXISTS " + name)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("dropping the tests' databases: %w", err))
		}
	}
	return errors.Join(errs...)
}

// Current returns the server of the MySQL family that the present round of tests runs on: the throw-away
// MariaDB first, then that of each engine that was given to [Main]. In a round of PostgreSQL the test is
// skipped; [PostgreSQL] gives the server of that family.
func Current(tb TB) *Server {
	tb.Helper()
	if round.server != nil {
		return round.server
	}
	return MariaDB(tb)
}

// EngineName is the name of the present round's engine: that of its [Engine], or "mariadb" in the first
// round, whose PostgreSQL is the system's.
func EngineName() string {
	if elsewhere() {
		return round.engine.Name
	}
	return mariaDB
}

// Only skips a test in the rounds of other engines than those named, which are "mariadb" and names of an
// [Engine]; reason says what they lack.
func Only(tb TB, reason string, engines ...string) {
	tb.Helper()
	if !slices.Contains(engines, EngineName()) {
		tb.Skipf("not on %s: %s", EngineName(), reason)
	}
}

// Numbers is a query for the whole numbers from 1 to n, at most a million, that every engine takes.
func Numbers(n int) string {
	const digits = "(SELECT 0 AS d UNION ALL SELECT 1 UNION ALL SELECT 2 UNION ALL SELECT 3 UNION ALL SELECT 4 " +
		"UNION ALL SELECT 5 UNION ALL SELECT 6 UNION ALL SELECT 7 UNION ALL SELECT 8 UNION ALL SELECT 9)"
	number, tables := "1", make([]string, 0, 6)
	for i, unit := 0, 1; unit < n; i, unit = i+1, unit*10 {
		number += fmt.Sprintf(" + %d * p%d.d", unit, i)
		tables = append(tables, fmt.Sprintf("%s AS p%d", digits, i))
	}
	if len(tables) == 0 {
		return "SELECT 1 AS n"
	}
	return fmt.Sprintf("SELECT n FROM (SELECT %s AS n FROM %s) AS numbers WHERE n <= %d", number,
		strings.Join(tables, ", "), n)
}
