// Command driversuite runs the test suite of Go's MySQL driver three times over (directly, through isotap
// that is off, and through isotap that records) and lists every test whose outcome differs. The driver
// looks at everything that a server says, so the suite witnesses that no client can tell.
//
//	go run ./internal/driversuite [-server mysql://root@127.0.0.1:3306/] [-run REGEXP]
//
// Without -server it starts a throw-away MariaDB. The user needs every privilege: the database gotest is
// dropped and made anew for each run, and local_infile is switched on. The program exits with 1 when a
// test's outcome differs.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"time"

	"github.com/isotap/isotap/catalog"
	"github.com/isotap/isotap/internal/testdb"
)

// settings are what the command line says.
type settings struct {
	server  string
	run     string
	verbose bool
	again   int
}

func main() {
	var s settings
	flag.StringVar(&s.server, "server", "", "the server's URL; empty: a throw-away MariaDB")
	flag.StringVar(&s.run, "run", "", "run only the tests that match, as go test -run does")
	flag.BoolVar(&s.verbose, "v", false, "print what differing tests say")
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

// run compares the paths, prints the comparison to out and gives the number of differences. What it is
// doing goes to progress.
func run(ctx context.Context, s settings, out, progress io.Writer) (differences int, err error) {
	target, stop, err := server(ctx, s.server)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, stop()) }()
	dir, err := os.MkdirTemp("", "isotap-driversuite-")
	if err != nil {
		return 0, fmt.Errorf("make a directory: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	su := suite{dir: dir, program: filepath.Join(dir, "suite"), target: target}
	fmt.Fprintln(progress, "compiling the driver's tests ...")
	if err := su.compile(ctx); err != nil {
		return 0, err
	}
	if err := su.offerTLS(ctx); err != nil {
		return 0, err
	}
	facts, err := su.facts(ctx)
	if err != nil {
		return 0, err
	}
	c := comparison{engine: facts.Engine, version: facts.Version}
	for _, p := range paths {
		fmt.Fprintf(progress, "%s ...\n", p)
		started := time.Now()
		outcomes, err := su.run(ctx, p, s.run)
		if err != nil {
			return 0, fmt.Errorf("%s: %w", p, err)
		}
		c.add(p, outcomes, time.Since(started))
	}
	for range s.again {
		if err := c.tryAgain(ctx, &su, progress); err != nil {
			return 0, err
		}
	}
	return c.print(out, s.verbose)
}

// server gives the server to test on and what ends it.
func server(ctx context.Context, url string) (catalog.Target, func() error, error) {
	stop := func() error { return nil }
	if url == "" {
		s, err := testdb.Start(ctx, testdb.Options{Args: []string{"--local-infile=1"}})
		if err != nil {
			return catalog.Target{}, nil, err
		}
		url, stop = s.URL(), s.Stop
	}
	target, err := catalog.ParseTarget(url)
	if err != nil {
		return catalog.Target{}, nil, errors.Join(fmt.Errorf("-server: %w", err), stop())
	}
	return target, stop, nil
}
