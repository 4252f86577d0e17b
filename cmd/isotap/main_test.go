package main

import (
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/isotap/isotap/internal/testdb"
)

// The scripts run isotap and racer as processes of their own: this test binary under those names.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"isotap": main,
		"racer":  func() { os.Exit(race(os.Args[1:], os.Stdout)) },
	})
}

func TestVerbsDoAndPrintWhatTheScriptsSay(t *testing.T) { runScripts(t, "testdata/script") }

// TestLongScripts runs those that -short does not run whole.
func TestLongScripts(t *testing.T) { runScripts(t, "testdata/long") }

// runScripts runs the scripts of a directory. Each has a database of its own on one server. It finds the server in
// $HOST, $PORT and $URL (which names $DB, the database), in $SYSTEMP a directory for temporary
// files that other users may enter, and in $GUIDE the guide to operating isotap.
func runScripts(t *testing.T, dir string) {
	t.Helper()
	server, err := testdb.Start(t.Context(), testdb.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Stop() })
	db, err := server.DB("")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	host, port, err := net.SplitHostPort(server.Addr())
	if err != nil {
		t.Fatal(err)
	}
	guide, err := filepath.Abs("../../docs/operating.md")
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir:                 dir,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(env *testscript.Env) error {
			name := strings.ReplaceAll(filepath.Base(env.WorkDir), "-", "_")
			env.Setenv("DB", name)
			env.Setenv("HOST", host)
			env.Setenv("PORT", port)
			env.Setenv("URL", server.URL()+name)
			env.Setenv("SYSTEMP", os.TempDir())
			env.Setenv("GUIDE", guide)
			// A process under the race detector would linger for a second when it exits.
			env.Setenv("GORACE", "atexit_sleep_ms=0")
			switch filepath.Base(env.WorkDir) {
			case "script-doctor":
				createRole(t, env, name)
				testdb.Exec(t, testdb.OpenPostgreSQL(t, "postgres"), "CREATE DATABASE "+name+"_closed",
					"REVOKE CONNECT ON DATABASE "+name+"_closed FROM PUBLIC")
			case "script-levels":
				createRole(t, env, name)
			case "script-examples":
				env.Setenv("PGURL", testdb.PostgreSQL(t).DSN(testdb.NewPostgreSQLDatabase(t)))
				if err := buildClinic(filepath.Join(env.WorkDir, "clinic")); err != nil {
					return err
				}
			}
			return createDatabase(db, name)
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"db":     queryDirectly,
			"status": checkStatus,
			"superuser": func(ts *testscript.TestScript, _ bool, args []string) {
				testdb.Exec(t, testdb.OpenPostgreSQL(t, "postgres"), args...)
			},
			"awaits":   awaitText,
			"serves":   awaitProxy,
			"admin":    awaitAdmin,
			"findings": checkFindings,
			"fetch":    fetchPage,
		},
	})
}

// buildClinic builds the tests of the example in Go; nothing with -short, which does not run them.
func buildClinic(to string) error {
	if testing.Short() {
		return nil
	}
	build := exec.Command("go", "test", "-c", "-trimpath", "-o", to, "github.com/isotap/isotap/examples/go")
	build.Env = append(os.Environ(), "CGO_ENABLED=0") // as "make build" does, so that most of it is there
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("build the tests of examples/go: %w\n%s", err, out)
	}
	return nil
}

func createDatabase(db *sql.DB, name string) error {
	_, err := db.Exec("CREATE DATABASE `" + name + "`")
	return err
}

// queryDirectly runs SQL on the script's database, not through isotap: db STATEMENTS.
func queryDirectly(ts *testscript.TestScript, neg bool, args []string) {
	args = append(clientArgs(ts), "-e", strings.Join(args, " "))
	if err := ts.Exec("mariadb", args...); (err != nil) != neg {
		ts.Fatalf("mariadb: %v", err)
	}
}

// clientArgs are the arguments of MariaDB's own client for the script's database.
func clientArgs(ts *testscript.TestScript) []string {
	return []string{"--no-defaults", "--skip-ssl", "--user=root", "--protocol=tcp", "--host=" + ts.Getenv("HOST"),
		"--port=" + ts.Getenv("PORT"), ts.Getenv("DB")}
}

