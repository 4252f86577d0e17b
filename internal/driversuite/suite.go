package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/isotap/isotap/internal/dsn"
	"github.com/isotap/isotap/internal/proxyserver"
	"github.com/isotap/isotap/serverlog"
)

// The results of a test.
const (
	passed  = "pass"
	failed  = "fail"
	skipped = "skip"
	absent  = "absent" // it did not run
)

// An outcome is what became of one test.
type outcome struct {
	result string // passed, failed or skipped
	said   string
}

// A selection says which tests run. The zero selection is all of them.
type selection struct {
	pattern string   // in the suite's own language; empty: all
	tests   []string // their names, as the keys of outcomes; a program may run others with them. nil: by the pattern
}

// A server is where a suite's clients connect to: the server itself, or isotap in front of it.
type server struct {
	at  dsn.Target
	env []string // tells Go's suites, and libpq, where that is
}

// A program is a driver's test suite as it is had and run.
type program interface {
	// prepare gets and builds the suite. What it makes is below dir. source is a checkout of the driver's repository;
	// empty: the suite is had from a package manager, or that is an error.
	prepare(ctx context.Context, dir, source string) error
	// run runs tests on an empty database and returns what became of each, by its name.
	run(ctx context.Context, s server, chosen selection) (map[string]outcome, error)
}

// A suite is a driver's tests and the server that they run on.
type suite struct {
	dir    string // for programs and recordings
	driver *driver
	host   host
}

// run runs the chosen tests in a new database.
func (s *suite) run(ctx context.Context, w way, chosen selection) (_ map[string]outcome, err error) {
	if err := s.host.renew(ctx, s.driver.setUp); err != nil {
		return nil, err
	}
	at := s.host.target()
	if w != direct {
		dir, err := os.MkdirTemp(s.dir, "isotap-")
		if err != nil {
			return nil, fmt.Errorf("make a directory: %w", err)
		}
		log := serverlog.Off
		if w == auto {
			log = serverlog.Auto
		}
		srv, err := proxyserver.Start(ctx, proxyserver.Options{
			Upstream: at, Listen: s.host.listen(dir), ClientTLS: s.host.clients(), Off: w == off, Columns: w == columns,
			Auto: w == auto, ServerLog: log,
			Recording: filepath.Join(dir, "recording"), Drain: time.Second, Version: "driversuite",
		})
		if err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, srv.Stop()) }()
		at.Network, at.Address = srv.Addr().Network(), srv.Addr().String()
	}
	at.Database = s.driver.database
	outcomes, err := s.driver.program.run(ctx, server{at, s.host.environment(at.Network, at.Address)}, chosen)
	if err == nil && len(outcomes) == 0 {
		err = errors.New("no test ran")
	}
	return outcomes, err
}
