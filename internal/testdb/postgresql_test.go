package testdb

import (
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestPostgreSQLAsksForPasswordsWhereItIsTold(t *testing.T) {
	s, err := StartPostgreSQL(t.Context(),
		PostgreSQLOptions{HBA: []string{"host all guarded 127.0.0.1/32 scram-sha-256"}})
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
	if err := OpenPostgreSQL(t, "").QueryRow("SELECT count(*) FROM pg_database WHERE datname = $1",
		name).Scan(&left); err != nil || left != 0 {
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