// checkStatus runs a program and checks its exit status: status N PROGRAM ARGUMENT...
func checkStatus(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: status N PROGRAM ARGUMENT...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	err = ts.Exec(args[1], args[2:]...)
	got := 0
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		got = exit.ExitCode()
	} else if err != nil {
		ts.Fatalf("%s: %v", args[1], err)
	}
	if got != want {
		ts.Fatalf("%s: exit status %d, want %d", args[1], got, want)
	}
}

// scriptPatience bounds how long a script waits for what a process in the background does.
const scriptPatience = 30 * time.Second

// awaitText waits until a file matches: awaits FILE REGEXP.
func awaitText(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: awaits FILE REGEXP")
	}
	awaitMatch(ts, args[0], args[1])
}

// awaitProxy waits until a proxy whose standard error goes to the file serves, and puts its port into
// an environment variable: serves FILE VARIABLE.
func awaitProxy(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: serves FILE VARIABLE")
	}
	ts.Setenv(args[1], awaitMatch(ts, args[0], `clients connect to 127\.0\.0\.1:(\d+),`)[1])
}

// awaitAdmin is awaitProxy for the port of the admin server: admin FILE VARIABLE.
func awaitAdmin(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: admin FILE VARIABLE")
	}
	ts.Setenv(args[1], awaitMatch(ts, args[0], `are at http://127\.0\.0\.1:(\d+)/`)[1])
}

func awaitMatch(ts *testscript.TestScript, file, pattern string) []string {
	re, err := regexp.Compile(pattern)
	ts.Check(err)
	var text []byte
	for end := time.Now().Add(scriptPatience); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		text, _ = os.ReadFile(ts.MkAbs(file))
		if found := re.FindStringSubmatch(string(text)); found != nil {
			return found
		}
	}
	ts.Fatalf("%s does not match %q after %v:\n%s", file, pattern, scriptPatience, text)
	return nil
}

// fetchPage gets a page into a file, and waits until its status is the given one: fetch STATUS URL FILE.
func fetchPage(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: fetch STATUS URL FILE")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	var last string
	for end := time.Now().Add(scriptPatience); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		r, err := http.Get(args[1])
		if err != nil {
			last = err.Error()
			continue
		}
		body, err := io.ReadAll(r.Body)
		ts.Check(errors.Join(err, r.Body.Close()))
		last = fmt.Sprintf("%s: %s", r.Status, body)
		if r.StatusCode == want {
			ts.Check(os.WriteFile(ts.MkAbs(args[2]), body, 0o600))
			return
		}
	}
	ts.Fatalf("%s does not answer %d after %v but %s", args[1], want, scriptPatience, last)
}

// checkFindings reads a file (or stdout) as a report in JSON and compares its findings, each given as
// "CLASS: ANOMALY", in any order: findings FILE FINDING...
func checkFindings(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: findings FILE FINDING...")
	}
	var doc struct {
		Schema   string
		Findings []struct{ Class, Anomaly string }
	}
	if err := json.Unmarshal([]byte(ts.ReadFile(args[0])), &doc); err != nil {
		ts.Fatalf("%s is no report: %v", args[0], err)
	}
	if doc.Schema == "" {
		ts.Fatalf("%s is no report: it names no schema", args[0])
	}
	got := []string{}
	for _, f := range doc.Findings {
		got = append(got, fmt.Sprintf("%s: %s", f.Class, f.Anomaly))
	}
	want := args[1:]
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		ts.Fatalf("found %q, want %q", got, want)
	}
}

// createRole makes a role on the tests' PostgreSQL that may connect to a database, and tells the script.
func createRole(t *testing.T, env *testscript.Env, name string) {
	server := testdb.PostgreSQL(t)
	testdb.Exec(t, testdb.OpenPostgreSQL(t, "postgres"), "CREATE ROLE "+name+" LOGIN", "CREATE DATABASE "+name)
	env.Setenv("PGROLE", name)
	env.Setenv("PGHOST", server.Addr())
}
