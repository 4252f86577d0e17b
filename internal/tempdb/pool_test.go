package tempdb

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/isotap/isotap/dbms"
	"github.com/isotap/isotap/internal/dsn"
	"github.com/isotap/isotap/internal/testdb"
	"github.com/isotap/isotap/workload"
)

// execute runs statements on a data source.
func execute(ctx context.Context, dsn string, texts ...string) error {
	db, err := workload.DialectOf(dsn).Open(dsn, false)
	if err != nil {
		return err
	}
	defer db.Close()
	for _, text := range texts {
		if _, err := db.ExecContext(ctx, text); err != nil {
			return err
		}
	}
	return nil
}

func TestRunsOfAPoolFindTheirDatabaseEmpty(t *testing.T) {
	onEach(t, func(t *testing.T, target dsn.Target) {
		const name = "isotap_pool"
		pool, err := NewPool(target, name, 0)
		if err != nil {
			t.Fatal(err)
		}
		run := func(texts ...string) error {
			_, err := pool.Run(t.Context(), Options{}, func(ctx context.Context, dsn string) error {
				if got := databases(t, target, name); !slices.Equal(got, []string{name}) {
					t.Errorf("databases while it runs: %q", got)
				}
				return execute(ctx, dsn, texts...)
			})
			return err
		}
		made := []string{"CREATE TABLE a (id INT PRIMARY KEY)", "CREATE TABLE b (id INT, FOREIGN KEY (id) REFERENCES a (id))",
			"INSERT INTO a VALUES (1)"}
		for range 2 { // what the second one makes is there already if it is not empty
			if err := run(made...); err != nil {
				t.Fatal(err)
			}
		}
		var between []string
		if target.Family == dbms.PostgreSQLFamily {
			between = []string{name}
		}
		if got := databases(t, target, name); !slices.Equal(got, between) {
			t.Errorf("databases between two runs: %q, want %q", got, between)
		}
		failed := errors.New("it fails")
		if _, err := pool.Run(t.Context(), Options{}, func(context.Context, string) error { return failed }); !errors.Is(err, failed) {
			t.Errorf("a run that fails: %v", err)
		}
		if got := databases(t, target, name); len(got) > 0 {
			t.Errorf("a run that failed leaves %q", got)
		}
		if err := run(made...); err != nil {
			t.Fatal(err)
		}
		if err := pool.Close(); err != nil {
			t.Fatal(err)
		}
		if got := databases(t, target, name); len(got) > 0 {
			t.Errorf("the pool leaves %q", got)
		}
	})
}

// A session that its client left behind holds locks on what the next run is to be without.
func TestWhoIsLeftInAPoolsDatabaseIsSentAway(t *testing.T) {
	const name = "isotap_left"
	target, err := dsn.Parse(testdb.PostgreSQL(t).URL())
	if err != nil {
		t.Fatal(err)
	}
	pool, err := NewPool(target, name, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	target.Database = name
	for range 2 {
		_, err := pool.Run(t.Context(), Options{}, func(ctx context.Context, dsn string) error {
			if err := execute(ctx, dsn, "CREATE TABLE a (id INT PRIMARY KEY)"); err != nil {
				return err
			}
			db, err := open(target) // past isotap, which would end the session
			if err != nil {
				return err
			}
			t.Cleanup(func() { db.Close() })
			_, err = db.ExecContext(ctx, "BEGIN; INSERT INTO a VALUES (1)")
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// TestAnothersDatabaseIsNotEmptied has the name of a pool's database lead to another one, as a pooler may.
func TestAnothersDatabaseIsNotEmptied(t *testing.T) {
	name := testdb.NewPostgreSQLDatabase(t)
	db := testdb.OpenPostgreSQL(t, name)
	if _, err := db.Exec("CREATE TABLE theirs (id int)"); err != nil {
		t.Fatal(err)
	}
	if err := (emptied{name: "isotap_other", db: db}).empty(t.Context()); err == nil ||
		!strings.Contains(err.Error(), "lead to "+name) {
		t.Errorf("emptying gave %v", err)
	}
	if _, err := db.Exec("SELECT * FROM theirs"); err != nil {
		t.Error(err)
	}
}
