package main

import (
	"cmp"
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// javaTests are a JDBC driver's tests, which javac compiles against Debian's libraries and JUnit's console runs.
type javaTests struct {
	repository, tag string
	packages        []string // Debian's
	jars            []string // below /usr/share/java: what the sources are compiled against and run with
	sources         []string // directories of the checkout; the tests are among them
	resources       []string // directories of the checkout with what the program reads by the class path
	// lacking are words by which a source is left out: what it needs has no package.
	lacking []string
	tokens  *strings.Replacer // what the driver's own build writes into its sources; nil: nothing
	// after are programs that the driver's own build runs on the compiled classes: they get the directory, and
	// whether to be verbose.
	after      []string
	tests      []string // the packages of tests, each with those below it
	properties func(s server) []string

	source, classes string
}

// What is run in one Java machine: classes of one package, and at most so many, in at most this time.
const (
	classesAtOnce = 20
	classesLimit  = 15 * time.Minute
)

// javaStubs are the declarations that the sources need of libraries that no package has.
//
//go:embed testdata/java
var javaStubs embed.FS

func (j *javaTests) prepare(ctx context.Context, dir, source string) error {
	if source == "" {
		return needCheckout(j.repository, j.tag)
	}
	j.source, j.classes = filepath.Join(dir, "source"), filepath.Join(dir, "classes")
	if err := copyTree(source, j.source); err != nil {
		return err
	}
	stubs, err := fs.Sub(javaStubs, "testdata/java")
	if err != nil {
		return err
	}
	if err := os.CopyFS(filepath.Join(j.source, "isotap-stubs"), stubs); err != nil {
		return fmt.Errorf("write stubs: %w", err)
	}
	if err := aptInstall(ctx, append([]string{"default-jdk-headless", "junit5"}, j.packages...)...); err != nil {
		return err
	}
	if err := j.compile(ctx); err != nil {
		return err
	}
	for _, program := range j.after {
		if out, err := j.java(ctx, program, j.classes, "false"); err != nil {
			return fmt.Errorf("%s: %w\n%s", program, err, out)
		}
	}
	return nil
}

// compile compiles the sources, with their tokens replaced, but for those that need what is lacking.
func (j *javaTests) compile(ctx context.Context) error {
	var files []string
	for _, dir := range append([]string{"isotap-stubs"}, j.sources...) {
		found, err := j.sourcesBelow(filepath.Join(j.source, dir))
		if err != nil {
			return err
		}
		files = append(files, found...)
	}
	list := filepath.Join(filepath.Dir(j.classes), "sources.txt")
	if err := os.WriteFile(list, []byte(strings.Join(files, "\n")), 0o644); err != nil {
		return err
	}
	c := exec.CommandContext(ctx, "javac", "-nowarn", "-proc:none", "-encoding", "UTF-8", "-d", j.classes,
		"-cp", j.classPath(), "@"+list)
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("compile the tests: %w\n%s", err, out)
	}
	return nil
}

// sourcesBelow returns the Java files below dir that can be compiled.
func (j *javaTests) sourcesBelow(dir string) (files []string, err error) {
	err = filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() || !strings.HasSuffix(path, ".java") {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, word := range j.lacking {
			if strings.Contains(string(text), word) {
				return nil
			}
		}
		files = append(files, path)
		if j.tokens == nil {
			return nil
		}
		return os.WriteFile(path, []byte(j.tokens.Replace(string(text))), 0o644)
	})
	return files, err
}

// classPath is what the sources are compiled against and run with.
func (j *javaTests) classPath() string {
	path := []string{j.classes}
	for _, dir := range j.resources {
		path = append(path, filepath.Join(j.source, dir))
	}
	for _, jar := range j.jars {
		path = append(path, filepath.Join("/usr/share/java", jar+".jar"))
	}
	return strings.Join(path, ":")
}

