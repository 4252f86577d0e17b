// Command field runs known applications, which nobody made for isotap, on their own test suites: directly, and through
// isotap run. It prints what docs/field.md is made of: whether each test ended as it did before, what isotap observed
// and found, which races it shows, and the seconds. Then a few clients send requests at once, and what these leave in
// the application's own books is counted.
//
//	go run ./internal/field [-app NAME] [-isotap PATH] [-out DIR]
//
// Applications are installed by their package managers at fixed versions into the cache directory (isotap/field), and
// stay there. Nothing of theirs is in this repository.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/isotap/isotap/internal/engine"
)

// An application is one that is tried.
type application struct {
	name, version string
	engine        string // of the server, as isotap's --engine has it
	// install brings what the suite runs into a directory of the application's own, if it is not there.
	install func(ctx context.Context, dir string) error
	// prepare makes its tables in the database of DATABASE_URL, past isotap. It is nil where the application does so
	// when it starts.
	prepare func(ctx context.Context, dir string) error
	// suite starts the application on the database of DATABASE_URL, runs its own tests, and stops it. It writes the
	// verdict of each test as a line that the next run can be compared with.
	suite func(ctx context.Context, dir string, verdicts io.Writer) error
	// crowd starts it likewise, sends requests at once, and writes what went wrong in its books.
	crowd func(ctx context.Context, dir string, books io.Writer) error
}

var applications = []application{miniflux, vendure, vendureMariaDB, redmine, wordpress, mediawiki, unleash, directus, parse}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "field:", err)
		os.Exit(1)
	}
}

// part is the first argument of the command within isotap run: the application's name, "prepare", "suite" or "crowd",
// its directory, and the file for what comes of it follow.
const part = "part"

func run(ctx context.Context, args []string) (err error) {
	if len(args) == 5 && args[0] == part {
		return runPart(ctx, args[1], args[2], args[3], args[4])
	}
	flags := flag.NewFlagSet("field", flag.ContinueOnError)
	only := flags.String("app", "", "the application to try (default all)")
	isotap := flags.String("isotap", "", "the isotap program (default: it is built)")
	out := flags.String("out", "", "where recordings and reports are left (default: they are removed)")
	if err := flags.Parse(args); err != nil {
		return err
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return err
	}
	work := *out
	if work == "" {
		if work, err = os.MkdirTemp("", "isotap-field-"); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(work)) }()
	} else if err := os.MkdirAll(work, 0o755); err != nil {
		return err
	}
	if *isotap == "" {
		*isotap = filepath.Join(work, "isotap")
		if err := command(ctx, ".", "go", "build", "-o", *isotap, "github.com/isotap/isotap/cmd/isotap"); err != nil {
			return fmt.Errorf("build isotap: %w", err)
		}
	}
	found := false
	for _, a := range applications {
		if *only != "" && *only != a.name {
			continue
		}
		found = true
		t := &trial{application: a, dir: filepath.Join(cache, "isotap", "field", a.name+"-"+a.version), work: work, isotap: *isotap}
		if err := t.try(ctx, os.Stdout); err != nil {
			return fmt.Errorf("%s %s: %w", a.name, a.version, err)
		}
	}
	if !found {
		return fmt.Errorf("no application is named %q", *only)
	}
	return nil
}

// runPart runs a part of an application's trial, whose database is DATABASE_URL's.
func runPart(ctx context.Context, name, what, dir, out string) (err error) {
	i := slices.IndexFunc(applications, func(a application) bool { return a.name == name })
	if i < 0 {
		return fmt.Errorf("no application is named %q", name)
	}
	f, err := os.Create(out)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	switch what {
	case "prepare":
		return applications[i].prepare(ctx, dir)
	case "crowd":
		return applications[i].crowd(ctx, dir, f)
	}
	return applications[i].suite(ctx, dir, f)
}

// A trial is one application's.
type trial struct {
	application
	dir    string // where it is installed
	work   string // for what comes of it
	isotap string
	url    string // of the server
}

