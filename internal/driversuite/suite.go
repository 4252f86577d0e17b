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
	"regexp"
	"strings"
	"time"

	"github.com/isotap/isotap/internal/tap"
)

// runLimit bounds one run of a package's tests, which takes seconds: a test that hangs is a difference too.
const runLimit = "5m"

// An outcome is what became of one test.
type outcome struct {
	result string // pass, fail or skip
	said   string
}

// A suite is a driver's compiled tests and the server that they run on.
type suite struct {
	dir    string // for programs and recordings
	source string // the module's
	driver *driver
	host   host
}

// A selection says which tests of which packages run: a pattern by the package's title. Packages that are
// not in it do not run.
type selection map[string]string

// everything selects the tests of all packages that match the pattern.
func (s *suite) everything(pattern string) selection {
	chosen := make(selection)
	for _, p := range s.driver.packages {
		chosen[p.title] = pattern
	}
	return chosen
}

// compile builds the driver's tests as programs.
func (s *suite) compile(ctx context.Context) error {
	if err := s.find(ctx); err != nil {
		return fmt.Errorf("find %s: %w", s.driver.module, err)
	}
	for _, p := range s.driver.packages {
		c := exec.CommandContext(ctx, "go", "test", "-c", "-o", s.program(p), "./"+p.dir)
		c.Dir = s.source
		if out, err := c.CombinedOutput(); err != nil {
			return fmt.Errorf("compile the tests of %s, package %s: %w\n%s", s.driver.module, p.dir, err, out)
		}
	}
	return nil
}

func (s *suite) program(p pkg) string { return filepath.Join(s.dir, "suite-"+p.title) }

// find has the driver's module in Go's cache and learns where.
func (s *suite) find(ctx context.Context) error {
	version := s.driver.version
	if version == "" {
		out, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Version}}", s.driver.module).Output()
		if err != nil {
			return err
		}
		version = strings.TrimSpace(string(out))
	}
	out, err := exec.CommandContext(ctx, "go", "mod", "download", "-json", s.driver.module+"@"+version).Output()
	if err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	var module struct{ Dir string }
	if err := json.Unmarshal(out, &module); err != nil {
		return err
	}
	s.source = module.Dir
	return nil
}

// run runs the chosen tests in a new database.
func (s *suite) run(ctx context.Context, w way, chosen selection) (_ map[string]outcome, err error) {
	if err := s.host.renew(ctx); err != nil {
		return nil, err
	}
	target := s.host.target()
	network, address := target.Network, target.Address
	if w != direct {
		dir, err := os.MkdirTemp(s.dir, "isotap-")
		if err != nil {
			return nil, fmt.Errorf("make a directory: %w", err)
		}
		t, err := tap.Start(ctx, tap.Options{Upstream: target, Listen: s.host.listen(dir), ClientTLS: s.host.clients(), Off: w == off, Columns: w == columns,
			Recording: filepath.Join(dir, "recording"), Drain: time.Second, Version: "driversuite"})
		if err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, t.Stop()) }()
		network, address = t.Addr().Network(), t.Addr().String()
	}
	outcomes := make(map[string]outcome)
	for _, p := range s.driver.packages {
		pattern, ok := chosen[p.title]
		if !ok {
			continue
		}
		if err := s.tests(ctx, p, append(s.host.environment(network, address), p.env...), pattern, outcomes); err != nil {
			return nil, err
		}
	}
	if len(outcomes) == 0 {
		return nil, errors.New("no test ran")
	}
	return outcomes, nil
}

// tests runs a package's program and adds what became of its tests.
func (s *suite) tests(ctx context.Context, p pkg, env []string, pattern string, outcomes map[string]outcome) error {
	args := []string{"tool", "test2json", s.program(p), "-test.v=test2json", "-test.timeout=" + runLimit, "-test.run=" + pattern}
	if s.driver.skipped != "" {
		args = append(args, "-test.skip="+s.driver.skipped)
	}
	c := exec.CommandContext(ctx, "go", args...)
	c.Dir = filepath.Join(s.source, p.dir) // where its test data are
	c.Env = append(os.Environ(), env...)
	var said bytes.Buffer
	c.Stderr = &said
	out, err := c.Output()
	found, parseErr := parseOutcomes(out)
	if parseErr != nil {
		return errors.Join(parseErr, err)
	}
	if len(found) == 0 && err != nil {
		return fmt.Errorf("run the driver's tests: %w: %s", err, said.Bytes())
	}
	for test, o := range found {
		outcomes[p.name(test)] = o
	}
	return nil // the error of a run in which tests failed says no more than they do
}

// temporary is the random part in the name of a test's directory, which pgconn has in names of subtests.
var temporary = regexp.MustCompile(`(/Test\w*?)\d+(/\d{3}/)`)

// name is a test's name among those of all packages, alike in all runs.
func (p *pkg) name(test string) string {
	test = temporary.ReplaceAllString(test, "$1$2")
	if p.title == "" {
		return test
	}
	return p.title + "." + test
}

// splitName gives the package's title and the name of the top-level test.
func splitName(name string) (title, test string) {
	top, _, _ := strings.Cut(name, "/")
	title, test, ok := strings.Cut(top, ".")
	if !ok {
		return "", top
	}
	return title, test
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
