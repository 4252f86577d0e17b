package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// runLimit bounds one run of a package's tests, which takes seconds: a test that hangs is a difference too.
const runLimit = "5m"

// goTests are the tests of a Go module's packages.
type goTests struct {
	module   string
	version  string // empty: that of isotap's own go.mod
	packages []pkg
	// skipped are tests that need something else than the server, as a pattern; empty: none.
	skipped string

	dir    string // for the programs
	source string // the module's
}

// A pkg is a package of a module and what its tests find in their environment.
type pkg struct {
	title string // begins the names of its tests; empty: they have only their own
	dir   string // in the module
	env   []string
}

// prepare builds the tests as programs.
func (g *goTests) prepare(ctx context.Context, dir, source string) error {
	g.dir, g.source = dir, source
	if source == "" {
		if err := g.find(ctx); err != nil {
			return fmt.Errorf("find %s: %w", g.module, err)
		}
	}
	for _, p := range g.packages {
		c := exec.CommandContext(ctx, "go", "test", "-c", "-o", g.program(p), "./"+p.dir)
		c.Dir = g.source
		if out, err := c.CombinedOutput(); err != nil {
			return fmt.Errorf("compile the tests of %s, package %s: %w\n%s", g.module, p.dir, err, out)
		}
	}
	return nil
}

func (g *goTests) program(p pkg) string { return filepath.Join(g.dir, "suite-"+p.title) }

// find has the driver's module in Go's cache and learns where.
func (g *goTests) find(ctx context.Context) error {
	version := g.version
	if version == "" {
		out, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Version}}", g.module).Output()
		if err != nil {
			return err
		}
		version = strings.TrimSpace(string(out))
	}
	out, err := exec.CommandContext(ctx, "go", "mod", "download", "-json", g.module+"@"+version).Output()
	if err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	var module struct{ Dir string }
	if err := json.Unmarshal(out, &module); err != nil {
		return err
	}
	g.source = module.Dir
	return nil
}

// run runs each package's program that has a chosen test.
func (g *goTests) run(ctx context.Context, s server, chosen selection) (map[string]outcome, error) {
	patterns := patternsOf(chosen.tests)
	outcomes := make(map[string]outcome)
	for _, p := range g.packages {
		pattern, ok := chosen.pattern, true
		if chosen.tests != nil {
			pattern, ok = patterns[p.title]
		}
		if !ok {
			continue
		}
		found, err := g.tests(ctx, p, append(slices.Clone(s.env), p.env...), pattern)
		if err != nil {
			return nil, err
		}
		maps.Copy(outcomes, found)
	}
	return outcomes, nil
}

// patternsOf returns patterns for tests by their names, each with all its subtests, by their packages' titles.
func patternsOf(tests []string) map[string]string {
	names := make(map[string][]string)
	for _, name := range tests {
		title, test := splitName(name)
		if !slices.Contains(names[title], test) {
			names[title] = append(names[title], test)
		}
	}
	patterns := make(map[string]string)
	for title, tests := range names {
		patterns[title] = "^(" + strings.Join(slices.Sorted(slices.Values(tests)), "|") + ")$"
	}
	return patterns
}

// tests runs a package's program and returns what became of its tests.
func (g *goTests) tests(ctx context.Context, p pkg, env []string, pattern string) (map[string]outcome, error) {
	args := []string{"tool", "test2json", g.program(p), "-test.v=test2json", "-test.timeout=" + runLimit, "-test.run=" +
		pattern}
	if g.skipped != "" {
		args = append(args, "-test.skip="+g.skipped)
	}
	c := exec.CommandContext(ctx, "go", args...)
	c.Dir = filepath.Join(g.source, p.dir) // where its test data are
	c.Env = append(os.Environ(), env...)
	var said bytes.Buffer
	c.Stderr = &said
	out, err := c.Output()
	found, parseErr := parseTest2json(out)
	if parseErr != nil {
		return nil, errors.Join(parseErr, err)
	}
	if len(found) == 0 && err != nil {
		return nil, fmt.Errorf("run the driver's tests: %w: %s", err, said.Bytes())
	}
	outcomes := make(map[string]outcome)
	for test, o := range found {
		outcomes[p.name(test)] = o
	}
	return outcomes, nil // the error of a run in which tests failed says no more than they do
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

// splitName returns the package's title and the name of the top-level test.
func splitName(name string) (title, test string) {
	top, _, _ := strings.Cut(name, "/")
	title, test, ok := strings.Cut(top, ".")
	if !ok {
		return "", top
	}
	return title, test
}

// parseTest2json reads what test2json printed. A test that began and did not end, as in a panic or a hang,
// has failed.
func parseTest2json(out []byte) (map[string]outcome, error) {
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
			outcomes[e.Test] = outcome{result: failed}
		case "output":
			said[e.Test].WriteString(e.Output)
		case passed, failed, skipped:
			outcomes[e.Test] = outcome{result: e.Action, said: said[e.Test].String()}
		}
	}
	return outcomes, nil
}