// try runs the suite twice and the crowd once, and prints what came of it.
func (t *trial) try(ctx context.Context, w io.Writer) (err error) {
	fmt.Fprintf(w, "%s %s\n", t.name, t.version)
	if err := os.MkdirAll(t.dir, 0o755); err != nil {
		return err
	}
	if err := t.install(ctx, t.dir); err != nil {
		return fmt.Errorf("install it: %w", err)
	}
	e, err := engine.Find(t.engine)
	if err != nil {
		return err
	}
	server, err := e.Start(ctx, w)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, server.Stop()) }()
	t.url = server.URL()
	databases, err := server.DB(maintenance(t.engine))
	if err != nil {
		return err
	}
	defer databases.Close()
	for _, name := range []string{"directly", "watched", "crowded"} {
		if _, err := databases.ExecContext(ctx, "CREATE DATABASE "+name); err != nil {
			return err
		}
		if t.prepare == nil {
			continue
		}
		if _, _, err := t.part(ctx, "prepare", name, false, io.Discard); err != nil {
			return fmt.Errorf("make its tables: %w", err)
		}
	}
	direct, alone, err := t.part(ctx, "suite", "directly", false, io.Discard)
	if err != nil {
		return fmt.Errorf("its suite, directly: %w", err)
	}
	var report bytes.Buffer
	watched, took, err := t.part(ctx, "suite", "watched", true, &report)
	if err != nil {
		return fmt.Errorf("its suite, through isotap: %w\n%s", err, report.Bytes())
	}
	fmt.Fprintf(w, "\nIts own suite, %d tests: %.0f s directly, %.0f s through isotap, what could have happened included.\n%s\n%s\n",
		len(strings.Split(strings.TrimSpace(direct), "\n")), alone.Seconds(), took.Seconds(), compared(direct, watched), &report)
	report.Reset()
	books, _, err := t.part(ctx, "crowd", "crowded", true, &report)
	if err != nil {
		return fmt.Errorf("requests at once: %w\n%s", err, report.Bytes())
	}
	fmt.Fprintf(w, "Requests at once, by its own books:\n%s\n%s\n", books, &report)
	return nil
}

// part runs a part in a process of its own, directly or through isotap. It returns what the part wrote.
func (t *trial) part(ctx context.Context, what, database string, watched bool, report io.Writer) (came string, took time.Duration, err error) {
	self, err := os.Executable()
	if err != nil {
		return "", 0, err
	}
	out := filepath.Join(t.work, t.name+"-"+database)
	url := strings.TrimSuffix(t.url, "/") + "/" + database
	if t.engine == "postgres" {
		url += "?sslmode=disable"
	}
	args := []string{self, part, t.name, what, t.dir, out}
	if watched {
		explore := "auto"
		if what == "crowd" {
			explore = "off"
		}
		args = append([]string{t.isotap, "run", "--upstream", url, "--explore=" + explore, "--limit", "0",
			"--fail-on", "none", "--min-coverage", "0", "--recording", out + ".recording", "--html", out + ".html", "--"}, args...)
	}
	began := time.Now()
	c := exec.CommandContext(ctx, args[0], args[1:]...)
	var said bytes.Buffer
	all := io.MultiWriter(report, &said)
	c.Env, c.Stdout, c.Stderr = append(os.Environ(), "DATABASE_URL="+url), all, all
	if err := c.Run(); err != nil {
		return "", 0, fmt.Errorf("%s: %w\n%s", strings.Join(c.Args, " "), err, &said)
	}
	took = time.Since(began)
	text, err := os.ReadFile(out)
	return string(text), took, err
}

// compared says in which tests two runs differ.
func compared(direct, watched string) string {
	a, b := strings.Split(strings.TrimSpace(direct), "\n"), strings.Split(strings.TrimSpace(watched), "\n")
	var all []string
	for _, l := range a {
		if !slices.Contains(b, l) {
			all = append(all, "  directly "+l)
		}
	}
	for _, l := range b {
		if !slices.Contains(a, l) {
			all = append(all, "  through isotap "+l)
		}
	}
	if len(all) == 0 {
		return "Works unchanged: each test ended as it did directly."
	}
	return "Differs:\n" + strings.Join(all, "\n")
}

// maintenance returns the database that a new server of an engine has; empty where none is needed to log in.
func maintenance(engine string) string {
	if engine == "postgres" {
		return "postgres"
	}
	return ""
}
