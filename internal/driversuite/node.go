package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// fileLimit bounds one file of tests: one that hangs has failed.
const fileLimit = 90 * time.Second

// mochaLimit bounds one of mocha's tests or hooks, in milliseconds, where it says nothing itself: on a busy machine
// suites that make 10,000 rows need more than mocha's own two seconds.
const mochaLimit = "60000"

// nodeTests are a Node driver's tests: files that are programs of their own, or mocha's.
type nodeTests struct {
	repository, tag string
	dir             string   // the package's, in the checkout
	packages        []string // npm's, which the tests need beside those of package.json
	development     bool     // install what package.json names for development, too
	tests           string   // the directory of the tests
	suffix          string   // of a file of tests
	mocha           bool     // the files are mocha's
	environment     func(s server, host, port string) []string
	before          []string // a program of the suite's that comes first; nil: none

	source string
}

func (n *nodeTests) prepare(ctx context.Context, dir, source string) error {
	if source == "" {
		return needCheckout(n.repository, n.tag)
	}
	n.source = filepath.Join(dir, "source")
	if err := copyTree(filepath.Join(source, n.dir), n.source); err != nil {
		return err
	}
	// --omit=dev would leave out those of the packages that are for development, too.
	if !n.development {
		if err := n.npm(ctx, "pkg", "delete", "devDependencies"); err != nil {
			return err
		}
	}
	return n.npm(ctx, append([]string{"install", "--no-save", "--no-audit", "--no-fund", "--ignore-scripts"},
		n.packages...)...)
}

func (n *nodeTests) npm(ctx context.Context, args ...string) error {
	c := exec.CommandContext(ctx, "npm", args...)
	c.Dir = n.source
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("npm %s: %w\n%s", args[0], err, out)
	}
	return nil
}

// run runs the files that the chosen tests are in. A pattern is a part of a file's path.
func (n *nodeTests) run(ctx context.Context, s server, chosen selection) (map[string]outcome, error) {
	host, port, err := net.SplitHostPort(s.at.Address)
	if err != nil {
		return nil, err
	}
	env := append(slices.Clone(s.env), n.environment(s, host, port)...)
	if n.before != nil {
		if out, err := runProcess(ctx, n.source, env, "node", n.before...); err != nil {
			return nil, fmt.Errorf("%s: %w\n%s", strings.Join(n.before, " "), err, out)
		}
	}
	files, err := n.files(chosen)
	if err != nil {
		return nil, err
	}
	outcomes := make(map[string]outcome)
	for _, file := range files {
		if n.mocha {
			err = n.mochaFile(ctx, env, file, outcomes)
		} else {
			outcomes[file], err = n.file(ctx, env, file)
		}
		if err != nil {
			return nil, err
		}
	}
	return outcomes, nil
}

// files returns the files of the chosen tests, sorted.
func (n *nodeTests) files(chosen selection) (files []string, err error) {
	err = fs.WalkDir(os.DirFS(n.source), n.tests, func(path string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() && strings.HasSuffix(path, n.suffix) && strings.Contains(path, chosen.pattern) {
			files = append(files, path)
		}
		return err
	})
	if chosen.tests != nil {
		again := filesOf(chosen.tests)
		files = slices.DeleteFunc(files, func(f string) bool { return !slices.Contains(again, f) })
	}
	return files, err
}

// file runs a file that is a program.
func (n *nodeTests) file(ctx context.Context, env []string, file string) (outcome, error) {
	limited, cancel := context.WithTimeout(ctx, fileLimit)
	defer cancel()
	out, err := runProcess(limited, n.source, env, "node", file)
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return outcome{}, context.Cause(ctx)
	case err == nil:
		return outcome{result: passed}, nil
	case errors.As(err, &exit) || limited.Err() != nil:
		return outcome{failed, fmt.Sprintf("%v\n%s", err, out)}, nil
	}
	return outcome{}, fmt.Errorf("run %s: %w", file, err)
}

// mochaFile runs a file of mocha's, and adds what became of its tests.
func (n *nodeTests) mochaFile(ctx context.Context, env []string, file string, outcomes map[string]outcome) error {
	report := filepath.Join(filepath.Dir(n.source), "mocha.json")
	if err := os.RemoveAll(report); err != nil {
		return err
	}
	limited, cancel := context.WithTimeout(ctx, 4*fileLimit)
	defer cancel()
	out, err := runProcess(limited, n.source, env, "node", "node_modules/mocha/bin/mocha.js", "--no-parallel", "--exit",
		"--timeout", mochaLimit, "--reporter", "json", "--reporter-option", "output="+report, file)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	text, readErr := os.ReadFile(report)
	if readErr != nil { // a file that does not come to its end
		outcomes[file] = outcome{failed, fmt.Sprintf("%v\n%s", cmp.Or(err, readErr), out)}
		return nil
	}
	return parseMocha(text, file, outcomes)
}

// parseMocha reads mocha's report on a file.
func parseMocha(text []byte, file string, outcomes map[string]outcome) error {
	type test struct {
		FullTitle string
		Err       struct{ Message string }
	}
	var report struct{ Passes, Failures, Pending []test }
	if err := json.Unmarshal(text, &report); err != nil {
		return fmt.Errorf("parse mocha's report on %s: %w", file, err)
	}
	for result, tests := range map[string][]test{passed: report.Passes, failed: report.Failures,
		skipped: report.Pending} {
		for _, t := range tests {
			outcomes[file+"::"+t.FullTitle] = outcome{result, t.Err.Message}
		}
	}
	return nil
}
