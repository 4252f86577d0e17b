package testdb

import (
	"bytes"
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestMain(m *testing.M) { Main(m) }

func TestServerAnswersAndLeavesNothingBehind(t *testing.T) {
	s, err := Start(t.Context(), Options{Args: []string{"--max-connections=17"}})
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
	const query = "SELECT VERSION(), @@tx_isolation, CURRENT_USER(), @@max_connections"
	if err := db.QueryRow(query).Scan(&version, &level, &user, &connections); err != nil {
		t.Fatal(err)
	}
	if version != s.Version() || !strings.Contains(version, "MariaDB") {
		t.Errorf("version %q, Version() %q", version, s.Version())
	}
	if level != "REPEATABLE-READ" {
		t.Errorf("isolation level %s, want the engine's default", level)
	}
	if !strings.HasPrefix(user, "root@") {
		t.Errorf("logged in as %s", user)
	}
	if connections != 17 {
		t.Errorf("max_connections = %d: the caller's argument was not used", connections)
	}
	if want := "mysql://root@" + s.Addr() + "/"; s.URL() != want {
		t.Errorf("URL() = %s, want %s", s.URL(), want)
	}
	if c, err := net.Dial("unix", s.Socket()); err != nil {
		t.Error(err)
	} else {
		c.Close()
	}

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
}

func TestFailedStartShowsTheLogAndLeavesNothingBehind(t *testing.T) {
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
	_, err = Start(t.Context(), Options{Args: []string{"--no-such-option"}})
	if err == nil || !strings.Contains(err.Error(), "no-such-option") {
		t.Fatalf("error %v does not show what the server said", err)
	}
	if left, _ := os.ReadDir(tmp); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestCancelledStartEnds(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if s, err := Start(ctx, Options{}); err == nil {
		s.Stop()
		t.Fatal("started in no time")
	}
}

func TestNewDatabasesAreDistinctAndEmpty(t *testing.T) {
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
