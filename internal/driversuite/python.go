package main

import (
	"bytes"
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// python is the distribution's, which its packages are for.
const python = "/usr/bin/python3"

// testLimit bounds one test of pytest's, in seconds: one that hangs has failed.
const testLimit = "150"

// pythonTests are tests that pytest runs, of a checkout that matches the distribution's package of the driver.
type pythonTests struct {
	repository, tag string
	packages        []string // Debian's
	options         func(s server) []string
	paths           []string // of files and directories of tests
	// configure writes a file that the tests read, if they do.
	configure func(source string, s server) error

	dir, source string
}

func (p *pythonTests) prepare(ctx context.Context, dir, source string) error {
	if source == "" {
		return needCheckout(p.repository, p.tag)
	}
	p.dir, p.source = dir, filepath.Join(dir, "source")
	if err := copyTree(source, p.source); err != nil {
		return err
	}
	return aptInstall(ctx, append([]string{"python3-pytest", "python3-pytest-timeout"}, p.packages...)...)
}

// run runs the files that the chosen tests are in.
func (p *pythonTests) run(ctx context.Context, s server, chosen selection) (map[string]outcome, error) {
	if p.configure != nil {
		if err := p.configure(p.source, s); err != nil {
			return nil, err
		}
	}
	report := filepath.Join(p.dir, "junit.xml")
	if err := os.RemoveAll(report); err != nil {
		return nil, err
	}
	args := []string{"-m", "pytest", "-q", "--timeout=" + testLimit, "--junitxml=" + report, "-o",
		"junit_family=xunit1",
		"-o", "cache_dir=" + filepath.Join(p.dir, "pytest")}
	args = append(args, p.options(s)...)
	if chosen.pattern != "" {
		args = append(args, "-k", chosen.pattern)
	}
	paths := p.paths
	if chosen.tests != nil {
		paths = filesOf(chosen.tests)
	}
	args = append(args, paths...)
	out, err := runProcess(ctx, p.source, s.env, python, args...)
	text, readErr := os.ReadFile(report)
	if readErr != nil { // it did not come to its end
		return nil, fmt.Errorf("run pytest: %w\n%s", cmp.Or(err, readErr), out)
	}
	return parseJUnit(text)
}

// filesOf returns the files that tests are in, each once.
func filesOf(tests []string) []string {
	var files []string
	for _, t := range tests {
		file, _, _ := strings.Cut(t, "::")
		files = append(files, file)
	}
	slices.Sort(files)
	return slices.Compact(files)
}

// runProcess runs a suite of another language, of which failing tests are no error, and returns what it printed.
func runProcess(ctx context.Context, dir string, env []string, name string, args ...string) ([]byte, error) {
	limit, err := time.ParseDuration(processLimit)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	c := exec.CommandContext(ctx, name, args...)
	c.Dir, c.Env, c.WaitDelay = dir, append(os.Environ(), env...), 10*time.Second
	return c.CombinedOutput()
}

// parseJUnit reads a report in JUnit's form: of pytest, whose tests are named by their files, or of JUnit's console,
// whose tests are named by their classes.
func parseJUnit(text []byte) (map[string]outcome, error) {
	type said struct {
		Message string `xml:"message,attr"`
		Text    string `xml:",chardata"`
	}
	type testCase struct {
		File    string `xml:"file,attr"`
		Class   string `xml:"classname,attr"`
		Name    string `xml:"name,attr"`
		Failure *said  `xml:"failure"`
		Error   *said  `xml:"error"`
		Skipped *said  `xml:"skipped"`
	}
	var report struct {
		InSuites []testCase `xml:"testsuite>testcase"`
		Cases    []testCase `xml:"testcase"`
	}
	d := xml.NewDecoder(bytes.NewReader(text))
	d.Strict = false
	if err := d.Decode(&report); err != nil {
		return nil, fmt.Errorf("parse JUnit's report: %w", err)
	}
	outcomes := make(map[string]outcome)
	for _, c := range append(report.InSuites, report.Cases...) {
		name := testName(c.File, c.Class, c.Name)
		o := outcome{result: passed}
		switch {
		case c.Failure != nil:
			o = outcome{failed, c.Failure.Message + "\n" + c.Failure.Text}
		case c.Error != nil:
			o = outcome{failed, c.Error.Message + "\n" + c.Error.Text}
		case c.Skipped != nil:
			o = outcome{skipped, c.Skipped.Message}
		}
		if outcomes[name].result != failed { // a test that fails when it is taken down has two entries
			outcomes[name] = o
		}
	}
	return outcomes, nil
}

// testName puts a test's name together: its file if that is known, its class, and its own.
func testName(file, class, name string) string {
	if file == "" {
		return class + "::" + name
	}
	module := strings.ReplaceAll(strings.TrimSuffix(file, ".py"), "/", ".")
	if class := strings.TrimPrefix(strings.TrimPrefix(class, module), "."); class != "" {
		return file + "::" + class + "::" + name
	}
	return file + "::" + name
}

// djangoTests are those of Django's own that go to the database, by its applications, each a directory of tests.
type djangoTests struct {
	packages []string
	apps     []string

	dir, source string
}

// djangoSettings is a settings module, which also writes what became of each test.
//
//go:embed testdata/isotap_settings.py
var djangoSettings []byte

func (d *djangoTests) prepare(ctx context.Context, dir, source string) (err error) {
	d.dir = dir
	if source == "" {
		if source, err = debianSource(ctx, dir, "python-django"); err != nil {
			return err
		}
	}
	d.source = filepath.Join(dir, "source")
	if err := copyTree(source, d.source); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(d.source, "tests", "isotap_settings.py"), djangoSettings, 0o644); err != nil {
		return fmt.Errorf("write the settings: %w", err)
	}
	return aptInstall(ctx, d.packages...)
}

