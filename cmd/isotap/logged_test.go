package main

import (
	"context"
	"database/sql"
	"net"
	"net/url"
	"strings"
	"testing"

	_ "github.com/jackc/pgx/v5/stdlib"
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/isotap/isotap/internal/testdb"
)

// TestLiveNamesWhoWritesPastIsotap has what isotap alone did not see told to those who watch while it records, in both
// families. Without the server's log they were told that there is no anomaly.
func TestLiveNamesWhoWritesPastIsotap(t *testing.T) {
	t.Run("postgresql", func(t *testing.T) {
		at := testdb.PostgreSQL(t).URL() + testdb.NewPostgreSQLDatabase(t)
		runLogged(t, "pgx", at, "SET synchronous_commit = on; CREATE TABLE flushed ()")
	})
	t.Run("mariadb", func(t *testing.T) {
		server, err := testdb.Start(t.Context(), testdb.Options{Args: []string{"--log-bin=log", "--server-id=1",
			"--binlog-format=ROW", "--sync-binlog=0"}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { server.Stop() })
		db, err := server.DB("")
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		testdb.Exec(t, db, "CREATE DATABASE logged")
		runLogged(t, "mysql", server.URL()+"logged")
	})
}

// runLogged runs the scripts of testdata/logged on a database. In them "lose PORT" has a client of the proxy's there
// lose the update of another who is past it.
func runLogged(t *testing.T, driver, at string, after ...string) {
	direct := openLogged(t, driver, at)
	testdb.Exec(t, direct, append([]string{"CREATE TABLE acc (id int PRIMARY KEY, v int)",
		"INSERT INTO acc VALUES (1, 100), (2, 100)"}, after...)...)
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/logged",
		RequireExplicitExec: true,
		Setup: func(env *testscript.Env) error {
			env.Setenv("URL", at)
			env.Setenv("GORACE", "atexit_sleep_ms=0")
			return nil
		},
		Condition: func(cond string) (bool, error) { return cond == driver, nil },
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"serves": awaitProxy, "admin": awaitAdmin, "awaits": awaitText, "fetch": fetchPage,
			"lose": func(ts *testscript.TestScript, _ bool, args []string) {
				u, err := url.Parse(at)
				ts.Check(err)
				u.Host = net.JoinHostPort("127.0.0.1", args[0])
				through := openLogged(t, driver, u.String())
				defer through.Close()
				ts.Check(lose(t.Context(), through, direct))
			},
		},
	})
}

// openLogged opens a database that a URL names.
func openLogged(t *testing.T, driver, at string) *sql.DB {
	t.Helper()
	if driver == "mysql" {
		u, err := url.Parse(at)
		if err != nil {
			t.Fatal(err)
		}
		at = u.User.Username() + "@tcp(" + u.Host + ")" + u.Path
	} else if !strings.Contains(at, "sslmode") {
		at += "?sslmode=disable"
	}
	db, err := sql.Open(driver, at)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

// lose loses the update of a client past isotap. What another client of isotap's writes between the read and that
// update shows in the log which of the two came first.
func lose(ctx context.Context, through, direct *sql.DB) error {
	x, err := through.Conn(ctx)
	if err != nil {
		return err
	}
	defer x.Close()
	steps := []struct {
		by interface {
			ExecContext(ctx context.Context, text string, args ...any) (sql.Result, error)
		}
		text string
	}{
		{x, "UPDATE acc SET v = 150 WHERE id = 1"},
		{x, "BEGIN"},
		{x, "SELECT v FROM acc WHERE id = 1"},
		{through, "UPDATE acc SET v = v + 1 WHERE id = 2"},
		{direct, "UPDATE acc SET v = 500 WHERE id = 1"},
		{x, "UPDATE acc SET v = 151 WHERE id = 1"},
		{x, "COMMIT"},
	}
	for _, s := range steps {
		if _, err := s.by.ExecContext(ctx, s.text); err != nil {
			return err
		}
	}
	return nil
}
