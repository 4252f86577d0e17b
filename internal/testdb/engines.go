package testdb

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// An Engine is a server of the MySQL family other than the throw-away MariaDB, which tests also run on
// where an environment variable says that there is one.
type Engine struct {
	Name     string
	Variable string // holds mysql://root@127.0.0.1:3306/
}

// The engines. "make test-engines" starts servers of them.
var (
	MySQL      = Engine{"mysql", "ISOTAP_TEST_MYSQL_URL"}
	MariaDB118 = Engine{"mariadb118", "ISOTAP_TEST_MARIADB118_URL"}
)

// mariaDB is the name of the throw-away server's engine.
const mariaDB = "mariadb"

// onlyVariable names the environment variable that leaves the round of one engine, by its name.
const onlyVariable = "ISOTAP_TEST_ONLY"

// round is the present round of the process's tests.
var round struct {
	engine Engine
	server *Server // nil: the throw-away MariaDB

	mu        sync.Mutex
	databases []string // made by the tests
}

// rounds runs all tests on the throw-away MariaDB and then once more on each engine that there is a server
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
			fmt.Fprintf(os.Stderr, "testdb: no tests on %s: %s is not set (see make test-engines)\n", e.Name, e.Variable)
			continue
		}
		s, err := connect(address)
		if err != nil {
			fmt.Fprintf(os.Stderr, "testdb: %s: %v\n", e.Variable, err)
			code = max(code, 1)
			continue
		}
		fmt.Printf("testdb: the same tests on %s, %s\n", e.Name, s.Version())
		round.engine, round.server, round.databases = e, s, nil
		code = max(code, m.Run())
		if err := dropDatabases(s, round.databases); err != nil {
			fmt.Fprintf(os.Stderr, "testdb: %s: %v\n", e.Variable, err)
		}
	}
	return code
}

// connect gives the server at a URL.
func connect(address string) (*Server, error) {
	u, err := url.Parse(address)
	if err != nil || u.Hostname() == "" || u.User.Username() == "" {
		return nil, errors.New("not a server's URL: write mysql://root@127.0.0.1:3306/")
	}
	port, err := strconv.Atoi(cmp.Or(u.Port(), "3306"))
	if err != nil {
		return nil, fmt.Errorf("port of the server's URL: %w", err)
	}
	s := &Server{host: u.Hostname(), port: port, user: u.User.Username()}
	s.password, _ = u.User.Password()
	db, err := s.DB("")
	if err != nil {
		return nil, err
	}
	defer db.Close()
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	if err := db.QueryRowContext(ctx, "SELECT VERSION()").Scan(&s.version); err != nil {
		return nil, fmt.Errorf("reach %s: %w", net.JoinHostPort(s.host, strconv.Itoa(port)), err)
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

// Current gives the server that the present round of tests runs on: the throw-away MariaDB first, then
// that of each engine that was given to [Main].
func Current(tb TB) *Server {
	tb.Helper()
	if round.server != nil {
		return round.server
	}
	return MariaDB(tb)
}

// EngineName is the name of the present round's engine: that of its [Engine], or "mariadb".
func EngineName() string {
	if round.server != nil {
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
	return fmt.Sprintf("SELECT n FROM (SELECT %s AS n FROM %s) AS numbers WHERE n <= %d", number, strings.Join(tables, ", "), n)
}
