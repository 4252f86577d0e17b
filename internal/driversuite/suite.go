package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/isotap/isotap/catalog"
	"github.com/isotap/isotap/internal/tap"
)

// The module whose tests are run, in the version of isotap's own go.mod.
const driver = "github.com/go-sql-driver/mysql"

// database is where the suite makes its tables.
const database = "gotest"

// skipped are tests that need the Internet instead of the server: an address there that must not answer.
const skipped = "TestConnectorReturnsTimeout"

// runLimit bounds one run of the suite, which takes seconds: a test that hangs is a difference too.
const runLimit = "3m"

// A way is how the suite reaches the server.
type way string

// The ways that are compared.
const (
	direct way = "direct"
	off    way = "off"
	items  way = "items"
)

var paths = []way{direct, off, items}

// An outcome is what became of one test.
type outcome struct {
	result string // pass, fail or skip
	said   string
}

// A suite is the driver's compiled tests and the server that they run on.
type suite struct {
	dir, program string
	target       catalog.Target
	// clients is the TLS that isotap offers: where the server does, so that the tests of it mean the same.
	clients tap.ClientTLS
}

// compile builds the driver's tests as a program.
func (s *suite) compile(ctx context.Context) error {
	if out, err := exec.CommandContext(ctx, "go", "test", "-c", "-o", s.program, driver).CombinedOutput(); err != nil {
		return fmt.Errorf("compile the tests of %s: %w\n%s", driver, err, out)
	}
	return nil
}

// offerTLS has isotap's legs be as those of a direct connection to a server that offers TLS: some of the
// tests use TLS, and ask the server for its cipher.
func (s *suite) offerTLS(ctx context.Context) error {
	encrypted := s.target
	encrypted.TLS.Mode = max(encrypted.TLS.Mode, catalog.TLSPrefer)
	conn, err := catalog.Connect(ctx, encrypted)
	if err != nil {
		return err
	}
	defer conn.Close()
	r, err := conn.Exec(ctx, "SHOW SESSION STATUS LIKE 'Ssl_cipher'")
	if err != nil {
		return fmt.Errorf("ask the server for its cipher: %w", err)
	}
	cipher, err := r.GetString(0, 1)
	if err != nil || cipher == "" {
		return nil
	}
	s.target = encrypted
	s.clients, err = tap.ParseClientTLS("", "auto", "", "")
	return err
}

// facts says which server it is.
func (s *suite) facts(ctx context.Context) (catalog.Server, error) {
	conn, err := catalog.Connect(ctx, s.target)
	if err != nil {
		return catalog.Server{}, err
	}
	defer conn.Close()
	return catalog.ServerFacts(ctx, conn)
}

// run runs the tests that match the pattern, all of them when it is empty, in a new database.
func (s *suite) run(ctx context.Context, w way, pattern string) (_ map[string]outcome, err error) {
	if err := s.renewDatabase(ctx); err != nil {
		return nil, err
	}
	network, address := s.target.Network, s.target.Address
	if w != direct {
		recording, err := os.MkdirTemp(s.dir, "recording-")
		if err != nil {
			return nil, fmt.Errorf("make a directory: %w", err)
		}
		t, err := tap.Start(ctx, tap.Options{Upstream: s.target, Listen: "127.0.0.1:0", ClientTLS: s.clients, Off: w == off,
			Recording: recording, Drain: time.Second, Version: "driversuite"})
		if err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, t.Stop()) }()
		network, address = t.Addr().Network(), t.Addr().String()
	}
	return s.tests(ctx, network, address, pattern)
}

// renewDatabase gives the suite an empty database, on a connection of its own.
func (s *suite) renewDatabase(ctx context.Context) error {
	conn, err := catalog.Connect(ctx, s.target)
	if err != nil {
		return err
	}
	defer conn.Close()
	for _, sql := range []string{"DROP DATABASE IF EXISTS " + database, "CREATE DATABASE " + database, "SET GLOBAL local_infile = 1"} {
		if _, err := conn.Exec(ctx, sql); err != nil {
			return fmt.Errorf("%s: %w", sql, err)
		}
	}
	return nil
}

// tests runs the program against an address.
func (s *suite) tests(ctx context.Context, network, address, pattern string) (map[string]outcome, error) {
	work := filepath.Join(s.dir, "work")
	if err := os.MkdirAll(work, 0o755); err != nil {
		return nil, fmt.Errorf("make a directory: %w", err)
	}
	c := exec.CommandContext(ctx, "go", "tool", "test2json", s.program, "-test.v=test2json", "-test.timeout="+runLimit,
		"-test.run="+pattern, "-test.skip="+skipped)
	c.Dir = work
	c.Env = append(os.Environ(), "MYSQL_TEST_USER="+s.target.User, "MYSQL_TEST_PASS="+s.target.Password, "MYSQL_TEST_PROT="+network,
		"MYSQL_TEST_ADDR="+address, "MYSQL_TEST_DBNAME="+database, "MYSQL_TEST_CONCURRENT=1")
	var said bytes.Buffer
	c.Stderr = &said
	out, err := c.Output()
	outcomes, parseErr := parseOutcomes(out)
	switch {
	case parseErr != nil:
		return nil, errors.Join(parseErr, err)
	case len(outcomes) == 0:
		return nil, fmt.Errorf("run the driver's tests: %w: %s", errors.Join(errors.New("no test ran"), err), said.Bytes())
	}
	return outcomes, nil // the error of a run in which tests failed says no more than they do
}

// parseOutcomes reads what test2json printed. A test that began and did not end, as in a panic or a hang,
// has failed.
func parseOutcomes(out []byte) (map[string]outcome, error) {
	outcomes := make(map[string]outcome)
	said := make(map[string]*strings.Builder)
	d := json.NewDecoder(bytes.NewReader(out))
	for d.More() {
		var e struct{ Action, Test, Output string }
		if err := d.Decode(&e); err != nil {
			return nil, fmt.Errorf("parse what the driver's tests said: %w", err)
		}
		if e.Test == "" {
			continue
		}
		switch e.Action {
		case "run":
			said[e.Test] = new(strings.Builder)
			outcomes[e.Test] = outcome{result: "fail"}
		case "output":
			said[e.Test].WriteString(e.Output)
		case "pass", "fail", "skip":
			outcomes[e.Test] = outcome{result: e.Action, said: said[e.Test].String()}
		}
	}
	return outcomes, nil
}
