package levels

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/internal/dsn"
	"github.com/isotap/isotap/internal/testdb"
	"github.com/isotap/isotap/scenario"
	"github.com/isotap/isotap/scenario/runner"
)

func TestMain(m *testing.M) { testdb.Main(m, testdb.PostgreSQLs...) }

// An asker returns the number that a query gives.
type asker func(query string) int

func askerOf(t *testing.T, open func(database string) (*sql.DB, error)) asker {
	t.Helper()
	db, err := open("")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return func(query string) (n int) {
		if err := db.QueryRow(query).Scan(&n); err != nil {
			t.Error(err)
		}
		return n
	}
}

// A long scenario shows when it is under way: a statement of it runs on the server then.
func long(sql string) []Row {
	return Each([]*scenario.Scenario{{Name: "long", Setup: []string{"CREATE TABLE item (id INT)"},
		Sessions: []scenario.Session{{Name: "T1"}}, Steps: []scenario.Step{{Session: "T1", SQL: sql}},
		Witness: map[int]scenario.Reply{1: {}}}})
}

func TestNothingIsLeftWhenItIsInterrupted(t *testing.T) {
	mariadb, postgresql := testdb.MariaDB(t), testdb.PostgreSQL(t)
	for _, on := range []struct {
		url, sleep, running, left string
		db                        asker
	}{
		{mariadb.URL(), "SELECT SLEEP(25)", "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE INFO LIKE 'SELECT SLEEP%'",
			"SELECT COUNT(*) FROM information_schema.SCHEMATA WHERE SCHEMA_NAME LIKE 'isotap_replay%'", askerOf(t, mariadb.DB)},
		{postgresql.URL(), "SELECT pg_sleep(25)", "SELECT COUNT(*) FROM pg_stat_activity WHERE query LIKE 'SELECT pg_sleep%'",
			"SELECT COUNT(*) FROM pg_namespace WHERE nspname LIKE 'isotap_replay%'", askerOf(t, postgresql.DB)},
	} {
		target, err := dsn.Parse(on.url)
		if err != nil {
			t.Fatal(err)
		}
		r, err := runner.Open(t.Context(), target, runner.Options{})
		if err != nil {
			t.Fatal(err)
		}
		interrupted := errors.New("interrupted")
		ctx, interrupt := context.WithCancelCause(t.Context())
		go func() {
			for end := time.Now().Add(20 * time.Second); on.db(on.running) == 0 && time.Now().Before(end); {
				time.Sleep(5 * time.Millisecond)
			}
			interrupt(interrupted)
		}()
		columns, err := Columns(r, []history.Level{history.Serializable})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Measure(ctx, r, columns, long(on.sleep)); !errors.Is(err, interrupted) {
			t.Errorf("%s: %v", r.Server.Engine, err)
		}
		if n := on.db(on.left); n > 0 {
			t.Errorf("%s: %d databases are left", r.Server.Engine, n)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestLevelsThatTheServerLacksAreRefused(t *testing.T) {
	target, err := dsn.Parse(testdb.PostgreSQL(t).URL())
	if err != nil {
		t.Fatal(err)
	}
	r, err := runner.Open(t.Context(), target, runner.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	_, err = Columns(r, []history.Level{history.Serializable, history.ReadUncommitted})
	if err == nil || !strings.Contains(err.Error(), "postgresql has no level READ UNCOMMITTED of its own") {
		t.Errorf("%v", err)
	}
	columns, err := Columns(r, nil)
	if err != nil || len(columns) != 3 || !slices.ContainsFunc(columns, func(c Column) bool { return c.Default }) {
		t.Errorf("%v, %v", columns, err)
	}
}