// java runs a class.
func (j *javaTests) java(ctx context.Context, args ...string) ([]byte, error) {
	return runProcess(ctx, j.source, nil, "java", append([]string{"-cp", j.classPath()}, args...)...)
}

// run runs the classes that the chosen tests are in, several of a package in one Java machine. A pattern is a part of a
// class's name.
func (j *javaTests) run(ctx context.Context, s server, chosen selection) (map[string]outcome, error) {
	classes, err := j.testClasses(chosen)
	if err != nil {
		return nil, err
	}
	outcomes := make(map[string]outcome)
	for len(classes) > 0 {
		n := 1
		for n < min(len(classes), classesAtOnce) && packageOf(classes[n]) == packageOf(classes[0]) {
			n++
		}
		if err := j.runClasses(ctx, s, classes[:n], outcomes); err != nil {
			return nil, err
		}
		classes = classes[n:]
	}
	return outcomes, nil
}

// packageOf returns the package of a class.
func packageOf(class string) string { return class[:max(0, strings.LastIndexByte(class, '.'))] }

// testClasses returns the classes of the chosen tests, package by package.
func (j *javaTests) testClasses(chosen selection) (classes []string, err error) {
	err = fs.WalkDir(os.DirFS(j.classes), ".", func(path string, e fs.DirEntry, err error) error {
		class := strings.ReplaceAll(strings.TrimSuffix(path, ".class"), "/", ".")
		if err == nil && !e.IsDir() && strings.HasSuffix(path, "Test.class") && !strings.Contains(class, "$") &&
			j.tested(class) && strings.Contains(class, chosen.pattern) {
			classes = append(classes, class)
		}
		return err
	})
	if chosen.tests != nil {
		again := filesOf(chosen.tests)
		classes = slices.DeleteFunc(classes, func(c string) bool { return !slices.Contains(again, c) })
	}
	slices.SortFunc(classes, func(a, b string) int {
		return cmp.Or(strings.Compare(packageOf(a), packageOf(b)), strings.Compare(a, b))
	})
	return classes, err
}

// tested reports whether a class is in one of the packages of tests.
func (j *javaTests) tested(class string) bool {
	return slices.ContainsFunc(j.tests, func(p string) bool { return strings.HasPrefix(class, p+".") })
}

// runClasses runs classes, and adds what became of their tests. Where that does not come to its end, all have failed.
func (j *javaTests) runClasses(ctx context.Context, s server, classes []string, outcomes map[string]outcome) error {
	reports, err := os.MkdirTemp(filepath.Dir(j.classes), "junit-")
	if err != nil {
		return err
	}
	args := append(j.properties(s), "-Djava.awt.headless=true", "org.junit.platform.console.ConsoleLauncher",
		"--disable-banner", "--details=none", "--reports-dir="+reports)
	for _, class := range classes {
		args = append(args, "--select-class="+class)
	}
	limited, cancel := context.WithTimeout(ctx, classesLimit)
	defer cancel()
	out, err := j.java(limited, args...)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) && limited.Err() == nil {
		return fmt.Errorf("run JUnit: %w", err)
	}
	found, readErr := filepath.Glob(filepath.Join(reports, "*.xml"))
	if readErr != nil || len(found) == 0 {
		for _, class := range classes {
			outcomes[class] = outcome{failed, fmt.Sprintf("%v\n%s", cmp.Or(err, readErr), out)}
		}
		return nil
	}
	for _, file := range found {
		if err := addJUnit(file, outcomes); err != nil {
			return err
		}
	}
	return nil
}

// addJUnit adds the outcomes of a report.
func addJUnit(file string, outcomes map[string]outcome) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	found, err := parseJUnit(text)
	if err != nil {
		return fmt.Errorf("%s: %w", filepath.Base(file), err)
	}
	for name, o := range found {
		if outcomes[name].result != failed {
			outcomes[name] = o
		}
	}
	return nil
}
