package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// regressTests are PostgreSQL's own regression tests, by its pg_regress: what psql prints is compared with files. They
// are those of the distribution's version, and want a server of it, on this machine, that may write into their
// directory.
type regressTests struct {
	major string // of PostgreSQL

	bin    string // of PostgreSQL's programs
	dlpath string // of modules that the tests load into the server
	source string // of the tests
}

func (r *regressTests) prepare(ctx context.Context, dir, source string) (err error) {
	if source == "" {
		if source, err = debianSource(ctx, dir, "postgresql-"+r.major); err != nil {
			return err
		}
	}
	if err := aptInstall(ctx, "postgresql-"+r.major, "postgresql-server-dev-"+r.major); err != nil {
		return err
	}
	lib := filepath.Join("/usr/lib/postgresql", r.major, "lib")
	r.bin, r.dlpath, r.source = filepath.Join(filepath.Dir(lib), "bin"), filepath.Join(dir, "modules"),
		filepath.Join(dir, "regress")
	if err := copyTree(filepath.Join(source, "src/test/regress"), r.source); err != nil {
		return err
	}
	if err := os.Mkdir(r.dlpath, 0o755); err != nil {
		return err
	}
	for _, module := range []string{"autoinc.so", "refint.so"} {
		if err := copyFile(filepath.Join(lib, module), filepath.Join(r.dlpath, module)); err != nil {
			return err
		}
	}
	c := exec.CommandContext(ctx, "gcc", "-fPIC", "-shared", "-w", "-I/usr/include/postgresql/"+r.major+"/server",
		"-o", filepath.Join(r.dlpath, "regress.so"), filepath.Join(r.source, "regress.c"))
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("compile regress.c: %w\n%s", err, out)
	}
	return openTo(dir, r.source)
}

func copyFile(from, to string) error {
	text, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, text, 0o755)
}

// openTo lets the server's user into dir, and write below tree.
func openTo(dir, tree string) error {
	if err := os.Chmod(dir, 0o711); err != nil {
		return err
	}
	return filepath.WalkDir(tree, func(path string, e os.DirEntry, err error) error {
		if err == nil && e.IsDir() {
			err = os.Chmod(path, 0o777)
		}
		return err
	})
}

// output returns a new directory with a copy of the tests, beside which the tests and the server write.
func (r *regressTests) output() (string, error) {
	dir, err := os.MkdirTemp(filepath.Dir(r.source), "output-")
	if err != nil {
		return "", err
	}
	if err := copyTree(r.source, filepath.Join(dir, "regress")); err != nil {
		return "", err
	}
	// COPY writes here; pg_regress would make it for itself alone.
	if err := os.Mkdir(filepath.Join(dir, "regress/results"), 0o777); err != nil {
		return "", err
	}
	return dir, openTo(dir, dir)
}

// run runs the whole schedule, or the tests that a pattern (their names, with spaces) or a selection names, behind
// those that make what all of them need.
func (r *regressTests) run(ctx context.Context, s server, chosen selection) (map[string]outcome, error) {
	host, port, err := net.SplitHostPort(s.at.Address)
	if err != nil {
		return nil, err
	}
	output, err := r.output()
	if err != nil {
		return nil, err
	}
	args := []string{"--host=" + host, "--port=" + port, "--user=" + s.at.User, "--bindir=" + r.bin, "--dlpath=" +
		r.dlpath,
		"--inputdir=" + filepath.Join(output, "regress"), "--outputdir=" + filepath.Join(output, "regress"),
		"--max-connections=8"}
	names := slices.Concat(strings.Fields(chosen.pattern), chosen.tests)
	if len(names) == 0 {
		args = append(args, "--schedule="+filepath.Join(output, "regress/parallel_schedule"))
	} else {
		args = append(append(args, "test_setup", "create_index"), names...)
	}
	program := filepath.Join("/usr/lib/postgresql", r.major, "lib/pgxs/src/test/regress/pg_regress")
	out, err := runProcess(ctx, output, append(s.env, "PGUSER="+s.at.User), program, args...)
	outcomes := parseRegress(string(out))
	if len(outcomes) == 0 {
		return nil, fmt.Errorf("run pg_regress: %w\n%s", err, out)
	}
	diffs, err := os.ReadFile(filepath.Join(output, "regress/regression.diffs"))
	if err != nil && !os.IsNotExist(err) {
		return nil, err
	}
	explainRegress(outcomes, string(diffs))
	return outcomes, nil
}

// regressLine is what pg_regress prints of a test: "     join     ... FAILED     11261 ms".
var regressLine = regexp.MustCompile(`(?m)^(?:test)?\s+([\w.]+)\s+\.\.\. (ok|FAILED|failed \(ignored\))`)

func parseRegress(out string) map[string]outcome {
	outcomes := make(map[string]outcome)
	for _, m := range regressLine.FindAllStringSubmatch(out, -1) {
		result := failed
		if m[2] == "ok" {
			result = passed
		}
		outcomes[m[1]] = outcome{result: result}
	}
	return outcomes
}

// regressDiff begins a test's part of the differences: "diff -U3 …/expected/join.out …/results/join.out".
var regressDiff = regexp.MustCompile(`(?m)^diff .*/([\w.]+)\.out$`)

// explainRegress puts each failing test's differences into its outcome.
func explainRegress(outcomes map[string]outcome, diffs string) {
	places := regressDiff.FindAllStringSubmatchIndex(diffs, -1)
	for i, at := range places {
		end := len(diffs)
		if i+1 < len(places) {
			end = places[i+1][0]
		}
		if o, ok := outcomes[diffs[at[2]:at[3]]]; ok {
			o.said = diffs[at[0]:end]
			outcomes[diffs[at[2]:at[3]]] = o
		}
	}
}
