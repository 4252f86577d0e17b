package testdb

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestMain(m *testing.M) { Main(m) }

// A server is what the servers of both families have in common.
type server interface {
	Stop() error
	Done() <-chan struct{}
	Addr() string
	Socket() string
	Version() string
	URL() string
	DB(database string) (*sql.DB, error)
	Signal(syscall.Signal)
	Restart(context.Context) error
}

// families say how each is started and what its server says of itself.
var families = []struct {
	name             string
	start            func(ctx context.Context, args ...string) (server, error)
	seventeen        []string // arguments that allow 17 connections
	unknown          []string // an argument that there is not
	query            string   // for what follows, and the connections
	version          string   // a part of it
	level, user, url string
}{
	{"MariaDB", func(ctx context.Context, args ...string) (server, error) { return Start(ctx, Options{Args: args}) },
		[]string{"--max-connections=17"}, []string{"--no_such_option"},
		"SELECT VERSION(), @@tx_isolation, SUBSTRING_INDEX(CURRENT_USER(), '@', 1), @@max_connections", "MariaDB",
		"REPEATABLE-READ", "root", "mysql://root@"},
	{"PostgreSQL", func(ctx context.Context, args ...string) (server, error) {
		return StartPostgreSQL(ctx, PostgreSQLOptions{Args: args})
	}, []string{"-c", "max_connections=17"}, []string{"-c", "no_such_option=1"},
		"SELECT current_setting('server_version'), current_setting('default_transaction_isolation'), current_user, " +
			"current_setting('max_connections')::int",
		"", "read committed", "postgres", "postgres://postgres@"},
}

func TestServersAnswerAndLeaveNothingBehind(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	for _, f := range families {
		t.Run(f.name, func(t *testing.T) {
			s, err := f.start(t.Context(), f.seventeen...)
			if err != nil {
				t.Fatal(err)
			}
			defer s.Stop()
			db, err := s.DB("")
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			var version, level, user string
			var connections int
			if err := db.QueryRow(f.query).Scan(&version, &level, &user, &connections); err != nil {
				t.Fatal(err)
			}
			if version != s.Version() || !strings.Contains(version, f.version) {
				t.Errorf("version %q, Version() %q", version, s.Version())
			}
			if level != f.level {
				t.Errorf("isolation level %s, want the engine's default", level)
			}
			if user != f.user || connections != 17 {
				t.Errorf("logged in as %s; max_connections = %d, want the caller's 17", user, connections)
			}
			if want := f.url + s.Addr() + "/"; s.URL() != want {
				t.Errorf("URL() = %s, want %s", s.URL(), want)
			}
			if c, err := net.Dial("unix", s.Socket()); err != nil {
				t.Error(err)
			} else {
				c.Close()
			}
			stopTwice(t, s)
		})
	}
}

// TestKilledServersAreRestarted: killed servers are restarted on their data and port.
func TestKilledServersAreRestarted(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	for _, f := range families {
		t.Run(f.name, func(t *testing.T) {
			s, err := f.start(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer s.Stop()
			addr := s.Addr()
			db, err := s.DB(map[string]string{"MariaDB": "mysql"}[f.name])
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			if _, err := db.Exec("CREATE TABLE kept (id INT PRIMARY KEY)"); err != nil {
				t.Fatal(err)
			}
			s.Signal(syscall.SIGKILL)
			<-s.Done()
			if err := s.Restart(t.Context()); err != nil {
				t.Fatal(err)
			}
			if s.Addr() != addr {
				t.Errorf("restarted on %s, not %s", s.Addr(), addr)
			}
			var rows int
			if err := db.QueryRow("SELECT COUNT(*) FROM kept").Scan(&rows); err != nil {
				t.Errorf("after the restart: %v", err)
			}
		})
	}
}

// stopTwice stops the server and looks that nothing is left, not even of what it shared in memory.
func stopTwice(t *testing.T, s server) {
	t.Helper()
	before, directory := sharedMemory(t), filepath.Dir(s.Socket())
	for range 2 {
		if err := s.Stop(); err != nil {
			t.Fatal(err)
		}
	}
	select {
	case <-s.Done():
	default:
		t.Error("Done is open after Stop")
	}
	if _, err := os.Stat(directory); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("directory after Stop: %v", err)
	}
	if c, err := net.DialTimeout("tcp", s.Addr(), time.Second); err == nil {
		c.Close()
		t.Error("something still listens after Stop")
	}
	if after := sharedMemory(t); strings.HasPrefix(s.URL(), "postgres:") && len(before) > 0 &&
		slices.Equal(before, after) {
		t.Errorf("shared memory after Stop: %v", after)
	}
}

// sharedMemory names what PostgreSQL's servers share in memory, as far as Linux shows it.
func sharedMemory(t *testing.T) []string {
	t.Helper()
	found, err := filepath.Glob("/dev/shm/PostgreSQL.*")
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// TestFailedStartShowsTheLog: failed start shows the log and leaves nothing behind.
func TestFailedStartShowsTheLog(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	// Not t.TempDir: only root could enter it, when we are root, and the server is not.
	tmp, err := os.MkdirTemp("", "testdb-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(tmp) })
	if err := os.Chmod(tmp, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("TMPDIR", tmp)
	for _, f := range families {
		_, err = f.start(t.Context(), f.unknown...)
		if err == nil || !strings.Contains(err.Error(), "no_such_option") || !strings.Contains(err.Error(), f.name) {
			t.Errorf("error %v does not show what %s said", err, f.name)
		}
	}
	if left, _ := os.ReadDir(tmp); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestCancelledStartEnds(t *testing.T) {
	for _, f := range families {
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		if s, err := f.start(ctx); err == nil {
			t.Errorf("%s started in no time", f.name)
			s.Stop()
		}
		cancel()
	}
}

func TestNewDatabasesAreDistinctAndEmpty(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	a, b := NewDatabase(t), NewDatabase(t)
	if a == b {
		t.Fatalf("twice the name %s", a)
	}
	db := Open(t, a)
	if _, err := db.Exec("CREATE TABLE t (id INT)"); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(t, b).Exec("SELECT * FROM t"); err == nil {
		t.Error("a table of one database is in the other")
	}
}

func TestDatabaseNameFitsAndNeedsNoQuotes(t *testing.T) {
	got := databaseName("TestX/"+strings.Repeat("Sub-case é ", 20), 12)
	if len(got) > 64 || strings.Trim(got, "abcdefghijklmnopqrstuvwxyz_0123456789") != "" {
		t.Errorf("databaseName = %q", got)
	}
}

func TestErrNotInstalledNamesThePackages(t *testing.T) {
	for _, p := range packages {
		if !strings.Contains(ErrNotInstalled.Error(), p) {
			t.Errorf("the error does not name %s", p)
		}
	}
	dir := t.TempDir()
	if got := findProgram("mariadbd-of-nowhere", dir); got != "" {
		t.Errorf("found %q", got)
	}
	path := filepath.Join(dir, "mariadbd-of-nowhere")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	if got := findProgram("mariadbd-of-nowhere", dir); got != path {
		t.Errorf("findProgram = %q, want %q", got, path)
	}
}

func TestInstallDoesNothingWhenInstalled(t *testing.T) {
	var out bytes.Buffer
	if err := Install(t.Context(), &out); err != nil || out.Len() != 0 {
		t.Errorf("Install: %v, printed %q", err, &out)
	}
}
