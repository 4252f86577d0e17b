// Command driversuite runs the test suites of drivers and of the frameworks on them three times over (directly,
// through isotap that is off, and through isotap that records) and lists every test whose outcome differs. The suites
// look at everything that a server says, so they witness that no client can tell.
//
//	go run ./internal/driversuite [-driver mysql] [-server mysql://root@127.0.0.1:3306/] [-run REGEXP]
//	go run ./internal/driversuite -driver pgx [-server postgres://postgres@127.0.0.1:5432/]
//	go run ./internal/driversuite -driver pq -over tls
//	go run ./internal/driversuite -driver django
//	go run ./internal/driversuite -driver psycopg -source ~/src/psycopg
//
// Without -server it starts a throw-away MariaDB or PostgreSQL. The user needs every privilege: the suite's
// database is dropped and made anew for each run, on the MySQL family local_infile is switched on, on PostgreSQL the
// roles of pgx's suite are made. Suites of Go come from their modules, Django's and PostgreSQL's from Debian's source
// packages; those that no package has are taken from a checkout. What else they need is installed by package name. The
// program exits with 1 when a test's outcome differs.
//
// drivers.go lists the suites, foreign.go those in other languages; suite.go runs one, of which gotests.go, python.go,
// node.go, java.go and regress.go know how; compare.go compares; mysql.go and postgresql.go have what the suites need
// of a server.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/signal"
	"slices"
	"strings"
	"time"
)

// settings are what the command line says.
type settings struct {
	driver  string
	server  string
	source  string
	run     string
	ways    string
	over    string
	verbose bool
	again   int
}

func main() {
	var s settings
	flag.StringVar(&s.driver, "driver", "", "whose suite: "+strings.Join(driverNames(), ", ")+
		" (default: mysql, or with a PostgreSQL as -server pgx)")
	flag.StringVar(&s.server, "server", "", "the server's URL; empty: a throw-away one of the driver's family")
	flag.StringVar(&s.source, "source", "",
		"a checkout of the suite's repository; empty: the suite is had from a package manager")
	flag.StringVar(&s.run, "run", "", "run only the tests that match: as go test -run, pytest -k, "+
		"Django's labels, a part of a file's name")
	flag.StringVar(&s.ways, "ways", "direct,off,items",
		"how the suite reaches the server: direct, off, items, auto, and for PostgreSQL columns")
	flag.StringVar(&s.over, "over", string(tcp),
		"how connections are made, on a throw-away PostgreSQL: tcp, tls or socket")
	flag.BoolVar(&s.verbose, "v", false, "print what differing and failing tests say")
	flag.IntVar(&s.again, "again", 2, "how often a test whose outcome differs is tried again, on all paths")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	differences, err := run(ctx, s, os.Stdout, os.Stderr)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "driversuite:", err)
	}
	if err != nil || differences > 0 {
		os.Exit(1)
	}
}

// run compares the ways, prints the comparison to out and returns the number of differences. What it is
// doing goes to progress.
func run(ctx context.Context, s settings, out, progress io.Writer) (differences int, err error) {
	ways, err := parseWays(s.ways)
	if err != nil {
		return 0, err
	}
	d, err := chooseDriver(s.driver, s.server)
	if err != nil {
		return 0, err
	}
	dir, err := os.MkdirTemp("", "isotap-driversuite-")
	if err != nil {
		return 0, fmt.Errorf("make a directory: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	// Before the server starts: what is installed may bring another version of its programs.
	fmt.Fprintln(progress, "preparing the suite ...")
	if err := d.program.prepare(ctx, dir, s.source); err != nil {
		return 0, fmt.Errorf("prepare the suite of %s: %w", d.name, err)
	}
	h, err := d.open(ctx, s.server, d.database, road(s.over))
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, h.close()) }()
	su := suite{dir: dir, driver: d, host: h}
	c := comparison{driver: d}
	if c.engine, c.version, err = h.facts(ctx); err != nil {
		return 0, err
	}
	for _, w := range ways {
		fmt.Fprintf(progress, "%s ...\n", w)
		started := time.Now()
		outcomes, err := su.run(ctx, w, selection{pattern: s.run})
		if err != nil {
			return 0, fmt.Errorf("%s: %w", w, err)
		}
		if err := usable(outcomes); w == direct && err != nil {
			return 0, err
		}
		c.add(w, outcomes, time.Since(started))
	}
	for range s.again {
		if err := c.tryAgain(ctx, &su, progress); err != nil {
			return 0, err
		}
	}
	return c.print(out, s.verbose)
}

// usable returns an error if so many tests fail directly that the suite says nothing: something that it needs is
// missing.
func usable(outcomes map[string]outcome) error {
	var fails []string
	for _, name := range slices.Sorted(maps.Keys(outcomes)) {
		if outcomes[name].result == failed {
			fails = append(fails, name)
		}
	}
	if 2*len(fails) <= len(outcomes) {
		return nil
	}
	return fmt.Errorf("%d of %d tests fail on the server itself; %s says:\n%s", len(fails), len(outcomes), fails[0],
		outcomes[fails[0]].said)
}

// A way is how the suite reaches the server.
type way string

// The ways that are compared.
const (
	direct way = "direct"
	off    way = "off"
	items  way = "items"
	// columns is items with rows known by isotap's columns; PostgreSQL only.
	columns way = "columns"
	// auto is as isotap run watches: mode auto, and the server's log where it can be read.
	auto way = "auto"
)

var allWays = []way{direct, off, items, columns, auto}

func parseWays(text string) ([]way, error) {
	var ways []way
	for name := range strings.SplitSeq(text, ",") {
		w := way(name)
		if !slices.Contains(allWays, w) {
			return nil, fmt.Errorf("-ways: there is no way %q: direct, off, items, columns or auto", name)
		}
		ways = append(ways, w)
	}
	return ways, nil
}
