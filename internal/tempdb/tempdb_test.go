package tempdb

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/isotap/isotap/dbms"
	"github.com/isotap/isotap/internal/dsn"
	"github.com/isotap/isotap/internal/testdb"
	"github.com/isotap/isotap/workload"
)

func TestMain(m *testing.M) { testdb.Main(m) }

// onEach runs a test on each family's server.
func onEach(t *testing.T, test func(t *testing.T, target dsn.Target)) {
	for name, url := range map[string]func() string{
		"mysql":      func() string { return testdb.MariaDB(t).URL() },
		"postgresql": func() string { return testdb.PostgreSQL(t).URL() },
	} {
		t.Run(name, func(t *testing.T) {
			target, err := dsn.Parse(url())
			if err != nil {
				t.Fatal(err)
			}
			test(t, target)
		})
	}
}

// Two runs that ask for the same name at the same time used to drop each other's tables.
func TestRunsAtOnceHaveDatabasesOfTheirOwn(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: make check runs it")
	}
	onEach(t, func(t *testing.T, target dsn.Target) {
		const runs, rows = 3, 20
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		var started, done sync.WaitGroup
		started.Add(runs)
		all := make(chan struct{})
		go func() { started.Wait(); close(all) }()
		errs := make([]error, runs)
		for i := range runs {
			done.Go(func() {
				begin := sync.OnceFunc(started.Done)
				defer begin() // a run that does not get so far does not keep the others waiting
				_, errs[i] = Run(ctx, target, Options{Database: "isotap_at_once"},
					func(ctx context.Context, dsn string) error {
						begin()
						<-all
						return insertAndCount(ctx, dsn, rows)
					})
			})
		}
		done.Wait()
		if err := errors.Join(errs...); err != nil {
			t.Error(err)
		}
		if left := databases(t, target, "isotap_at_once"); len(left) > 0 {
			t.Errorf("the runs left %q", left)
		}
	})
}

// insertAndCount makes a table, inserts rows one by one, and fails if a row is missing then.
func insertAndCount(ctx context.Context, dsn string, rows int) error {
	db, err := workload.DialectOf(dsn).Open(dsn, false)
	if err != nil {
		return err
	}
	defer db.Close()
	if _, err := db.ExecContext(ctx, "CREATE TABLE job (id INT PRIMARY KEY)"); err != nil {
		return err
	}
	for i := range rows {
		if _, err := db.ExecContext(ctx, workload.DialectOf(dsn).Text("INSERT INTO job VALUES (?)"), i); err != nil {
			return err
		}
	}
	var n int
	if err := db.QueryRowContext(ctx, "SELECT count(*) FROM job").Scan(&n); err != nil {
		return err
	}
	if n != rows {
		return errors.New("rows are missing")
	}
	return nil
}

func TestADatabaseOfAnothersIsLeftAlone(t *testing.T) {
	onEach(t, func(t *testing.T, target dsn.Target) {
		admin := direct(t, target)
		if _, err := admin.ExecContext(t.Context(), "CREATE DATABASE isotap_taken"); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { admin.ExecContext(context.Background(), "DROP DATABASE isotap_taken") })
		_, err := Run(t.Context(), target, Options{Database: "isotap_taken"},
			func(ctx context.Context, dsn string) error {
				if got, want := databases(t, target, "isotap_taken"), []string{"isotap_taken",
					"isotap_taken_2"}; !slices.Equal(got, want) {
					t.Errorf("databases while it runs: %q, want %q", got, want)
				}
				return insertAndCount(ctx, dsn, 1)
			})
		if err != nil {
			t.Fatal(err)
		}
		if got, want := databases(t, target, "isotap_taken"), []string{"isotap_taken"}; !slices.Equal(got, want) {
			t.Errorf("databases afterwards: %q, want %q", got, want)
		}
	})
}

// direct returns a pool of connections to the server itself, which the test closes.
func direct(t *testing.T, target dsn.Target) *sql.DB {
	t.Helper()
	if target.Family == dbms.PostgreSQLFamily {
		target.Database = "postgres"
	}
	db, err := open(target)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

// databases returns the names of the server's databases that begin with a text, sorted.
func databases(t *testing.T, target dsn.Target, prefix string) (names []string) {
	t.Helper()
	query := "SELECT schema_name FROM information_schema.schemata"
	if target.Family == dbms.PostgreSQLFamily {
		query = "SELECT datname FROM pg_database"
	}
	rows, err := direct(t, target).QueryContext(t.Context(), query)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			t.Fatal(err)
		}
		if len(name) >= len(prefix) && name[:len(prefix)] == prefix {
			names = append(names, name)
		}
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	slices.Sort(names)
	return names
}
