package testdb

import (
	"context"
	"errors"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestPostgreSQLAnswersAndLeavesNothingBehind(t *testing.T) {
	s, err := StartPostgreSQL(t.Context(), PostgreSQLOptions{Args: []string{"-c", "max_connections=17"}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Stop()
	db, err := s.DB("")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var version, level, user, connections, database string
	const query = `SELECT current_setting('server_version'), current_setting('default_transaction_isolation'),
		current_user, current_setting('max_connections'), current_database()`
	if err := db.QueryRow(query).Scan(&version, &level, &user, &connections, &database); err != nil {
		t.Fatal(err)
	}
	if version != s.Version() || s.Major() < 12 {
		t.Errorf("version %q, Version() %q, Major() %d", version, s.Version(), s.Major())
	}
	if level != "read committed" {
		t.Errorf("isolation level %s, want the engine's default", level)
	}
	if user != "postgres" || database != "postgres" {
		t.Errorf("logged in as %s to %s", user, database)
	}
	if connections != "17" {
		t.Errorf("max_connections = %s: the caller's argument was not used", connections)
	}
	if want := "postgres://postgres@" + s.Addr() + "/"; s.URL() != want {
		t.Errorf("URL() = %s, want %s", s.URL(), want)
	}
	if c, err := net.Dial("unix", s.Socket()); err != nil {
		t.Error(err)
	} else {
		c.Close()
	}
	stopTwice(t, s)
}

// stopTwice stops the server and looks that nothing is left, not even of what it shared in memory.
func stopTwice(t *testing.T, s *PostgreSQLServer) {
	t.Helper()
	before := sharedMemory(t)
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
	if _, err := os.Stat(s.dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("directory after Stop: %v", err)
	}
	if c, err := net.DialTimeout("tcp", s.Addr(), time.Second); err == nil {
		c.Close()
		t.Error("something still listens after Stop")
	}
	if after := sharedMemory(t); len(before) > 0 && slices.Equal(before, after) {
		t.Errorf("shared memory after Stop: %v", after)
	}
}

// sharedMemory names what servers share in memory, as far as Linux shows it.
func sharedMemory(t *testing.T) []string {
	t.Helper()
	found, err := filepath.Glob("/dev/shm/PostgreSQL.*")
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestFailedStartOfPostgreSQLShowsTheLogAndLeavesNothingBehind(t *testing.T) {
	tmp, err := os.MkdirTemp("", "testdb-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(tmp) })
	if err := os.Chmod(tmp, 0o755); err != nil { // the server is not root
		t.Fatal(err)
	}
	t.Setenv("TMPDIR", tmp)
	_, err = StartPostgreSQL(t.Context(), PostgreSQLOptions{Args: []string{"-c", "no_such_option=1"}})
	if err == nil || !strings.Contains(err.Error(), "no_such_option") {
		t.Fatalf("error %v does not show what the server said", err)
	}
	if left, _ := os.ReadDir(tmp); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestPostgreSQLAsksForPasswordsWhereItIsTold(t *testing.T) {
	s, err := StartPostgreSQL(t.Context(), PostgreSQLOptions{HBA: []string{"host all guarded 127.0.0.1/32 scram-sha-256"}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Stop()
	db, err := s.DB("")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec("CREATE ROLE guarded LOGIN PASSWORD 'word'"); err != nil {
		t.Fatal(err)
	}
	s.user = "guarded"
	for password, want := range map[string]bool{"": false, "other": false, "word": true} {
		s.password = password
		c, err := s.config(s.host, "postgres")
		if err != nil {
			t.Fatal(err)
		}
		if err := s.askVersion(t.Context(), c); (err == nil) != want {
			t.Errorf("with the password %q: %v", password, err)
		}
	}
}

func TestCancelledStartOfPostgreSQLEnds(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if s, err := StartPostgreSQL(ctx, PostgreSQLOptions{}); err == nil {
		s.Stop()
		t.Fatal("started in no time")
	}
}

func TestNewPostgreSQLDatabasesAreDistinctAndEmpty(t *testing.T) {
	a, b := NewPostgreSQLDatabase(t), NewPostgreSQLDatabase(t)
	if a == b {
		t.Fatalf("twice the name %s", a)
	}
	if _, err := OpenPostgreSQL(t, a).Exec("CREATE TABLE t (id int)"); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenPostgreSQL(t, b).Exec("SELECT * FROM t"); err == nil {
		t.Error("a table of one database is in the other")
	}
}

func TestAPostgreSQLIsNamedByItsURL(t *testing.T) {
	own := PostgreSQL(t)
	u, err := url.Parse(own.URL())
	if err != nil {
		t.Fatal(err)
	}
	s, err := connectPostgreSQL(u)
	if err != nil {
		t.Fatal(err)
	}
	if s.Version() != own.Version() || s.Addr() != own.Addr() {
		t.Errorf("reached %s at %s, want %s at %s", s.Version(), s.Addr(), own.Version(), own.Addr())
	}
	name := NewPostgreSQLDatabase(t)
	if _, err := OpenPostgreSQL(t, name).Exec("SELECT 1"); err != nil { // leaves a session in it
		t.Fatal(err)
	}
	if err := dropPostgreSQLDatabases(s, []string{name, "never_made"}); err != nil {
		t.Fatal(err)
	}
	var left int
	if err := OpenPostgreSQL(t, "").QueryRow("SELECT count(*) FROM pg_database WHERE datname = $1", name).Scan(&left); err != nil || left != 0 {
		t.Errorf("%d databases are left, error %v", left, err)
	}
}

func TestNewestProgramsComeFirst(t *testing.T) {
	dir := t.TempDir()
	for _, version := range []string{"9.6", "17", "12"} {
		if err := os.MkdirAll(filepath.Join(dir, version, "bin"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(dir)
	want := []string{"17/bin", "12/bin", "9.6/bin"}
	if got := newestFirst([]string{"*/bin"}); !slices.Equal(got, want) {
		t.Errorf("newestFirst = %v, want %v", got, want)
	}
}

func TestErrPostgreSQLNotInstalledNamesThePackages(t *testing.T) {
	for _, p := range postgresqlPackages {
		if !strings.Contains(ErrPostgreSQLNotInstalled.Error(), p) {
			t.Errorf("the error does not name %s", p)
		}
	}
}

func TestInstallPostgreSQLDoesNothingWhenInstalled(t *testing.T) {
	var out strings.Builder
	if err := InstallPostgreSQL(t.Context(), &out); err != nil || out.Len() != 0 {
		t.Errorf("InstallPostgreSQL: %v, printed %q", err, out.String())
	}
}