// run runs the applications that the chosen tests are of. A pattern is a list of applications or tests, with spaces.
func (d *djangoTests) run(ctx context.Context, s server, chosen selection) (map[string]outcome, error) {
	labels := d.apps
	if chosen.pattern != "" {
		labels = strings.Fields(chosen.pattern)
	}
	if chosen.tests != nil {
		labels = nil
		for _, t := range chosen.tests {
			app, _, _ := strings.Cut(t, ".")
			labels = append(labels, app)
		}
		slices.Sort(labels)
		labels = slices.Compact(labels)
	}
	results := filepath.Join(d.dir, "django.json")
	if err := os.RemoveAll(results); err != nil {
		return nil, err
	}
	host, port, err := net.SplitHostPort(s.at.Address)
	if err != nil {
		return nil, err
	}
	env := append(slices.Clone(s.env), "PYTHONPATH="+d.source, "SUITE_RESULTS="+results,
		"SUITE_FAMILY="+s.at.Family.Title(), "SUITE_HOST="+host, "SUITE_PORT="+port,
		"SUITE_USER="+s.at.User, "SUITE_PASSWORD="+s.at.Password)
	args := append([]string{"runtests.py", "--settings=isotap_settings", "--parallel=1", "--noinput"}, labels...)
	out, err := runProcess(ctx, filepath.Join(d.source, "tests"), env, python, args...)
	text, readErr := os.ReadFile(results)
	if readErr != nil {
		return nil, fmt.Errorf("run Django's tests: %w\n%s", cmp.Or(err, readErr), out)
	}
	var found map[string]struct{ Result, Said string }
	if err := json.Unmarshal(text, &found); err != nil {
		return nil, fmt.Errorf("parse what became of Django's tests: %w", err)
	}
	outcomes := make(map[string]outcome)
	for name, o := range found {
		outcomes[name] = outcome{o.Result, o.Said}
	}
	return outcomes, nil
}
